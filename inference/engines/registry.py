"""The engines by name, how to run each, and the options that each takes."""

from collections.abc import Callable
from typing import Any, NamedTuple

from . import em, nuts, svi
from .outcome import Outcome


class Engine(NamedTuple):
    """How to run an engine, and the options that it takes."""

    run: Callable[..., Outcome]
    settings: Any  # a NamedTuple class


ENGINES = {
    "em": Engine(em.run, em.EMSettings),
    "svi": Engine(svi.run, svi.SVISettings),
    "nuts": Engine(nuts.run, nuts.NUTSSettings),
}
MAY_BE_ZERO = {"warmup"}  # of the options that are whole numbers
