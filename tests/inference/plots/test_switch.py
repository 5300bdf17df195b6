"""The switch is drawn as the fit derives it, by worker and by task."""

import numpy as np
import pytest
from conftest import random_annotations
from made_fits import changed

import crowdppl as cp
from crowdppl.inference.plots.ranking import plot_switch


@pytest.fixture(scope="module")
def fit():
    data = random_annotations(np.random.default_rng(1), n_tasks=60, n_workers=6, n_classes=3, n_rows=300)
    em = cp.fit("common_individual", data, progress=False, max_iterations=3, tolerance=1e9)
    rng = np.random.default_rng(0)
    coin = rng.dirichlet(np.ones(2), (1, 20, 6)).astype(np.float32)
    draws = {name: np.repeat(values, 20, axis=1) for name, values in em.outcome.draws.items()} | {"coin": coin}
    return changed(em, method="svi", outcome=em.outcome._replace(draws=draws))


def test_workers_are_drawn_from_the_greatest_down_with_their_intervals(fit):
    ax = plot_switch(fit, interval=0.5)
    coin = fit.outcome.draws["coin"][0, :, :, 1]
    order = np.argsort(coin.mean(0))
    dots = next(c for c in ax.collections if len(c.get_offsets()) == 6)
    np.testing.assert_allclose(dots.get_offsets()[:, 0], coin.mean(0)[order], rtol=1e-5)
    assert [label.get_text() for label in ax.get_yticklabels()] == [str(j) for j in order]
    ends = np.array([s[:, 0] for c in ax.collections if hasattr(c, "get_segments") for s in c.get_segments()])
    np.testing.assert_allclose(ends, np.quantile(coin, [0.25, 0.75], axis=0, method="weibull").T[order], rtol=1e-5)


def test_many_tasks_are_drawn_by_rank_and_those_without_annotations_are_counted(fit):
    ax = plot_switch(fit, by="task")
    derived = fit.derived["switch_by_task"].to_numpy()
    annotated = derived[~np.isnan(derived)]
    assert 40 < len(annotated) < 60
    np.testing.assert_allclose(ax.lines[0].get_ydata(), np.sort(annotated)[::-1], rtol=1e-5)
    assert f"{len(annotated)} tasks; {60 - len(annotated)} have no annotation" in ax.get_title()


def test_a_story_without_a_switch_and_other_units_are_refused(em, fit):
    with pytest.raises(ValueError, match="dawid_skene derives no switch by task; fit common_individual"):
        plot_switch(em, by="task")
    with pytest.raises(cp.UnknownNameError, match="unknown by 'tasks'; did you mean 'task'"):
        plot_switch(fit, by="tasks")
    with pytest.raises(ValueError, match="interval=0"):
        plot_switch(fit, interval=0)
