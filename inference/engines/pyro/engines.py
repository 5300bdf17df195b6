"""The engines by name, and how a fit is made of a Pyro story."""

from collections.abc import Iterator
from contextlib import contextmanager

import jax
import pyro
import torch

from ....data import Annotations
from ..outcome import Outcome
from . import em, nuts, svi
from .options import TorchOptions
from .problem import Problem, make

ENGINES = {"em": em.run, "svi": svi.run, "nuts": nuts.run}


def run(problem: Problem, method: str, settings: tuple, seed: int, *, progress: bool) -> tuple[Outcome, Annotations]:
    """Run an engine; torch's own random numbers are what they were after it.

    Returns:
        what it found, and the data for the NumPyro twin, with what the classifier then says as prior of the truth.
    """
    with _seeded(seed, problem.source.device), pyro.validation_enabled(False):
        outcome = ENGINES[method](problem, jax.random.key(seed), settings, progress=progress)  # type: ignore[operator]
        return outcome, problem.with_probabilities()


@contextmanager
def _seeded(seed: int, device: torch.device) -> Iterator[None]:
    with torch.random.fork_rng(devices=[] if device.type == "cpu" else [device], device_type=_type(device)):
        torch.manual_seed(seed)
        yield


def _type(device: torch.device) -> str:
    return "cuda" if device.type == "cpu" else device.type  # what fork_rng takes where there is no device to fork


__all__ = ["ENGINES", "TorchOptions", "make", "run"]
