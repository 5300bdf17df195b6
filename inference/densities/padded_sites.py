"""Sites of padded data: a handler that keeps padding out of priors and factors, and values cut to the real sizes."""

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpyro
from jax import Array
from numpyro.distributions import Dirichlet, Distribution, Unit, biject_to
from numpyro.primitives import Messenger

from ...data import Annotations
from ...data.arrays import lengthened, shortened
from ...data.padding import PaddedAnnotations, real_by_plate
from ...models.parts.contract import dim_of_plate

Site = dict[str, Any]
Dims = dict[str, tuple[str, ...]]  # names of the dimensions, by site

OF_PADDING = "of_padding"  # marks the density that padded parameters have of their own


class PaddingWeighsNothing(Messenger):
    """Gives what stands in the plates ``task`` and ``worker`` for padded tasks and workers a log-density of 0.

    Stories know nothing of padding, and nothing else does this. The handler scales the sites' log-densities by 0
    instead of masking their distributions, so that these stay what they are.

    Args:
        annotations: padded or not.
    """

    def __init__(self, annotations: Annotations) -> None:
        super().__init__(None)
        self._is_real = real_by_plate(annotations)

    def process_message(self, msg: Site) -> None:
        """Scale a site that stands in one of the plates."""
        weight = self._weight(msg)
        if weight is not None:
            msg["scale"] = weight if msg["scale"] is None else weight * msg["scale"]

    def _weight(self, msg: Site) -> Array | None:
        """1 for what is real and 0 for what is padded, along the plates; None where nothing is padded."""
        if msg["type"] != "sample":
            return None
        weight = None
        for frame in msg["cond_indep_stack"]:
            if (dim := dim_of_plate(frame.name)) in self._is_real:
                of_plate = self._is_real[dim].astype(float).reshape(-1, *[1] * (-frame.dim - 1))
                weight = of_plate if weight is None else weight * of_plate
        return weight


class PaddingIsProper(PaddingWeighsNothing):
    """Gives padded parameters instead a density that is proper and does not depend on anything else, for samplers.

    It is uniform on the simplex, and for others standard normal in unconstrained space.
    """

    def __init__(self, annotations: Annotations) -> None:
        super().__init__(annotations)
        self._kept: set[str] = set()  # names of factors that count for padded tasks and workers too

    def process_message(self, msg: Site) -> None:
        """Scale a site that stands in one of the plates, but for what counts for padded ones."""
        if is_table(msg):  # the density of NumPyro's transform to the simplex is the uniform one
            self._kept.add(f"_{msg['name']}_log_det")
        super().process_message(msg)

    def postprocess_message(self, msg: Site) -> None:
        """Give padded parameters their own density."""
        weight = None if msg.get("is_observed") else self._weight(msg)
        if weight is None or is_table(msg):
            return
        is_padded = jnp.broadcast_to(weight == 0, msg["fn"].batch_shape)
        reals = biject_to(msg["fn"].support).inv(msg["value"]).reshape(*is_padded.shape, -1)
        reals = jnp.where(is_padded[..., None], reals, 0.0)
        name = f"_{msg['name']}_padded"
        self._kept.add(name)
        own = Unit(-0.5 * (reals**2).sum(-1))
        numpyro.sample(name, own, obs=own.sample(None), infer={"is_auxiliary": True, OF_PADDING: True})

    def _weight(self, msg: Site) -> Array | None:
        return None if msg["name"] in self._kept else super()._weight(msg)


def is_of_padding(site: Site) -> bool:
    """Return whether a site is the density of padded parameters, which is no part of the story."""
    return bool(site["infer"].get(OF_PADDING))


def is_table(site: Site) -> bool:
    """Return whether a site's value has rows of probabilities: its distribution, unwrapped, is a Dirichlet."""
    return site["type"] == "sample" and isinstance(dirichlet_of(site["fn"]), Dirichlet)


def dirichlet_of(distribution: Distribution) -> Distribution:
    """The distribution beneath what wraps it, which is a Dirichlet for a table."""
    while isinstance(distribution, Distribution) and hasattr(distribution, "base_dist"):
        distribution = distribution.base_dist
    return distribution


def cut(values: Mapping[str, Any], dims: Dims, annotations: Annotations, leading: int = 0) -> dict[str, Any]:
    """Values by site without the entries of padded tasks, workers and rows.

    Args:
        values: by site, of the padded sizes.
        annotations: whose sizes to cut to.
        leading: number of dimensions before those named.
    """
    return {
        name: shortened(value, real_axes(dims.get(name, ()), annotations, leading)) for name, value in values.items()
    }


def grown(values: Mapping[str, Any], dims: Dims, annotations: PaddedAnnotations, leading: int = 0) -> dict[str, Any]:
    """Values by site with copies of the last task's and worker's entries for the padded ones: the way back."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        found[name] = value
        for axis, size in real_axes(dims.get(name, ()), annotations, leading):
            found[name] = lengthened(found[name], axis, size)
    return found


def real_axes(dims: tuple[str, ...], annotations: Annotations, leading: int = 0) -> list[tuple[int, int]]:
    """The axes of tasks, of workers and of rows, and their sizes."""
    sizes = {"task": annotations.n_tasks, "worker": annotations.n_workers, "row": annotations.n_rows}
    return [(leading + axis, sizes[dim]) for axis, dim in enumerate(dims) if dim in sizes]
