"""Every story with every part that goes over any story, in Pyro: density and labels are NumPyro's, by every engine."""

from pathlib import Path

import numpy as np
import pytest
from pyro_cells import ALL_AT_ONCE, CELLS, annotations_for, table

torch = pytest.importorskip("torch", reason="the extra pyro is not installed: no torch")
pyro = pytest.importorskip("pyro", reason="the extra pyro is not installed: no pyro")

from pyro import poutine
from pyro.infer import Trace_ELBO, TraceEnum_ELBO

import crowdppl as cp
from crowdppl.inference.densities.enumerated import density
from crowdppl.inference.densities.programs import compiled
from crowdppl.inference.torch import in_pyro, marginal_in_pyro

CLOSE = 1e-5
BY_DEFAULT = ("shared errors", "difficulty of tasks", "abstentions", "models' probabilities")
"""Of two_coin, whose programs are the smallest; the other stories are tried in the slow suite."""
OF_DRAWS = {
    "svi": {"max_iterations": 300, "draws": 30, "tolerance": 1.0},
    "nuts": {"warmup": 100, "draws": 60, "chains": 1, "max_tree_depth": 6},
}
pytestmark = [
    pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::crowdppl.CrowdWarning"),
]


def cells(found, by_default=()):
    """As parameters of a test, all but a few marked slow."""
    quick = {c.name for c in found if c.story == "two_coin" and c.part in by_default}
    return [pytest.param(c, id=c.name, marks=[] if c.name in quick else [pytest.mark.slow]) for c in found]


def fitted_or_refused(cell, **options):
    """NumPyro's fit of the cell; None where it refuses the part, which Pyro then does by the same sentence."""
    if cell.refusal is None:
        return cp.fit(cell.story, annotations_for(cell), progress=False, **cell.options, **options)
    for backend in ("numpyro", "pyro"):
        with pytest.raises(cp.StoryError, match=cell.refusal):
            cp.fit(cell.story, annotations_for(cell), backend=backend, method="svi", progress=False, **cell.options)
    return None


@compiled
def log_posterior(model, data, values):
    return density(model, values, data).log_posterior


def no_guide(*arguments):
    """Of a program whose parameters all have values."""


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("cell", cells([*CELLS, *ALL_AT_ONCE], BY_DEFAULT))
def test_ems_solution_has_in_pyro_the_density_and_the_labels_of_numpyro(cell):
    """The labels by Pyro's own enumeration, but for those of questions that are summed out together."""
    if (found := fitted_or_refused(cell, max_iterations=20)) is None:
        return
    options = {"progress": False, "max_iterations": 20} | cell.options
    theirs, ours = found.fitted, cp.fit(cell.story, annotations_for(cell), backend="pyro", **options).fitted
    np.testing.assert_allclose(ours.posterior, theirs.posterior, atol=CLOSE)
    values = {name: np.asarray(draws[0, 0], dtype=float) for name, draws in theirs.draws.items()}
    there = {name: torch.tensor(value) for name, value in values.items()}
    at = poutine.condition(marginal_in_pyro(theirs.model), data=there)
    expected = float(log_posterior(theirs.model, theirs.data, values))
    assert -Trace_ELBO().loss(at, no_guide, theirs.data) == pytest.approx(expected, rel=CLOSE)
    if not theirs.model.truth_prior.joint:
        at = poutine.condition(in_pyro(theirs.model), data=there)
        elbo = TraceEnum_ELBO(max_plate_nesting=2)
        assert -elbo.loss(at, no_guide, theirs.data) == pytest.approx(expected, rel=CLOSE)
        labels = elbo.compute_marginals(at, no_guide, theirs.data)["truth"].logits.softmax(-1)
        np.testing.assert_allclose(labels.numpy(), theirs.posterior, atol=CLOSE)


NEAR_HALF = ("annotator_groups, alone", "nuts")
"""A cell whose labels are too uncertain to be counted."""

OF_ENGINES = [
    *(c for c in CELLS if c.part in ("alone", "a classifier with a prior", "correlated questions", "pooled questions")),
    *ALL_AT_ONCE,
]


@pytest.mark.parametrize("method", OF_DRAWS)
@pytest.mark.parametrize("cell", cells(OF_ENGINES))
def test_svi_and_nuts_of_pyro_sample_its_parameters_and_find_the_labels(cell, method):
    """Few steps and draws are to find most labels of a crowd of which most are able; the mean error is of all tasks.

    Of groups without names on 30 tasks NUTS of either language has labels near a half, so that it is to rank them.
    """
    if (theirs := fitted_or_refused(cell)) is None:
        return
    annotations = annotations_for(cell)
    ours = cp.fit(
        cell.story, annotations, method=method, backend="pyro", progress=False, **OF_DRAWS[method], **cell.options
    )
    assert set(ours.outcome.draws) == set(theirs.outcome.draws)
    assert all(np.isfinite(draws).all() for draws in ours.outcome.draws.values())
    assert max(draws.std() for draws in ours.outcome.draws.values()) > 0
    if annotations.gold is not None:
        gold = np.asarray(annotations.gold)
        if (cell.name, method) == NEAR_HALF:
            second = ours.posterior[:, 1]
            above = second[gold == 1][:, None] - second[gold == 0]
            assert (above > 0).mean() + (above == 0).mean() / 2 >= 0.9
        else:
            assert (ours.posterior.argmax(-1) == gold).mean() >= 0.8
    else:
        assert np.abs(ours.posterior - theirs.posterior).mean() < 0.2


def test_the_guides_table_is_what_is_tested():
    page = Path(cp.__file__).with_name("docs") / "howto" / "classifier.md"
    assert "\n".join(table()) in page.read_text(encoding="utf-8")
