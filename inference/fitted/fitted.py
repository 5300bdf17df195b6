r"""A story at draws of its parameters: what an engine leaves, and what follows from the draws one by one.

Sums over draws are taken one draw at a time, so that memory does not grow with their number.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax import Array

from ...data import AnnotationError, Annotations
from ...data.errors import check_name
from ...data.padding import PaddedAnnotations
from ...data.question_classes import within
from ...models import Emission
from ..densities.enumerated import Density, Parameters, density, emission_at
from ..densities.model import Model
from ..densities.padded_sites import cut, grown
from ..densities.portable import sized
from ..densities.programs import compiled
from ..densities.ready_programs import known
from ..densities.sites import Dims, derived, site_roles
from ..engines.around_mode import draws_around
from ..engines.finding import ConvergenceWarning, Finding
from ..engines.outcome import Outcome
from ..sources.on_disk import Files, OnDiskError
from . import by_batch
from .counted_groups import CountedGroup, groups_of, stand_ins
from .named_draws import NamedArrays, parameter_arrays
from .origin import here_and_now

if TYPE_CHECKING:
    import xarray as xr

AROUND = (25, 200)  # draws around a point, at the least and at the most
LOOKED_AT = 2**17  # rows of files that views are of which a sample serves, at the most, about
NUMBERS = 2e7  # of parameters and annotations in all of these draws, about
TOO_NARROW = (
    "intervals around the point are too narrow: hardly a step from it was accepted, so most draws stayed near it; "
    "fit with method='nuts' for intervals of the posterior"
)
CELLS = 1e8  # of workers' confusion matrices in all draws at the most, about: 400 MB


@jax.tree_util.register_pytree_node_class
@dataclass(frozen=True, eq=False, repr=False)
class Fitted:
    """A story fitted to annotations, at draws of its parameters: a member of a `Posterior`.

    It is a JAX pytree, so that it is one argument of compiled functions: of these it has the model, the data without
    gold labels, the draws and the fixed parameters; how they came about is left outside. What is compiled for
    :attr:`at_size` serves other data of nearby sizes too.

    Where the annotations stay on the disk, what is a sum over batches of them is there (:mod:`.by_batch`), and every
    view that needs more is refused.

    Args:
        model: the story with its hyperparameters.
        source: the annotations, with the evidence that was used; or the files that have them.
        outcome: draws of the parameters, the engine's history, statistics and facts.
        method: the engine's name.
        settings: the engine's options, the seed and the backend.
        dims: names of the dimensions of each parameter.
        stored_posterior: ``P(truth | annotations)``, ``(N, K)``, where it is known already; else it is computed when
            it is asked for.
        origin: when the fit was made, and with which versions of what it is made of.
        findings: what a user should know or act on, found when the fit was made.
        stored_sums: sums over the tasks of a fit of files, where they are known already; else they take a pass over the
            data when they are asked for.
        sampled_from: the files of which the annotations are a sample, None where they are all that there are.
        given_rows: the rows of the annotations as they were given, by field, where some do not count, or several count
            as one; None where all do.
    """

    model: Model
    source: Annotations | Files
    outcome: Outcome
    method: str = "em"
    settings: dict[str, Any] = field(default_factory=dict)
    dims: Dims = field(default_factory=dict)
    stored_posterior: np.ndarray | None = None
    origin: Mapping[str, str] = field(default_factory=here_and_now)
    findings: tuple[Finding, ...] = ()
    stored_sums: by_batch.LabelSums | None = None
    sampled_from: Files | None = None
    given_rows: Mapping[str, Any] | None = None

    def tree_flatten(self) -> tuple[tuple, None]:
        """The model, data, draws and fixed parameters as children."""
        return (self.model, self.data, self.draws, self.fixed), None

    @classmethod
    def tree_unflatten(cls, _: None, children: tuple) -> Fitted:
        """Return the fit from its children, without history and findings, for compiled functions."""
        model, data, draws, fixed = children
        return cls(model, data, Outcome(draws, fixed, np.zeros(0), {}))

    @property
    def files(self) -> Files | None:
        """The files that have the annotations; None where these are in memory."""
        return self.source if isinstance(self.source, Files) else None

    @cached_property
    def in_memory(self) -> Fitted | None:
        """Itself, or of files the fit on all annotations, or on a sample of more than :data:`LOOKED_AT`.

        It is for views that a sample serves; None where the files stay with another engine.
        """
        if self.files is None:
            return self
        annotations = self.files.sample(LOOKED_AT)
        if annotations is None:
            return None
        if annotations.n_tasks == self.files.n_tasks:
            return self.replace(source=annotations)
        return self.replace(source=annotations, stored_posterior=None, sampled_from=self.files)

    @property
    def whole(self) -> Annotations | Files:
        """All annotations that were fitted, of which :attr:`source` may be a sample."""
        return self.source if self.sampled_from is None else self.sampled_from

    @property
    def annotations(self) -> Annotations:
        """The data, with the evidence that was used.

        Raises:
            OnDiskError: they are not in memory.
        """
        if isinstance(self.source, Files):
            raise OnDiskError
        return self.source

    @cached_property
    def given(self) -> Annotations:
        """The annotations as they were given, of which views of the data are: those that do not count in the fit, too.

        Raises:
            OnDiskError: they are not in memory.
        """
        return self.annotations if self.given_rows is None else self.annotations.replace(**self.given_rows)

    @cached_property
    def counted_groups(self) -> list[CountedGroup]:
        """Workers of whom several counted as one."""
        return [] if self.files is not None else groups_of(self.findings, self.annotations)

    @property
    def story(self) -> str:
        """The story's name."""
        return self.model.story.__name__

    @property
    def shares_errors(self) -> bool:
        """True where the story lets workers err together."""
        return bool(known(_shares_errors, self.thinned(1).at_size))

    @property
    def draws(self) -> dict[str, Any]:
        """By site, ``(chain, draw, ...)``."""
        return self.outcome.draws

    @property
    def first_draw(self) -> dict[str, Any]:
        """The parameters' first draw by site, which of a point is all that there is."""
        return {name: value[0, 0] for name, value in self.draws.items()}

    @property
    def fixed(self) -> dict[str, Any]:
        """Parameters without a posterior, such as the weights of a network without a prior."""
        return self.outcome.fixed

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of chains and of draws in each."""
        chains, draws = next(iter(self.draws.values())).shape[:2]
        return chains, draws

    @property
    def has_draws(self) -> bool:
        """True where the draws show the parameters' uncertainty; the mode, or any one point, does not show it."""
        return not self.outcome.is_point

    @property
    def progress(self) -> bool:
        """True where what takes long after the fit shows bars: unless it was fitted with ``progress=False``."""
        return not self.outcome.facts.get("silent", False)

    @cached_property
    def with_uncertainty(self) -> Fitted:
        """Itself where it has draws; else with draws around its point, by a few steps of data augmentation.

        The label probabilities are those at the point.
        """
        if self.has_draws:
            return self
        size = sum(np.size(value) for value in self.draws.values()) + self.annotations.n_rows
        n = int(np.clip(min(NUMBERS / size, CELLS / n_cells(self.annotations)), *AROUND))
        mode = jax.tree.map(np.asarray, self.first_draw)
        draws, went_far = draws_around(
            self.model, self.data, mode, self.fixed, self.dims, self.posterior, n, progress=self.progress
        )
        if not went_far:
            warnings.warn(TOO_NARROW, ConvergenceWarning, stacklevel=2)
        by_chain = {name: value[None] for name, value in draws.items()}
        return replace(
            self,
            outcome=self.outcome._replace(draws=by_chain, is_point=False),
            stored_posterior=self.posterior,
        )

    @property
    def class_totals(self) -> pd.DataFrame:
        """By class the expected number of tasks, and the number of annotations that are of it."""
        if self.files is None:
            tasks, annotations = np.asarray(self.posterior, float).sum(0), self.given.votes().sum(0)
        else:
            tasks, annotations = np.asarray(self.label_sums.shares, float), self.files.store.by_class
        totals = {"tasks": tasks, "annotations": annotations}
        return pd.DataFrame(totals, self.source.classes.to_index("class"))

    @property
    def class_shares(self) -> np.ndarray:
        """The classes' shares of the labels, ``(K,)``."""
        if self.files is None:
            return self.posterior.mean(0)
        shares = np.asarray(self.label_sums.shares, dtype=float)
        return shares / shares.sum()

    @cached_property
    def label_sums(self) -> by_batch.LabelSums:
        """Sums over the tasks of a fit of files."""
        if self.stored_sums is not None:
            return self.stored_sums
        if self.files is None:
            raise TypeError("labels in memory have no sums over batches; take them from the posterior")
        return by_batch.label_sums(self.model, self.files, self.draws)

    @property
    def data(self) -> Annotations:
        """The annotations as engines see them: gold labels only as evidence where they were asked for, no times."""
        return self.annotations.as_fitted()

    @property
    def at_size(self) -> Fitted:
        """This fit with its annotations padded to the ladder's sizes, without names, where the story allows it.

        Draws of padded tasks and workers are copies of the last task's or worker's draws. Results of compiled functions
        by task, by worker or by row have to be cut to the true sizes.
        """
        if not self.dims.keys() >= self.draws.keys():
            return self
        seen = sized(self.model, self.data, briefly=True)
        if not isinstance(seen, PaddedAnnotations):
            return replace(self, source=seen)
        draws = grown(self.draws, self.dims, seen, leading=2)
        fixed = grown(self.fixed, self.dims, seen)
        return replace(self, source=seen, outcome=self.outcome._replace(draws=draws, fixed=fixed))

    @property
    def flat_draws(self) -> dict[str, Any]:
        """By site the draws of all chains in a row, ``(S, ...)``."""
        return jax.tree.map(lambda value: value.reshape(-1, *value.shape[2:]), self.draws)

    def at(self, draw: Parameters) -> Density:
        """The story's density at one draw, ``(...)`` by site."""
        return density(self.model, draw | self.fixed, self.annotations)

    def replace(self, **changes: Any) -> Fitted:
        """Return this fit with some fields changed."""
        return replace(self, **changes)

    def with_draws(self, draws: Mapping[str, Any]) -> Fitted:
        """Return this fit at other draws, ``(chain, draw, ...)`` by site, with the posterior at these draws."""
        return replace(self, outcome=self.outcome._replace(draws=dict(draws)), stored_posterior=None)

    def with_data(self, annotations: Annotations) -> Fitted:
        """Return this fit's draws beside other annotations; its posterior is given these annotations."""
        return replace(self, source=annotations, stored_posterior=None, given_rows=None)

    def thinned(self, n: int) -> Fitted:
        """Return this fit at ``n`` draws in one chain, evenly spaced over all; fewer draws than ``n`` are repeated.

        Quantities drawn at a repeated draw, such as replicated annotations, are new at each repeat.
        """
        flat, total = self.flat_draws, int(np.prod(self.shape))
        if n == total:
            return self.with_draws({name: value[None] for name, value in flat.items()})
        chosen = np.linspace(0, total - 1, n).round().astype(int) if n <= total else np.arange(n) % total
        return self.with_draws({name: value[chosen][None] for name, value in flat.items()})

    def mean_over_draws(self, function: Callable[[Parameters], Any]) -> Any:
        """The mean of a function of one draw over all draws; to be called in compiled functions."""

        def add(total: Any, draw: Parameters) -> tuple[Any, None]:
            return jax.tree.map(jnp.add, total, function(draw)), None

        flat = jax.tree.map(jnp.asarray, self.flat_draws)
        first = function({name: value[0] for name, value in flat.items()})
        total, _ = jax.lax.scan(add, first, {name: value[1:] for name, value in flat.items()})
        return jax.tree.map(lambda value: value / int(np.prod(self.shape)), total)

    def over_draws(self, function: Callable[..., Any], *beside: Array) -> Any:
        """A function of one draw of every draw, ``(chain, draw, ...)``; to be called in compiled functions.

        Args:
            function: of the parameters at a draw, and of the entry of each array beside them.
            beside: arrays such as random keys, ``(chain, draw, ...)``.
        """
        return jax.lax.map(lambda chain: jax.lax.map(lambda row: function(*row), chain), (self.draws, *beside))

    @property
    def named_arrays(self) -> NamedArrays:
        """The arrays of :attr:`named_draws`."""
        return self._named(self.draws, self.dims)

    @cached_property
    def named_draws(self) -> xr.Dataset:
        """The parameters' draws, with the dimensions chain, draw and named others; a mode is the only draw."""
        return self.named_arrays.dataset()

    @cached_property
    def parameters(self) -> xr.Dataset:
        """Each parameter's mean over the draws (EM: the mode), with named dimensions.

        Shares of the classes by question are of the classes that the question has.
        """
        named = self.named_draws
        for name, values in named.data_vars.items():
            if values.dims[-2:] == ("question", "truth"):
                cut = within(values.to_numpy(), self.source.kind, np.arange(values.shape[-2]))
                named = named.assign({name: values.copy(data=cut)})
        return named.mean(("chain", "draw"))

    @property
    def history(self) -> pd.Series:
        """By iteration: the log-posterior (EM) or the negative evidence lower bound (SVI); empty for NUTS."""
        name = {"em": "log_posterior", "svi": "loss"}.get(self.method, "history")
        return pd.Series(self.outcome.history, name=name).rename_axis("iteration")

    @cached_property
    def posterior(self) -> np.ndarray:
        r""":math:`P(z_i = k \mid y)`, the mean over draws of :math:`P(z_i = k \mid \theta, y)`: ``(N, K)``."""
        if self.stored_posterior is not None and self.files is None:
            return self.stored_posterior
        mean = (label_posteriors(self) if self.by_start is None else self.by_start).mean(0)
        return mean / mean.sum(-1, keepdims=True)

    @cached_property
    def by_start(self) -> np.ndarray | None:
        """Label probabilities of the sweeps that began at SVI's draws, and of those that began at the votes.

        ``(2, N, K)``; None where there were no sweeps. EM's sweeps leave no draws, and ``apart`` among its facts.
        """
        chains, n = self.shape
        if self.method != "svi" or not self.outcome.facts.get("sweeps") or chains > 1 or n % 2:
            return None
        halves = {name: value.reshape(2, n // 2, *value.shape[2:]) for name, value in self.draws.items()}
        return label_posteriors(self.with_draws(halves))

    @cached_property
    def confusion_draws(self) -> np.ndarray:
        """Each worker's confusion matrix in each draw, of a fit of files in some of them: ``(chain, draw, J, K, L)``.

        Workers who counted as one have one matrix, that of the annotations that counted.

        Raises:
            AnnotationError: the annotations name no workers.
        """
        if not self.source.named:
            raise AnnotationError(
                "the annotations name no workers, so there is nobody to score; fit.iter_labels() yields the tasks"
            )
        if self.files is not None:
            return by_batch.confusions(self.model, self.files, self.draws)[None]
        found = np.asarray(_confusions(self.at_size))[:, :, : self.annotations.n_workers]
        return found[:, :, stand_ins(self.counted_groups, self.annotations)] if self.counted_groups else found

    @cached_property
    def derived(self) -> xr.Dataset:
        """Quantities that the story derives from its parameters, such as a group's share: means over the draws.

        Of a fit of files none is by task or row.
        """
        import xarray as xr

        if self.files is None:
            means, dims = self._cut(_derived_mean(self.at_size), leading=0), self._derived_dims
        else:
            means, dims = by_batch.derived_means(self.model, self.files, self.draws)
        values = {name: value[None, None] for name, value in means.items()}
        return self._named(values, dims).dataset().isel(chain=0, draw=0, drop=True) if values else xr.Dataset()

    def derived_draws(self, *names: str) -> xr.Dataset:
        """The derived quantities in each draw, with the dimensions chain and draw; all of them unless some are named.

        Raises:
            UnknownNameError: the story derives nothing of that name.
        """
        return self.derived_arrays(*names).dataset()

    def derived_arrays(self, *names: str) -> NamedArrays:
        """Draws of derived quantities, as :meth:`derived_draws` has them, without xarray."""
        known = self._derived_dims
        for name in names:
            check_name("derived quantity", name, known)
        return self._named(self._cut(_derived_draws(self.at_size, names or tuple(known)), leading=2), known)

    def _cut(self, values: Mapping[str, Array], leading: int) -> dict[str, np.ndarray]:
        """Derived quantities of the annotations' own sizes."""
        arrays = {name: np.asarray(value) for name, value in values.items()}
        return cut(arrays, self._derived_dims, self.annotations, leading)

    def _named(self, values: Mapping[str, np.ndarray], dims: Dims) -> NamedArrays:
        names = self.annotations if self.files is None else self.files.store.names()
        return parameter_arrays(values, dims, names, self.model.hyperparameters)

    @property
    def _derived_dims(self) -> Dims:
        return self._derived_found[0]

    @property
    def n_derived(self) -> int:
        """Numbers that are derived from a draw."""
        return self._derived_found[1]

    @cached_property
    def _derived_found(self) -> tuple[Dims, int]:
        """Dimensions of the derived quantities, and how many numbers they are, found without computing anything."""
        dims: Dims = {}

        def look(point: Parameters) -> Parameters:
            values, found = derived(self.model, point | self.fixed, self.data)
            dims.update(found)
            return values

        return dims, sum(value.size for value in jax.eval_shape(look, self.first_draw).values())

    @cached_property
    def roles(self) -> dict[str, str]:
        """Roles of parameters and derived quantities that the story names (:func:`crowdppl.derived`), by site."""
        return site_roles(self.model, self.data)

    def draws_of(self, name: str) -> np.ndarray | None:
        """Draws of a parameter or a derived quantity, ``(chain, draw, …)``; None where the story has none of it.

        Of a fit of files parameters alone have draws.
        """
        if name in self.draws:
            return np.asarray(self.draws[name])
        is_derived = self.files is None and name in self._derived_dims
        return self.derived_draws(name)[name].to_numpy() if is_derived else None

    def draws_of_role(self, role: str) -> list[xr.DataArray]:
        """Draws of all parameters and derived quantities that have this role in the story."""
        names = [name for name, of_site in self.roles.items() if of_site == role]
        return [self.named_draws[name] if name in self.draws else self.derived_draws(name)[name] for name in names]

    def log_likelihood(self) -> np.ndarray:
        r"""Of each task in each draw, the truth summed out: :math:`\log p(y_i \mid \theta)`, ``(chain, draw, N)``."""
        return np.asarray(_log_likelihood(self.at_size))[:, :, : self.annotations.n_tasks]


def _shares_errors(fitted: Fitted) -> bool:
    found: list[bool] = []

    def note(emission: Emission) -> Emission:
        found.append(emission.shares_errors)
        return emission

    def look(fitted: Fitted) -> None:
        emission_at(fitted.model, fitted.first_draw | fitted.fixed, fitted.annotations).over_classes(note)

    jax.eval_shape(look, fitted)
    return found[0]


def n_cells(annotations: Annotations) -> int:
    """Return the number of entries in all workers' confusion matrices together."""
    return max(annotations.n_workers, 1) * annotations.n_classes * annotations.n_categories


def label_posteriors(fitted: Fitted) -> np.ndarray:
    r"""Each chain's mean over its draws of :math:`P(z_i = k \mid \theta, y)`, ``(chain, N, K)``."""
    return np.asarray(_label_posteriors(fitted.at_size))[:, : fitted.annotations.n_tasks]


def apart(by_start: np.ndarray) -> float:
    """Return the mean distance in total variation of two sets of label probabilities, ``(2, N, K)``."""
    return float(np.abs(by_start[0] - by_start[1]).sum(-1).mean() / 2)


def label_draws(fitted: Fitted) -> np.ndarray:
    r""":math:`P(z_i = k \mid \theta, y)` in each draw, ``(chain, draw, N, K)``; at a point the label probabilities."""
    if not fitted.has_draws and fitted.shape == (1, 1):
        return np.asarray(fitted.posterior)[None, None]
    return np.asarray(_label_draws(fitted.at_size))[:, :, : fitted.annotations.n_tasks]


@compiled(once=True)
def _label_draws(fitted: Fitted) -> Array:
    return fitted.over_draws(lambda draw: fitted.at(draw).posterior)


@compiled(once=True)
def _label_posteriors(fitted: Fitted) -> Array:
    """Return label probabilities by chain, means over its draws, at the data's compiled sizes: ``(chain, N, K)``."""

    def add(total: Array, draw: Parameters) -> tuple[Array, None]:
        return total + fitted.at(draw).posterior, None

    def of_chain(chain: Parameters) -> Array:
        zero = jnp.zeros((fitted.annotations.n_tasks, fitted.annotations.n_classes))
        total, _ = jax.lax.scan(add, zero, chain)
        return total / total.sum(-1, keepdims=True)

    return jax.lax.map(of_chain, fitted.draws)


@compiled(once=True)
def _log_likelihood(fitted: Fitted) -> Array:
    return fitted.over_draws(lambda draw: fitted.at(draw).log_likelihood)


@compiled(once=True)
def _confusions(fitted: Fitted) -> Array:
    return fitted.over_draws(lambda draw: fitted.at(draw).likelihood.emission.confusions(fitted.annotations))


@compiled(static=("names",), once=True)
def _derived_draws(fitted: Fitted, names: tuple[str, ...]) -> Parameters:
    def of_draw(draw: Parameters) -> Parameters:
        values = derived(fitted.model, draw | fitted.fixed, fitted.annotations)[0]
        return {name: values[name] for name in names}

    return fitted.over_draws(of_draw)


@compiled(once=True)
def _derived_mean(fitted: Fitted) -> Parameters:
    return fitted.mean_over_draws(lambda draw: derived(fitted.model, draw | fitted.fixed, fitted.annotations)[0])
