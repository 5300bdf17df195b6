"""The engines by name: how to run each, and the options that each takes."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from ...data import unknown_name
from ...data.errors import check_name
from . import em, nuts, online_em, svi
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


__all__ = ["ENGINES", "MAY_BE_ZERO", "STEPS", "Engine", "check_method", "engine_of_files"]
