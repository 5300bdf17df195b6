"""Bars of what follows a fit: shown once it takes long, where nobody asked for silence."""

from contextlib import contextmanager

import pytest

import crowdppl as cp
from crowdppl.inference.engines import progress


@pytest.fixture
def bars(monkeypatch):
    """By name of each bar that was shown, how often it was told of steps, where nothing is waited for."""
    shown = {}

    @contextmanager
    def bar(name, total, *, show):
        def tell(done, note):
            assert 0 <= done <= total
            shown[name] = shown.get(name, 0) + 1

        yield tell

    monkeypatch.setattr(progress, "progress_bar", bar)
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    return shown


def fitted(**options):
    annotations, _ = cp.simulate("dawid_skene", n_tasks=30, n_workers=5, n_classes=2, annotations_per_task=3, seed=0)
    return cp.fit("one_coin", annotations.without_gold(), **{"progress": False, **options})


def test_a_bar_is_shown_once_two_seconds_have_passed_and_something_is_left(bars, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 2.0)
    now = iter([0.0, 1.9, 2.1, 2.2])
    monkeypatch.setattr(progress, "monotonic", lambda: next(now))
    with progress.late_bar("work") as tell:
        for done in range(1, 4):
            tell(done, 4)
            assert bars == ({} if done == 1 else {"work": done - 1})
    with progress.late_bar("the only step") as tell:
        tell(1, 1)
    assert set(bars) == {"work"}


def test_intervals_checks_pages_and_comparisons_have_bars(bars, tmp_path):
    fit = fitted(progress=True, max_iterations=50)
    bars.clear()
    assert len(fit.workers) == 5
    assert {"draws around the point", "correlation of errors"} == set(bars)
    bars.clear()
    cp.check(fit, draws=3, replicates=2)
    assert bars == {"replicates": 3}
    bars.clear()
    fit.report(tmp_path / "page.html", checks=False)
    assert "sections of the page" in bars
    bars.clear()
    with_draws = fitted(method="svi", max_iterations=20, draws=10, sweeps=0)
    cp.compare({"one": with_draws, "same": with_draws}, method="loo")
    assert bars == {"leave-one-out": 2}


def test_silence_is_kept(bars, tmp_path):
    fit = fitted(progress=False)
    assert len(fit.workers) == 5
    cp.check(fit, draws=3, replicates=2, progress=False)
    fit.report(tmp_path / "page.html", checks=False, progress=False)
    with progress.doing("writing", show=False):
        cp.check(fit, draws=3, replicates=2)
    assert not bars
    with pytest.raises(ValueError, match="progress='no'"):
        cp.check(fit, progress="no")
    with pytest.raises(ValueError, match="progress='no'"):
        fit.report(tmp_path / "page.html", progress="no")
