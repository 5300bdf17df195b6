"""Timing side by side, so that what else the machine does meets all candidates alike."""

from collections.abc import Callable, Mapping
from time import perf_counter

import jax.monitoring
import numpy as np


class CompileClock:
    """Reads, in seconds, the time of day and how long XLA has compiled since the clock was made."""

    def __init__(self) -> None:
        self.compiling = 0.0
        jax.monitoring.register_event_duration_secs_listener(self._add)

    def __call__(self) -> np.ndarray:
        """Return both readings, shape (2,)."""
        return np.array([perf_counter(), self.compiling])

    def _add(self, event: str, seconds: float, **_: object) -> None:
        if event.endswith("backend_compile_duration"):
            self.compiling += seconds


def interleaved(
    candidates: Mapping[str, Callable[[], object]],
    repeats: int,
    clock: Callable[[], float | np.ndarray] = perf_counter,
) -> dict[str, np.ndarray]:
    """What each candidate takes in each round, by the clock; a round runs all of them, one after the other.

    Args:
        candidates: by name.
        repeats: rounds.
        clock: read before and after; of several readings, the result has a column for each.
    """
    taken: dict[str, list[float | np.ndarray]] = {name: [] for name in candidates}
    for _ in range(repeats):
        for name, run in candidates.items():
            started = clock()
            run()
            taken[name].append(clock() - started)
    return {name: np.array(values) for name, values in taken.items()}
