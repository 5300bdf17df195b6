"""The engines by name, the options that each takes, and how each runs: on data of the ladder's sizes where it may."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array
from jax.sharding import Mesh

from ...data import Annotations, unknown_name
from ...data.errors import check_name
from ...data.padding import PaddedAnnotations, anonymous
from ..densities.enumerated import Parameters
from ..densities.model import Model
from ..densities.not_finite import not_finite
from ..densities.padded_sites import cut, grown
from ..densities.portable import counted_once, is_portable, sized, start_of
from ..densities.ready_programs import use_program_cache
from ..densities.sites import Dims
from ..sources.devices import places, sharded
from . import em, nuts, online_em, svi
from .checkpoints import NO_CHECKPOINTS, Checkpoints
from .outcome import Outcome
from .settings import MAY_BE_ZERO, EMSettings, NUTSSettings, SVISettings, checked_settings


class Engine(NamedTuple):
    """An engine: its function, and the options that it takes."""

    name: str
    run: Callable[..., Outcome]
    settings: Any  # a NamedTuple class, whose defaults are the options' defaults
    refused: Mapping[str, str] = MappingProxyType({})  # options that other backends of the engine have, with the reason
    pads: Callable[[Any], bool] = lambda settings: False  # whether with these settings it gives the same on padded data
    fine: bool = False  # whether it runs so long that data are padded little, and fewer sizes share programs
    kept: tuple[str, ...] = ()  # options that a fit to files which goes on must have in common with the earlier one
    defaults: Mapping[str, Any] = MappingProxyType({})  # of options, where they are others than the settings'
    n_batches: int = 1  # of files, at the least, as far as they have rows for so many

    def checked(self, options: Mapping[str, Any]) -> Any:
        """Return the engine's settings with these options: :func:`.checked_settings`."""
        return checked_settings(self.settings, options, self.refused)


ENGINES = {
    engine.name: engine
    for engine in (
        Engine("em", em.run, EMSettings, pads=lambda settings: settings.batch_size is None),
        Engine("svi", svi.run, SVISettings, pads=svi.pads),
        Engine("nuts", nuts.run, NUTSSettings, pads=lambda settings: True, fine=True),
    )
}

EXACT, STOCHASTIC = "exact", "stochastic"  # steps of EM over files
ONLINE = 100  # steps in a pass over files at the most, where each batch is one
STEPS = {
    EXACT: ENGINES["em"]._replace(kept=("learning_rate", "halvings", "accelerate")),
    STOCHASTIC: Engine(
        "em",
        online_em.run,
        EMSettings,
        kept=("learning_rate", "halvings"),
        defaults=MappingProxyType({"epochs": online_em.PASSES}),
        n_batches=ONLINE,
    ),
    "svi": ENGINES["svi"]._replace(kept=("learning_rate", "max_iterations", "guide", "particles"), n_batches=ONLINE),
}
"""Engines over files: EM's by its step, and SVI."""

MEANT = {
    **dict.fromkeys(("mcmc", "hmc", "nuts"), "nuts"),
    **dict.fromkeys(("vi", "advi", "variational"), "svi"),
    **dict.fromkeys(("map", "mle", "ml"), "em"),
}
"""Names of engines elsewhere."""


def check_method(method: object) -> str:
    """Return the name of an engine.

    Raises:
        UnknownNameError: there is no such engine; the message suggests the one that is so called elsewhere, or the
            nearest.
    """
    if isinstance(method, str) and method in ENGINES:
        return method
    raise unknown_name("method", method, ENGINES, meant=MEANT.get(str(method).casefold()))


def engine_of_files(method: str, step: str) -> tuple[str, Engine]:
    """Return the engine that fits to files, with its name in :data:`STEPS`.

    Raises:
        UnknownNameError: there is no such step.
        ValueError: the method has no steps to choose from.
    """
    check_name("value of step", step, (EXACT, STOCHASTIC))
    if method == "em":
        return step, STEPS[step]
    if step != EXACT:
        raise ValueError(f"step={step!r} belongs to method='em', and SVI takes a step after each chunk; leave it out")
    return method, STEPS[method]


def run_at_size(
    engine: Engine,
    model: Model,
    annotations: Annotations,
    dims: Dims,
    key: Array,
    settings: Any,
    *,
    progress: bool,
    mesh: Mesh | None = None,
    start: Parameters | None = None,
    keep: Checkpoints = NO_CHECKPOINTS,
) -> Outcome:
    """Run an engine on :func:`.sized` annotations, and cut what it returns to their own sizes.

    Args:
        mesh: devices over which the tasks are spread; None for one device.
        start: parameters to start from, of one device; the story's own start by default. From near its end an engine
            has so short a way that its data count as looked at briefly.

    Raises:
        FloatingPointError: the engine's own; where the story's density is not finite at its start, with the site and
            its first value at fault.
        ValueError: several devices for what runs on one only: minibatches, networks and guides that do not factorise.
    """
    use_program_cache()
    if mesh is not None:
        if not engine.pads(settings) or model.has_network:
            raise ValueError(
                f"devices: {engine.name} runs on several devices where it takes all tasks in every step; leave out "
                "devices, or the network, batch_size or guide"
            )
        data = sharded(annotations, mesh)
        real = places(annotations, data)
    else:
        if engine.pads(settings):
            seen = counted_once(model, annotations, dims, fine=engine.fine) or sized(
                model, annotations, fine=engine.fine, briefly=start is not None
            )
        else:
            seen = anonymous(annotations) if is_portable(model, annotations) else annotations
        if start is not None:
            start = grown(start, dims, seen) if isinstance(seen, PaddedAnnotations) else start
            start = jax.device_put(start)
        data, real = jax.device_put(seen), None
    try:
        outcome = engine.run(model, data, key, settings, progress=progress, start=start, keep=keep)
    except FloatingPointError as error:
        what = not_finite(model, annotations, start_of(model, annotations, dims, key))
        if what is None:
            raise
        raise FloatingPointError(f"where the fit starts, {what}") from error
    if not isinstance(data, PaddedAnnotations):
        return outcome

    def own(values: Mapping[str, Any], leading: int = 0) -> dict[str, Any]:
        if real is not None:
            axes = {name: leading + dims[name].index("task") for name in values if "task" in dims.get(name, ())}
            values = {name: np.take(v, real, axes[name]) if name in axes else v for name, v in values.items()}
        return cut(values, dims, annotations, leading=leading)

    ends = tuple(map(own, outcome.ends))
    return outcome._replace(draws=own(outcome.draws, 2), fixed=own(outcome.fixed), ends=ends)


__all__ = ["ENGINES", "MAY_BE_ZERO", "STEPS", "Engine", "check_method", "engine_of_files", "run_at_size"]
