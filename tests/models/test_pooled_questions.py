"""A worker's quality on a question, drawn towards that on all questions by a strength that is learned."""

import jax
import numpy as np
import pandas as pd
import pytest
from brute_force import enumerate_labellings
from numpyro.infer.util import log_density
from whole_density import density

import crowdppl as cp
from crowdppl import Prevalence, StoryError
from crowdppl.data.questions import SHARED
from crowdppl.inference.densities.model import Model
from crowdppl.models import STORIES

QUESTIONS = ["coherence", "fluency", "style"]


def drawn(accuracy, n_tasks=150, seed=0):
    """Yes and no of workers with these accuracies ``(J, Q)``."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, (n_tasks, 1, len(accuracy[0])))
    said = truth ^ (rng.random((n_tasks, *np.shape(accuracy))) > accuracy)
    cells = [(i, f"w{j}", QUESTIONS[q], int(said[i, j, q])) for i, j, q in np.ndindex(said.shape)]
    return cp.Annotations.from_frame(
        pd.DataFrame(cells, columns=["task", "worker", "question", "label"]), question="question"
    )


ALIKE = np.repeat([[0.95], [0.85], [0.75], [0.65], [0.9]], 3, axis=1)
APART = np.array([[0.95, 0.6, 0.8], [0.6, 0.95, 0.7], [0.8, 0.7, 0.97], [0.9, 0.9, 0.6], [0.65, 0.8, 0.95]])
MODEL = Model(STORIES["dawid_skene"], {"pooled_questions": True, "truth_prior": Prevalence(by_question=False)})


def small():
    return drawn(ALIKE[:2, :2], n_tasks=2).by_question(shared=True)


def values_of(annotations):
    rng = np.random.default_rng(1)
    tables = rng.dirichlet([1, 1], (annotations.n_workers, 2))
    return {"question_share": np.array([0.3, 0.7]), "confusion": tables, "prevalence": np.array([0.4, 0.6])}


def mixed(annotations, values):
    at = [annotations.workers.index_of([(name, SHARED)])[0] for name, _ in annotations.workers]
    return 0.3 * values["confusion"] + 0.7 * values["confusion"][at]


def test_likelihood_and_posterior_are_those_of_all_labellings():
    annotations = small()
    values = values_of(annotations)
    at = density(MODEL, values, annotations)
    table = mixed(annotations, values)
    total, posterior, by_task = enumerate_labellings(annotations, values["prevalence"], table)
    np.testing.assert_allclose(at.log_likelihood.sum(), total, rtol=1e-5)
    np.testing.assert_allclose(at.log_likelihood, by_task, rtol=1e-5)
    np.testing.assert_allclose(at.posterior, posterior, atol=1e-5)
    np.testing.assert_allclose(at.likelihood.emission.confusions(annotations), table, atol=1e-6)
    rows = at.likelihood.emission.probs(annotations.worker, annotations.task)
    np.testing.assert_allclose(rows, table[annotations.worker], atol=1e-6)


def test_numpyro_and_pyro_have_the_density():
    annotations = jax.tree.map(jax.numpy.asarray, small())
    values = {name: jax.numpy.asarray(value, float) for name, value in values_of(annotations).items()}
    ours = float(density(MODEL, values, annotations).log_posterior)
    program, arguments = cp.marginal("dawid_skene", annotations, **MODEL.hyperparameters)
    assert float(log_density(program, arguments, {}, values)[0]) == pytest.approx(ours, rel=1e-5)
    torch = pytest.importorskip("torch", reason="the extra pyro is not installed: no torch")
    poutine = pytest.importorskip("pyro", reason="the extra pyro is not installed: no pyro").poutine
    from crowdppl.inference.torch import marginal_in_pyro

    given = {name: torch.tensor(np.asarray(value)) for name, value in values.items()}
    found = poutine.trace(poutine.condition(marginal_in_pyro(MODEL), data=given)).get_trace(small()).log_prob_sum()
    assert float(found) == pytest.approx(ours, rel=1e-5)


@pytest.mark.parametrize(("accuracy", "least", "most"), [(ALIKE, 0.6, 1.0), (APART, 0.0, 0.4)])
def test_the_strength_is_learned(accuracy, least, most):
    fit = cp.fit("one_coin", drawn(accuracy), quality="pooled", progress=False)
    share = fit.parameters["question_share"]
    assert share.coords["quality"].to_numpy().tolist() == ["question", "all questions"]
    assert least <= float(share.sel(quality="all questions")) <= most
    rises = np.diff(fit.history.to_numpy())
    assert (rises > -1e-5 * np.abs(fit.history.iloc[-1])).all()
    found = fit.workers["accuracy"].drop(SHARED, level="question").unstack().to_numpy()
    np.testing.assert_allclose(found, accuracy, atol=0.12)  # of 150 tasks and five workers


def test_pooled_workers_are_nearer_the_truth_than_by_question_where_workers_are_alike():
    error = {}
    for quality in ("pooled", "by_question"):
        found = [
            cp.fit("one_coin", drawn(ALIKE, 30, seed), quality=quality, progress=False).workers["accuracy"]
            for seed in range(4)
        ]
        cells = [np.asarray(each[each.index.get_level_values("question") != SHARED]).reshape(5, 3) for each in found]
        error[quality] = np.sqrt(np.mean((np.stack(cells) - ALIKE) ** 2))
    assert error["pooled"] < error["by_question"]


def test_a_pooled_fit_is_kept_updated_and_has_intervals(tmp_path):
    annotations = drawn(ALIKE, 40)
    fit = cp.fit("dawid_skene", annotations, quality="pooled", progress=False)
    assert fit.workers.loc["w0"].index.tolist() == [*QUESTIONS, SHARED]
    frame = fit.workers.drop(SHARED, level="question")
    assert (frame["accuracy_low"] < frame["accuracy"]).all()
    fit.save(tmp_path / "fit")
    pd.testing.assert_frame_equal(cp.load_fit(tmp_path / "fit").workers, fit.workers)
    more = fit.update(annotations.to_frame().head(3).assign(worker="new"), progress=False)
    assert {("new", SHARED), ("w0", SHARED)} <= set(more.workers.index)


def test_what_cannot_be_is_refused():
    annotations = drawn(ALIKE, 10)
    with pytest.raises(StoryError, match="give quality='pooled'"):
        cp.fit("one_coin", annotations, pooled_questions=True, progress=False)
    with pytest.raises(ValueError, match="devices=1"):
        cp.fit("one_coin", annotations, quality="pooled", devices=1, progress=False)
    with pytest.raises(StoryError, match="give quality='by_question'"):
        cp.fit("independent_confusion_subtypes", annotations, quality="pooled", progress=False)
    with pytest.raises(Exception, match="pooled_questions"):
        cp.fit("majority_vote", annotations, quality="pooled", progress=False)
