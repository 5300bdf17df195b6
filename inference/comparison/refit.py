"""A fit's story and engine on a part of its annotations."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...data import Annotations, unknown_name
from ..densities.enumerated import Parameters
from ..engines import ascent
from ..engines.registry import ENGINES
from ..results import Fit
from .held_out import counts


class Refit(NamedTuple):
    """What a story says of its parameters from a part of the annotations."""

    seen: Annotations
    draws: Parameters
    fixed: Parameters


def refit(fit: Fit, held: np.ndarray, by: str | None = None) -> Refit:
    """Fit again without some annotations, with the same seed and, by the same engine, the same options.

    EM's tables are taken to the mean of their conditional posterior, since at their mode an annotation that nobody has
    given yet is impossible.

    Args:
        fit: of the story.
        held: how many of each row's annotations are not shown, ``(A,)``.
        by: another engine's name, with its default options; None for the fit's own.

    Raises:
        UnknownNameError: there is no such engine.
        ValueError: the fit is one of Pyro's.
    """
    if fit.settings.get("backend") == "pyro":
        raise ValueError(
            f"{fit.story} was fitted by Pyro, and is not refitted here; compare fits that have draws by leave-one-out "
            "(method='svi' or 'nuts'), or fit with backend='numpyro'"
        )
    method = fit.method if by is None else by
    if method not in ENGINES:
        raise unknown_name("engine", method, ENGINES)
    engine = ENGINES[method]
    same = {name: fit.settings[name] for name in engine.settings._fields} if method == fit.method else {}
    whole = jax.tree.map(jnp.asarray, fit.annotations.replace(gold=None))
    seen = whole.replace(count=jnp.asarray(counts(fit.annotations) - held))
    outcome = engine.run(fit.model, seen, jax.random.key(fit.settings["seed"]), engine.settings(**same), progress=False)
    draws = {name: jnp.asarray(value) for name, value in outcome.draws.items()}
    fixed = {name: jnp.asarray(value) for name, value in outcome.fixed.items()}
    if method == "em":
        mode = {name: value[0, 0] for name, value in draws.items()}
        moved = _interior(fit.model, seen, mode | fixed)
        draws = {name: moved[name][None, None] for name in draws}
    return Refit(seen, draws, fixed)


_interior = jax.jit(ascent.interior, static_argnums=0)
