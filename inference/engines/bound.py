"""The evidence lower bound, summed in the order of the story's sites."""

from collections.abc import Callable
from typing import Any

import jax
from jax import Array
from numpyro import handlers
from numpyro.infer import Trace_ELBO
from numpyro.infer.util import log_density
from numpyro.util import check_model_guide_match


class OrderedELBO(Trace_ELBO):
    r"""NumPyro's :math:`\mathbb{E}_q[\log p(\theta, y) - \log q(\theta)]`, the same in every process.

    NumPyro's own adds its terms up in the order of a Python set of names, which is another one in each process: the
    rounding of losses would differ between two runs with one seed, and no process would find the programs that another
    has compiled.
    """

    def loss_with_mutable_state(
        self,
        rng_key: Array,
        param_map: dict[str, Array],
        model: Callable[..., Any],
        guide: Callable[..., Any],
        *args: Any,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """The loss, and what statistics the program keeps."""

        def particle(key: Array) -> tuple[Array, dict[str, Any] | None]:
            model_key, guide_key = jax.random.split(key)
            of_guide, guide_trace = log_density(handlers.seed(guide, guide_key), args, kwargs, param_map)
            kept = _mutable(guide_trace)
            replayed = handlers.replay(handlers.seed(model, model_key), guide_trace)
            of_model, model_trace = log_density(replayed, args, kwargs, param_map | kept)
            check_model_guide_match(model_trace, guide_trace)
            return of_model - of_guide, kept | _mutable(model_trace) or None

        if self.num_particles == 1:
            bound, kept = particle(rng_key)
        else:
            bounds, kept = self.vectorize_particles_fn(particle, jax.random.split(rng_key, self.num_particles))
            bound = bounds.mean()
        return {"loss": -bound, "mutable_state": kept}


def _mutable(trace: dict[str, Any]) -> dict[str, Any]:
    return {name: site["value"] for name, site in trace.items() if site["type"] == "mutable"}
