"""Timing side by side, so that what else the machine does meets all candidates alike."""

from collections.abc import Callable, Mapping
from time import perf_counter

import numpy as np


def interleaved(candidates: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, np.ndarray]:
    """Seconds of each candidate in each of ``repeats`` rounds; a round runs all of them, one after the other."""
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(repeats):
        for name, run in candidates.items():
            started = perf_counter()
            run()
            seconds[name].append(perf_counter() - started)
    return {name: np.array(values) for name, values in seconds.items()}
