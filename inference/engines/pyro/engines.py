"""The engines by name, and how a fit is made of a Pyro story."""

from collections.abc import Iterator
from contextlib import contextmanager

import jax
import pyro
import torch

from ....data import Annotations
from ....models.pyro.classifier import GivenByTorch
from ....models.pyro.twins import numpyro_twin
from ..checkpoints import NOWHERE, Checkpoints
from ..outcome import Outcome
from ..registry import Engine
from ..settings import EMSettings, NUTSSettings
from . import em, nuts, svi
from .options import TorchOptions
from .problem import Problem, make
from .same_story import check_twins

ENGINES = {
    engine.name: engine
    for engine in (
        Engine("em", em.run, EMSettings, {"accelerate": "EM of Pyro stories takes plain steps; leave it out"}),
        Engine("svi", svi.run, svi.TorchSVISettings, svi.REFUSED),
        Engine("nuts", nuts.run, NUTSSettings),
    )
}


def run(
    problem: Problem, method: str, settings: tuple, seed: int, *, progress: bool, keep: Checkpoints = NOWHERE
) -> tuple[Outcome, Annotations]:
    """Run an engine, and leave torch's own random numbers as they were.

    Returns:
        The outcome, and the data for the NumPyro twin, with the trained classifier's probabilities as prior of the
        truth.
    """
    with _seeded(seed, problem.source.device), pyro.validation_enabled(False):
        check_twins(problem, jax.random.key(seed))
        outcome = ENGINES[method].run(problem, jax.random.key(seed), settings, progress=progress, keep=keep)
        return outcome, problem.with_probabilities()


@contextmanager
def _seeded(seed: int, device: torch.device) -> Iterator[None]:
    with torch.random.fork_rng(devices=[] if device.type == "cpu" else [device], device_type=_type(device)):
        torch.manual_seed(seed)
        yield


def _type(device: torch.device) -> str:
    return "cuda" if device.type == "cpu" else device.type  # what fork_rng takes where there is no device to fork


__all__ = ["ENGINES", "GivenByTorch", "TorchOptions", "make", "numpyro_twin", "run"]
