"""The prior of a worker in numbers: its weight, the accuracy that it expects, a warning where it outweighs the data."""

import re

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas as pd
import pytest

import crowdppl as cp
from crowdppl.benchmarks.support.crowd_shapes import HEALTHY, drawn, one_heavy
from crowdppl.benchmarks.support.crowd_shapes import crowd as crowd_of
from crowdppl.inference.findings.of_prior import exact_worker_prior, outweighed, worker_prior


@pytest.fixture(scope="module")
def crowd():
    """Three classes, five workers, who gave 30 annotations each."""
    return cp.simulate("dawid_skene", n_tasks=30, n_workers=5, n_classes=3, seed=1)[0].without_gold()


def fitted(story, crowd, **options):
    return cp.fit(story, crowd, progress=False, max_iterations=2, **options).fitted


@pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
def test_weight_of_dawid_skene_is_the_sum_of_its_concentrations(crowd):
    """A row has 5 + 2 · 0.5 = 6 pseudo-annotations, of which 5 are right."""
    prior = worker_prior(fitted("dawid_skene", crowd, diagonal=5.0, off_diagonal=0.5))
    assert prior.is_exact
    np.testing.assert_allclose(prior.weight, np.full(5, 18.0))
    np.testing.assert_allclose(prior.accuracy, np.full(5, 5 / 6), rtol=1e-6)


@pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
def test_a_history_counts_for_the_worker_who_has_it(crowd):
    history = np.zeros((5, 3, 3))
    history[2, 0, 0] = 7.0
    prior = worker_prior(fitted("dawid_skene", crowd, diagonal=5.0, off_diagonal=0.5, history=history))
    np.testing.assert_allclose(prior.weight, [18, 18, 25, 18, 18])
    np.testing.assert_allclose(prior.accuracy[2], (12 / 13 + 5 / 6 + 5 / 6) / 3, rtol=1e-6)


@pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
def test_weight_of_one_coin_is_its_pseudo_annotations_within_the_error_of_the_draws(crowd):
    """Beta(6, 2) counts like 8 annotations; of 200 draws five workers' mean has a relative error of some 5 %."""
    prior = worker_prior(fitted("one_coin", crowd, right=6.0, wrong=2.0))
    assert not prior.is_exact
    assert prior.weight.mean() == pytest.approx(8.0, rel=0.2)
    assert prior.accuracy.mean() == pytest.approx(0.75, abs=0.02)


@pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
def test_weight_of_two_coin_is_the_sum_of_the_concentrations_of_both_of_its_rows():
    """Sensitivity and specificity have 4 + 2 pseudo-annotations each."""
    crowd = cp.simulate("two_coin", n_tasks=30, n_workers=5, seed=1)[0].without_gold()
    prior = worker_prior(fitted("two_coin", crowd, right=4.0, wrong=2.0))
    assert prior.is_exact
    np.testing.assert_allclose(prior.weight, np.full(5, 12.0))
    np.testing.assert_allclose(prior.accuracy, np.full(5, 2 / 3), rtol=1e-6)


@pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
def test_the_row_that_two_classes_share_is_not_counted_twice():
    """One coin of two classes as a matrix: the row is that of the first class, and reversed that of the second."""

    def coin(annotations, *, truth_prior=None):
        with numpyro.plate("worker", annotations.n_workers):
            row = numpyro.sample("row", dist.Dirichlet(np.array([6.0, 2.0])), infer={"event_dims": ["annotation"]})
        with cp.tasks(annotations, truth_prior) as truth:
            cp.observe(truth, cp.Confusion(jnp.stack([row, row[:, ::-1]], axis=1)), annotations)

    crowd = cp.simulate("two_coin", n_tasks=30, n_workers=5, seed=1)[0].without_gold()
    prior = worker_prior(fitted(coin, crowd))
    assert not prior.is_exact
    assert prior.weight.mean() == pytest.approx(8.0, rel=0.2)  # of 200 draws, as for one_coin


@pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
@pytest.mark.parametrize("prior", ["none", "improper"])
def test_a_story_whose_prior_says_nothing_of_workers_has_no_sentence_about_it(crowd, prior):
    """A matrix that is fixed has no spread; nothing can be drawn from an improper prior."""

    def story(annotations, *, truth_prior=None):
        k = annotations.n_classes
        flat = dist.ImproperUniform(dist.constraints.real, (), ())
        with numpyro.plate("worker", annotations.n_workers):
            skill = numpyro.sample("skill", flat if prior == "improper" else dist.Normal(1.0, 1.0))
        skill = skill if prior == "improper" else 1 + 0 * skill
        with cp.tasks(annotations, truth_prior) as truth:
            cp.observe(truth, cp.Correct(skill[:, None], k), annotations)

    fit = cp.fit(story, crowd, max_iterations=2, progress=False)
    assert worker_prior(fit.fitted) is None
    assert "prior" not in fit.summary().facts


@pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
def test_the_summary_counts_a_history_that_few_workers_have(crowd):
    rows = [{"worker": crowd.workers[2], "truth": c, "label": c, "count": 20} for c in crowd.classes]
    fit = cp.fit("dawid_skene", crowd, history=pd.DataFrame(rows), progress=False)
    facts = fit.summary().facts
    assert facts["prior"].startswith("9 pseudo-annotations a worker (9 to 69), expected accuracy")
    assert facts["hyperparameters"] == "history=a table of shape (3, 4)"


@pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
def test_a_dirichlet_that_is_only_a_part_of_the_workers_matrix_is_not_taken_for_it(crowd):
    """A worker of common_individual follows the common matrix at times, so that it has more weight than its own."""
    assert exact_worker_prior(fitted("common_individual", crowd)) is None
    assert exact_worker_prior(fitted("dawid_skene", crowd)) is not None


def pooled(annotations, *, truth_prior=None):
    """Workers' matrices around even rows, with a strength that is learned."""
    strength = numpyro.sample("strength", dist.Gamma(2.0, 1.0))
    with (
        numpyro.plate("worker", annotations.n_workers, dim=-2),
        numpyro.plate("class", annotations.n_classes, dim=-1),
    ):
        rows = dist.Dirichlet(strength * np.ones(annotations.n_classes))
        confusion = numpyro.sample("confusion", rows, infer={"event_dims": ["annotation"]})
    with cp.tasks(annotations, truth_prior) as truth:
        cp.observe(truth, cp.Confusion(confusion), annotations)


def test_a_strength_that_is_learned_is_shown_as_it_was_learned(crowd):
    """Nine cells of strength 4 each: 36 pseudo-annotations, whose expected accuracy is one in three."""
    fit = cp.fit(pooled, crowd, progress=False)
    at_four = fit.fitted.with_draws(dict(fit.fitted.draws) | {"strength": np.full((1, 1), 4.0, np.float32)})
    prior = worker_prior(at_four)
    np.testing.assert_allclose(prior.weight, np.full(5, 36.0), rtol=1e-5)
    np.testing.assert_allclose(prior.accuracy, np.full(5, 1 / 3), rtol=1e-5)


@pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
def test_a_prior_that_outweighs_half_of_the_workers_is_warned_of_with_its_numbers(crowd):
    heavy = fitted("dawid_skene", crowd, diagonal=10.0, off_diagonal=1.0)  # 36 against 30 annotations
    (finding,) = outweighed(heavy)
    assert finding in heavy.findings
    right = heavy.posterior[np.asarray(crowd.task), np.asarray(crowd.label)].mean()
    moved = 36 / 66 * (5 / 6 - right)
    expected = {"weight": 36.0, "accuracy": 5 / 6, "annotations": 30.0, "few": 5, "asked": 5, "moved": moved}
    given = {name: finding.values[name] for name in ("diagonal", "off_diagonal")}
    assert finding.values == pytest.approx(expected | given, rel=1e-4)
    assert given == pytest.approx({"diagonal": 12 * right, "off_diagonal": 6 * (1 - right)}, rel=0.05)  # two digits
    assert all(f"{name}={value:g}" in finding.remedy for name, value in given.items())
    assert "outweighs the annotations of 5 of 5 workers" in finding.text
    assert not outweighed(fitted("dawid_skene", crowd, diagonal=7.0, off_diagonal=1.0))  # 27, which were given


@pytest.mark.parametrize("n_classes", [2, 4])
def test_with_the_options_that_the_remedy_names_nothing_is_moved_and_workers_of_few_annotations_weigh_more(n_classes):
    annotations = one_heavy(n_classes)(np.random.default_rng(0))
    fit = cp.fit("dawid_skene", annotations.without_gold(), progress=False)
    (finding,) = outweighed(fit.fitted)
    assert finding.severity == "warning"
    options = {name: finding.values[name] for name in ("diagonal", "off_diagonal")}
    again = cp.fit("dawid_skene", annotations.without_gold(), progress=False, **options)
    assert "outweighed" not in {one.code for one in again.findings.warnings}
    light = annotations.n_by_worker() < 4
    names = annotations.workers.to_index("worker")[light]
    before, after = (one.workers["accuracy"].reindex(names).mean() for one in (fit, again))
    assert after > before + 0.05


def test_a_prior_that_outweighs_fewer_than_half_of_the_workers_is_not_warned_of(crowd):
    """Two of five workers keep three annotations, fewer than the prior's 7.5."""
    keep = (crowd.worker > 1) | (crowd.task < 3)
    frame = crowd.to_frame()[np.asarray(keep)]
    annotations = cp.Annotations.from_frame(frame, classes=list(crowd.classes))
    fit = cp.fit("dawid_skene", annotations, progress=False, diagonal=1.5, off_diagonal=0.5)
    assert worker_prior(fit.fitted).weight[0] == pytest.approx(7.5)
    assert sorted(annotations.n_by_worker()) == [3, 3, 30, 30, 30]
    assert not outweighed(fit.fitted)


def test_a_prior_that_moves_accuracies_by_more_than_their_standard_error_is_warned_of_where_it_outweighs_nobody():
    """Of twenty classes it counts like 60 annotations and expects two in three to be right; of two, three in four."""
    rng = np.random.default_rng(0)
    for n_classes in (2, 20):
        made = drawn(rng, np.full(30, 0.85), n_tasks=600, n_classes=n_classes, per_task=5)
        fit = cp.fit("dawid_skene", crowd_of(*made, n_classes).without_gold(), sweeps=0, progress=False)
        found = [one for one in fit.findings if one.code == "outweighed"]
        assert len(found) == (n_classes == 20)
    (finding,) = found
    assert finding.severity == "warning"
    assert finding.values["few"] == 0
    assert finding.values["moved"] < -0.05
    low = fit.workers["accuracy_high"] < 0.85
    assert low.mean() > 0.2  # of intervals that hold nine in ten


@pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
def test_summary_and_report_show_the_prior_as_numbers_and_no_option_that_is_none(crowd, tmp_path):
    fit = cp.fit("dawid_skene", crowd, progress=False)
    exact = worker_prior(fit.fitted)
    expected = f"{exact.weight[0]:.3g} pseudo-annotations a worker, expected accuracy {exact.accuracy[0]:.2f}"
    assert expected in fit.summary().facts["prior"]
    page = fit.report(tmp_path / "page.html", checks=False).read_text()
    assert expected in page
    assert "diagonal=None" not in page


def test_nameless_workers_have_no_prior_to_show():
    counts = np.array([[3, 1], [0, 4], [2, 2]])
    fit = cp.fit("annotator_groups", cp.Annotations.from_counts(counts), progress=False)
    assert worker_prior(fit.fitted) is None
    assert "prior" not in fit.summary().facts


def test_a_prior_that_expects_what_the_crowd_shows_is_a_note_and_one_that_does_not_a_warning():
    made = HEALTHY["ten classes"](np.random.default_rng(0)).without_gold()
    (as_shown,) = outweighed(fitted("dawid_skene", made))
    (lower,) = outweighed(fitted("dawid_skene", made, off_diagonal=1 / 3))
    assert (as_shown.severity, lower.severity) == ("note", "warning")
    assert abs(as_shown.values["moved"]) < 0.05 < -lower.values["moved"]


def weights(fit) -> list[dict]:
    """The values of the finding but what depends on the labels, too."""
    return [{name: value for name, value in one.values.items() if name != "moved"} for one in outweighed(fit)]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("story", ["dawid_skene", pytest.param("one_coin", marks=pytest.mark.slow)])
@pytest.mark.parametrize("values", [pytest.param(["skip"], marks=pytest.mark.slow), ["skip", "never used"]])
def test_the_prior_is_of_the_annotations_that_are_classes(crowd, story, values):
    """With abstentions that say nothing, prior and warning are those of the data without them."""
    frame = crowd.to_frame().astype({"label": str})
    skipped = frame["task"] % 3 > 0
    without = cp.Annotations.from_frame(frame[~skipped], classes=["0", "1", "2"], tasks=list(crowd.tasks))
    frame.loc[skipped, "label"] = "skip"
    abstaining = cp.Annotations.from_frame(frame, classes=["0", "1", "2"], abstain=values)
    heavy = {"diagonal": 5.0, "off_diagonal": 2.0} if story == "dawid_skene" else {"right": 6.0, "wrong": 2.0}
    plain = fitted(story, without, **heavy)
    for abstentions in ("informative", "uninformative"):
        skipping = fitted(story, abstaining, abstentions=abstentions, **heavy)
        expected, found = worker_prior(plain), worker_prior(skipping)
        assert found.is_exact == expected.is_exact
        np.testing.assert_allclose(found.weight, expected.weight, rtol=1e-5)
        np.testing.assert_allclose(found.accuracy, expected.accuracy, rtol=1e-5)
        assert weights(skipping) == weights(plain)
    assert bool(outweighed(plain)) == (story == "dawid_skene")
    assert "the median worker gave 10 annotations" in cp.fit(story, abstaining, progress=False).summary().facts["prior"]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_workers_who_all_abstain_have_a_prior_all_the_same():
    silent = cp.Annotations.from_dict({"t": {"ann": "skip", "bob": "skip"}}, classes=["a", "b"], abstain=["skip"])
    prior = worker_prior(fitted("dawid_skene", silent))
    np.testing.assert_allclose(prior.accuracy, [2 / 3, 2 / 3], rtol=1e-6)


def of_shares(share, seed, n_tasks=300):
    """Two classes, of which the second has a share of the tasks, by twelve workers right in .7 to .95, three a task."""
    rng = np.random.default_rng(seed)
    truth, able = (rng.random(n_tasks) < share).astype(int), rng.uniform(0.7, 0.95, 12)
    worker = np.concatenate([rng.choice(12, 3, replace=False) for _ in range(n_tasks)])
    task = np.repeat(np.arange(n_tasks), 3)
    label = np.where(rng.random(len(task)) < able[worker], truth[task], 1 - truth[task])
    frame = pd.DataFrame({"task": task, "worker": worker, "label": label})
    return cp.Annotations.from_frame(frame), truth


def test_a_class_of_which_workers_gave_little_beside_the_prior_is_noted_and_the_verdict_asks_for_care():
    """Its share of the labels was twice that of the tasks, and the verdict that the crowd can be trusted."""
    for seed in range(4):
        annotations, truth = of_shares(0.05, seed)
        fit = cp.fit("dawid_skene", annotations, progress=False)
        (finding,) = (each for each in fit.findings if each.code == "rare_class")
        assert finding.values["class"] == 1
        assert finding.values["weight"] == pytest.approx(3.0)
        tables = np.zeros((12, 2))
        np.add.at(tables, annotations.worker, fit.posterior[annotations.task])
        assert finding.values["annotations"] == pytest.approx(np.median(tables[:, 1]), rel=1e-3)
        assert fit.verdict.trust != "yes"
        assert fit.posterior[:, 1].mean() > truth.mean()
        assert "rare_class" not in [each.code for each in cp.fit("one_coin", annotations, progress=False).findings]


def test_several_rare_classes_are_noted_together_and_named():
    rng = np.random.default_rng(0)
    prevalence = np.array([0.5, 0.38, 0.04, 0.04, 0.04])
    truth, able = rng.choice(5, 500, p=prevalence), rng.uniform(0.8, 0.95, 12)
    worker = np.concatenate([rng.choice(12, 4, replace=False) for _ in truth])
    task = np.repeat(np.arange(500), 4)
    wrong = (truth[task] + rng.integers(1, 5, len(task))) % 5
    label = np.where(rng.random(len(task)) < able[worker], truth[task], wrong)
    names = np.array(["a", "b", "x", "y", "z"])
    frame = pd.DataFrame({"task": task, "worker": worker, "label": names[label]})
    fit = cp.fit("dawid_skene", frame, progress=False)
    (finding,) = (each for each in fit.findings if each.code == "rare_class")
    assert {finding.values["class"], *finding.values["others"]} == {"x", "y", "z"}
    assert all(repr(name) in finding.text for name in "xyz")
    assert "2 other classes" in finding.text
    assert sum("rare" in line or "are of the class" in line for line in fit.verdict.why) == 1


def test_a_prior_that_is_learned_as_the_remedy_says_has_about_the_share_of_a_rare_class_that_the_tasks_have():
    """Where workers are as right on it as elsewhere; by the default prior its share is about twice that."""
    by_default, learned = [], []
    for seed in range(4):
        annotations, truth = of_shares(0.05, seed)
        fit = cp.fit("dawid_skene", annotations, progress=False)
        (finding,) = (each for each in fit.findings if each.code == "rare_class")
        given = dict(re.findall(r"(\w+)='(\w+)'", finding.remedy))
        other = cp.fit("dawid_skene", annotations, progress=False, **given)
        assert "rare_class" not in [each.code for each in other.findings]
        by_default.append(fit.posterior[:, 1].mean() / truth.mean())
        learned.append(other.posterior[:, 1].mean() / truth.mean())
    assert np.mean(by_default) > 1.5
    assert 0.8 < np.mean(learned) < 1.25


def test_classes_that_are_not_rare_or_have_many_annotations_are_not_noted():
    for share, n_tasks in ((0.5, 300), (0.3, 300), (0.05, 3000)):
        for seed in range(3):
            fit = cp.fit("dawid_skene", of_shares(share, seed, n_tasks)[0], progress=False)
            assert "rare_class" not in [each.code for each in fit.findings]
