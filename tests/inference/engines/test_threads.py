"""Fits in several threads at a time."""

from concurrent.futures import ThreadPoolExecutor

import pytest

import crowdppl as cp


@pytest.mark.parametrize("story", ["dawid_skene", "mace"])
def test_fits_in_threads_find_what_one_finds_alone(story):
    """NumPyro's one stack of handlers made threads fail."""
    crowds = [cp.simulate("dawid_skene", n_tasks=30 + n, n_workers=4, seed=n)[0].without_gold() for n in range(6)]
    with ThreadPoolExecutor(6) as threads:
        together = list(threads.map(lambda crowd: cp.fit(story, crowd), crowds))  # each with its progress bar
    for crowd, fit in zip(crowds, together, strict=True):
        alone = cp.fit(story, crowd, progress=False)
        assert fit.labels.equals(alone.labels)
        assert fit.workers.equals(alone.workers)
