"""Max-MIG: the gain by hand, and labels from a crowd that errs together."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy.special import log_softmax, softmax

import crowdppl as cp
from crowdppl import Classifier, StoryError
from crowdppl.models.parts.scored_annotations import InformationGain

pytestmark = pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")


def test_the_gain_is_the_papers_sum_over_pairs_of_tasks():
    rng = np.random.default_rng(0)
    n, j, k = 7, 3, 3
    rows = [(i, w, rng.integers(k)) for i in range(n) for w in range(j) if rng.random() < 0.8]
    frame = pd.DataFrame(rows, columns=["task", "worker", "label"])
    annotations = cp.Annotations.from_frame(frame, tasks=range(n), workers=range(j), classes=range(k))
    votes, bias, log_h = rng.normal(0, 1, (j, k, k)), rng.normal(0, 1, k), log_softmax(rng.normal(0, 1, (n, k)), -1)
    logits = np.tile(bias, (n, 1))
    for i, w, y in rows:
        logits[i] += votes[w, y]
    g, p, h = softmax(logits, -1), softmax(bias), np.exp(log_h)
    kappa = np.einsum("ic,jc->ij", h / p, g)
    gain = np.log(np.diag(kappa)).mean() - (kappa.sum() - np.trace(kappa)) / (n * (n - 1))
    at = jax.tree.map(jnp.asarray, annotations)
    found = InformationGain(*map(jnp.asarray, (votes, bias, log_h))).by_task(at, at.label)
    np.testing.assert_allclose(found.mean(), gain, rtol=1e-5)


@pytest.fixture(scope="module")
def crowd():
    """300 tasks of three classes; one good worker, and four who copy a guess that has nothing to do with the class."""
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 3, 300)
    x = rng.normal(3 * np.eye(3)[truth], 1.0).astype(np.float32)
    guess = rng.integers(0, 3, 300)
    rows = []
    for i in range(300):
        rows += [(i, j, truth[i] if rng.random() < 0.8 else rng.integers(3)) for j in range(3)]
        rows += [(i, j, guess[i]) for j in (3, 4)]
    frame = pd.DataFrame(rows, columns=["task", "worker", "label"])
    return cp.Annotations.from_frame(frame, features=dict(enumerate(x)), gold=dict(enumerate(truth)))


def test_labels_and_classifier_are_right_where_workers_copy_a_guess(crowd, tmp_path):
    """Three workers are right in 87 % of the tasks each; classes lie three deviations apart: 95 % can be had."""
    network = Classifier("mlp", hidden=(16,), dropout=0.2)
    fit = cp.fit("max_mig", crowd, classifier=network, epochs=30, network_rate=3e-3, progress=False)
    assert (fit.posterior.argmax(-1) == crowd.gold).mean() > 0.95
    assert (fit.predict_proba(crowd.features).argmax(-1) == crowd.gold).mean() > 0.92
    assert fit.posterior.sum(-1) == pytest.approx(np.ones(300), abs=1e-5)
    assert np.mean(fit.annotations.votes().argmax(-1) == crowd.gold) < 0.95
    fit.save(tmp_path / "fit")
    back = cp.load_fit(tmp_path / "fit")
    np.testing.assert_allclose(back.predict_proba(crowd.features), fit.predict_proba(crowd.features), atol=1e-6)
    np.testing.assert_allclose(back.posterior, fit.posterior, atol=1e-6)


def test_a_logistic_classifier_is_trained_in_minibatches_for_so_many_epochs_too(crowd):
    fits = [cp.fit("max_mig", crowd, classifier="logistic", epochs=n, progress=False) for n in (1, 3)]
    assert [len(fit.rule.history) for fit in fits] == [2, 4]  # with that of the start
    with pytest.raises(ValueError, match=r"max_iterations=3 would be ignored: .*minibatches; give epochs"):
        cp.fit("max_mig", crowd, classifier="logistic", max_iterations=3)


def test_a_classifier_is_needed(crowd):
    with pytest.raises(StoryError, match="max_mig learns a classifier"):
        cp.fit("max_mig", crowd)
