"""One network with an output for each worker: DoctorNet, WDN."""

import numpy as np
import pandas as pd
import pytest

import crowdppl as cp
from crowdppl import AnnotationError, Classifier, StoryError
from crowdppl.inference.baselines.worker_networks import averaging_weights

pytestmark = pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
TRAINING = {"classifier": Classifier("mlp", hidden=(16,), dropout=0.0), "epochs": 20, "network_rate": 1e-2}


@pytest.fixture(scope="module")
def crowd():
    """200 tasks of two Gaussians; three of six workers annotate each, of whom four know and two guess."""
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 200)
    x = rng.normal(np.where(truth, 1.5, -1.5)[:, None], 1.0, (200, 2))
    right = [0.95, 0.9, 0.9, 0.85, 0.5, 0.5]
    rows = [
        (i, j, truth[i] if rng.random() < right[j] else 1 - truth[i])
        for i in range(200)
        for j in rng.choice(6, 3, replace=False)
    ]
    frame = pd.DataFrame(rows, columns=["task", "worker", "label"])
    return cp.Annotations.from_frame(frame, features=dict(enumerate(x)), gold=dict(enumerate(truth)))


@pytest.mark.slow
def test_with_one_worker_doctor_net_is_that_workers_classifier(crowd):
    """Both minimise the cross-entropy of the same annotations from the same start, in the same batches."""
    frame = crowd.to_frame()
    one = cp.Annotations.from_frame(
        frame[frame["worker"] == 0], tasks=range(200), features=dict(enumerate(np.asarray(crowd.features)))
    )
    net, own = (cp.fit(name, one, progress=False, **TRAINING) for name in ("doctor_net", "majority_vote"))
    np.testing.assert_allclose(net.predict_proba(one.features), own.predict_proba(one.features), atol=1e-4)


def test_labels_are_the_even_average_of_the_workers_outputs(crowd):
    fit = cp.fit("doctor_net", crowd, progress=False, **TRAINING)
    heads = fit.rule.predicted_annotations()
    assert heads.shape == (200, 6, 2)
    np.testing.assert_allclose(heads.mean(1), fit.posterior, atol=1e-5)
    np.testing.assert_allclose(fit.predict_proba(crowd.features), fit.posterior, atol=1e-5)


def test_wdn_learns_weights_that_favour_the_workers_who_know(crowd):
    fit = cp.fit("wdn", crowd, progress=False, **TRAINING)
    weights = fit.workers["averaging_weight"].to_numpy()
    assert weights.sum() == pytest.approx(1, abs=1e-5)
    assert weights[4:].sum() < 0.2  # of even weights a third
    heads = fit.rule.predicted_annotations()
    np.testing.assert_allclose(np.einsum("j,njk->nk", weights, heads), fit.posterior, atol=1e-5)


def test_averaging_weights_are_the_maximum_of_the_left_out_score(crowd):
    """No weights moved a little have a higher score with its Dirichlet prior of one annotation for each worker."""
    rng = np.random.default_rng(2)
    heads = rng.dirichlet(np.ones(2), (200, 6))
    gave = np.zeros((200, 6), bool)
    gave[crowd.task, crowd.worker] = True

    def score(weight):
        rest = np.where(gave, 0.0, weight)  # three of six annotate a task, which is not more than half
        mean = np.einsum("nj,njk->nk", rest, heads) / rest.sum(-1, keepdims=True)
        return np.log(mean[crowd.task, crowd.label]).sum() + np.log(weight).sum()

    found = averaging_weights(crowd, heads).astype(float)
    best = score(found / found.sum())
    moved = found * np.exp(rng.normal(0, 0.05, (50, 6)))
    assert max(score(weight / weight.sum()) for weight in moved) < best + 1e-3


def test_wdn_trains_itself_and_its_networks_come_back_from_the_disk(crowd, tmp_path):
    found = cp.self_train("wdn", crowd, rounds=1, growth=0.2, **TRAINING)
    assert found.rounds["pseudo_annotations"].iloc[-1] == len(found.pseudo) > 0
    found.fit.save(tmp_path / "fit")
    back = cp.load_fit(tmp_path / "fit")
    np.testing.assert_allclose(back.predict_proba(crowd.features), found.fit.posterior, atol=1e-5)
    np.testing.assert_allclose(back.workers["averaging_weight"], found.fit.workers["averaging_weight"])


def test_gold_labels_take_the_place_of_predicted_ones(crowd):
    fit = cp.fit("doctor_net", crowd, gold={0: 1 - int(crowd.gold[0])}, progress=False, **TRAINING)
    assert fit.posterior[0, crowd.gold[0]] == 0


def test_what_cannot_be_is_refused(crowd):
    with pytest.raises(StoryError, match="wdn learns a classifier"):
        cp.fit("wdn", crowd)
    with pytest.raises(StoryError, match="needs features"):
        cp.fit("wdn", crowd.replace(features=None), classifier="mlp")
    with pytest.raises(StoryError, match="focus=-1"):
        cp.fit("wdn", crowd, focus=-1, progress=False, **TRAINING)
    with pytest.raises(AnnotationError, match="doctor_net learns what each worker annotates"):
        cp.fit("doctor_net", crowd.replace(worker=None), classifier="mlp")
    assert {"doctor_net", "wdn", "max_mig"} <= set(cp.list_baselines().index)
