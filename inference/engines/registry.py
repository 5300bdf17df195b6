"""The engines by name: how to run each, and the options that each takes."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from ...data import unknown_name
from . import em, nuts, svi
from .outcome import Outcome
from .settings import MAY_BE_ZERO, EMSettings, NUTSSettings, SVISettings, checked_settings


class Engine(NamedTuple):
    """How to run an engine, and the options that it takes."""

    name: str
    run: Callable[..., Outcome]
    settings: Any  # a NamedTuple class, whose defaults are the options' defaults
    refused: Mapping[str, str] = MappingProxyType({})  # options that other backends of the engine have, with the reason
    pads: Callable[[Any], bool] = lambda settings: False  # whether with these settings it gives the same on padded data
    fine: bool = False  # whether it runs so long that data are padded little, and fewer sizes share programs

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

MEANT = {
    **dict.fromkeys(("mcmc", "hmc", "nuts"), "nuts"),
    **dict.fromkeys(("vi", "advi", "variational"), "svi"),
    **dict.fromkeys(("map", "mle", "ml"), "em"),
}
"""What engines are called elsewhere."""


def check_method(method: object) -> str:
    """Return the name of an engine.

    Raises:
        UnknownNameError: there is no such engine; the message suggests the one that is so called elsewhere, or the
            nearest.
    """
    if isinstance(method, str) and method in ENGINES:
        return method
    raise unknown_name("method", method, ENGINES, meant=MEANT.get(str(method).casefold()))


__all__ = ["ENGINES", "MAY_BE_ZERO", "Engine", "check_method"]
