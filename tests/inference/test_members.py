"""Fits of a network from several seeds: their mean, how far they lie apart, and what has no members."""

import numpy as np
import pytest

import crowdppl as cp

SHORT = {"epochs": 2, "network_rate": 0.01}
NETWORK = cp.Classifier("mlp", hidden=(4,))


@pytest.fixture(scope="module")
def crowd():
    """Forty tasks with two features that tell the class in part."""
    annotations, _ = cp.simulate("dawid_skene", n_tasks=40, n_workers=6, n_classes=2, annotations_per_task=4, seed=0)
    x = np.random.default_rng(0).normal(size=(40, 2)) + np.asarray(annotations.gold)[:, None]
    return annotations.replace(features=x.astype("f4"))


@pytest.mark.parametrize("method", [("em", SHORT), ("svi", SHORT | {"max_iterations": 100, "draws": 20, "sweeps": 0})])
def test_labels_and_predictions_are_the_mean_of_fits_from_one_seed_each(crowd, method):
    method, options = method
    x = np.random.default_rng(1).normal(size=(5, 2)).astype("f4")
    options = {"method": method, "classifier": NETWORK, "progress": False} | options
    fit = cp.fit("one_coin", crowd, members=3, seed=4, **options)
    alone = [cp.fit("one_coin", crowd, seed=seed, **options) for seed in (4, 5, 6)]
    each = fit.predict_proba(x, by_member=True)
    assert each.shape == (3, 5, 2)
    np.testing.assert_allclose(each, [one.predict_proba(x) for one in alone], rtol=1e-6)
    np.testing.assert_allclose(fit.predict_proba(x), each.mean(0), rtol=1e-6)
    np.testing.assert_allclose(fit.probabilities, np.mean([one.probabilities for one in alone], axis=0), rtol=1e-5)
    assert each.std(0).min() > 0
    assert list(fit.fits) == ["seed 4", "seed 5", "seed 6"]
    assert alone[0].predict_proba(x, by_member=True).shape == (1, 5, 2)


def test_members_are_kept_and_come_back(crowd, tmp_path):
    options = {"members": 2, "classifier": NETWORK, "progress": False, "checkpoint": tmp_path / "kept"} | SHORT
    fit = cp.fit("one_coin", crowd, **options)
    fit.save(tmp_path / "fit")
    again = cp.load_fit(tmp_path / "fit")
    np.testing.assert_array_equal(again.predict_proba(crowd.features), fit.predict_proba(crowd.features))
    same = cp.fit("one_coin", crowd, resume=True, **options)
    np.testing.assert_array_equal(same.posterior, fit.posterior)


@pytest.mark.parametrize(
    ("story", "options", "message"),
    [
        ("one_coin", {"members": 0, "classifier": "mlp"}, "members=0: a whole number from 1"),
        ("one_coin", {"members": 101, "classifier": "mlp"}, "members=101: a whole number from 1 to 100"),
        ("one_coin", {"members": 2.5, "classifier": "mlp"}, "members=2.5: a whole number"),
        ("one_coin", {"members": 2}, "members=2: .* no network; leave it out, or give classifier='mlp'"),
        ("one_coin", {"members": 2, "classifier": "logistic"}, "members=2: .* no network"),
        ("auto", {"members": 2, "classifier": "mlp"}, "members=2: .* story='auto' is none"),
        ("majority_vote", {"members": 2, "classifier": "mlp"}, "members=2: .* name a story"),
    ],
)
def test_members_that_would_be_equal_are_refused(crowd, story, options, message):
    with pytest.raises(ValueError, match=message):
        cp.fit(story, crowd, progress=False, **options)


def test_what_is_found_of_many_members_is_said_once_with_their_names(crowd):
    with pytest.warns(cp.ConvergenceWarning) as caught:
        fit = cp.fit("one_coin", crowd, members=5, classifier=NETWORK, progress=False, epochs=1)
    (hardly,) = [said for said in map(str, (warning.message for warning in caught)) if "hardly trained" in said]
    assert hardly.startswith("seed 0, seed 1, seed 2 and 2 more: the classifier is hardly trained")
    codes = [(finding.code, finding.severity) for finding in fit.findings]
    assert len(codes) == len(set(codes))
