"""A story unknown to the package gets every engine and everything that a fit has."""

from contextlib import ExitStack

import arviz as az
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import crowdppl as cp
from crowdppl.inference.densities import sites
from crowdppl.inference.densities.model import Model
from crowdppl.inference.storage.arviz_groups import group
from crowdppl.models import dawid_skene
from crowdppl.models.parts.emissions import SharedConfusion


def hasty(annotations, *, truth_prior=None, haste=2.0):
    """Some annotations of each worker are slips: with a worker's own probability any class, else the truth."""
    k = annotations.n_classes
    with numpyro.plate("worker", annotations.n_workers):
        slip = numpyro.sample("slip", dist.Dirichlet(jnp.array([6.0, haste])), infer={"event_dims": ["slips"]})
    habit = numpyro.sample("habit", dist.Dirichlet(jnp.full(k, 2.0)))
    blur = numpyro.sample("blur", dist.HalfNormal(1.0))  # a real-valued parameter beside the tables
    sure = slip[:, 0] * jnp.exp(-blur / 10)
    table = sure[:, None, None] * jnp.eye(k) + (1 - sure[:, None, None]) * habit
    with cp.tasks(annotations, truth_prior) as truth:
        cp.observe(truth, cp.Confusion(table), annotations)
    cp.derived("sure", sure, "worker")


@pytest.fixture(scope="module")
def simulated():
    return cp.simulate(hasty, n_tasks=150, n_workers=8, n_classes=3, seed=1)


@pytest.fixture(scope="module")
def fits(simulated):
    annotations, _ = simulated
    return {
        "em": cp.fit(hasty, annotations, progress=False),
        "svi": cp.fit(hasty, annotations, method="svi", progress=False),
        "nuts": cp.fit(hasty, annotations, method="nuts", chains=2, warmup=300, draws=300, progress=False),
    }


@pytest.mark.parametrize("method", ["em", "svi", "nuts"])
def test_every_engine_finds_the_truth_and_the_able(fits, simulated, method):
    annotations, parameters = simulated
    fit = fits[method]
    assert (fit.posterior.argmax(-1) == annotations.gold).mean() > 0.95
    actual = parameters["slip"][:, 0] * np.exp(-parameters["blur"] / 10)
    np.testing.assert_allclose(fit.derived["sure"], actual, atol=5 * 0.5 / np.sqrt(150))  # five standard errors


def test_engines_agree(fits):
    """Of labels: where data are plenty mode and mean are near; of parameters, SVI's mean and NUTS's."""
    assert np.abs(fits["em"].posterior - fits["nuts"].posterior).mean() < 0.01
    assert np.abs(fits["svi"].posterior - fits["nuts"].posterior).mean() < 0.01
    sure = {name: fits[name].derived_draws("sure")["sure"] for name in ("svi", "nuts")}
    spread = sure["nuts"].std(("chain", "draw"))
    gap = np.abs(sure["svi"].mean(("chain", "draw")) - sure["nuts"].mean(("chain", "draw")))
    assert (gap < 0.5 * spread).all()


def test_pointwise_log_likelihood_is_the_storys_own(fits, simulated):
    annotations, _ = simulated
    fit = fits["nuts"]
    draw = {name: value[1, 7] for name, value in fit.outcome.draws.items()}
    sure = draw["slip"][:, 0] * np.exp(-draw["blur"] / 10)
    table = sure[:, None, None] * np.eye(3) + (1 - sure[:, None, None]) * draw["habit"]
    joint = np.tile(np.log(draw["prevalence"]), (150, 1))
    np.add.at(joint, annotations.task, np.log(table)[annotations.worker, :, annotations.label])
    expected = jax.scipy.special.logsumexp(joint, axis=-1)
    np.testing.assert_allclose(fit.log_likelihood()[1, 7], expected, rtol=1e-4)
    by_task = group(fit.to_idata(log_likelihood="task"), "log_likelihood")["majority_share"]
    assert by_task.shape == (2, 300, 150)
    loo = az.loo(fit.idata)
    assert np.isfinite(getattr(loo, "elpd_loo", getattr(loo, "elpd", np.nan)))


def test_replicated_annotations_agree_as_often_as_those_seen(fits, simulated):
    """The share of pairs of annotations that agree, of the data, lies within the replicates'."""
    annotations, _ = simulated
    replicated = fits["nuts"].posterior_predictive(seed=3)["annotation"].to_numpy().reshape(600, 150, 8)

    def agreement(answers):
        return (answers[..., :, None] == answers[..., None, :]).mean((-1, -2, -3))

    seen = agreement(annotations.label.reshape(150, 8))
    assert 0.005 < (agreement(replicated) < seen).mean() < 0.995


def test_it_is_saved_and_read_with_its_function(fits, tmp_path):
    fits["em"].save(tmp_path / "fit")
    np.testing.assert_array_equal(cp.load_fit(tmp_path / "fit", story=hasty).posterior, fits["em"].posterior)
    with pytest.raises(cp.StorageError, match="give its function"):
        cp.load_fit(tmp_path / "fit")


def _with_ability(size, wrap):
    """A story whose plate of workers has that size, and whose emission is made of their abilities."""

    def story(annotations, *, truth_prior=None):
        with numpyro.plate("worker", size):
            ability = numpyro.sample("ability", dist.Normal(1.0, 1.0))
        with cp.tasks(annotations, truth_prior) as truth:
            cp.observe(truth, wrap(ability), annotations)

    return story


@pytest.mark.parametrize(
    ("size", "wrap", "message"),
    [
        (
            3,
            lambda _: SharedConfusion(jnp.eye(4)),
            r"'ability' stands in the plate 'worker' of size 3, .* have 5: take",
        ),
        (5, lambda a: a, r"given an array as emission; an Emission is needed, such as cp.Confusion\(table\)"),
        (5, lambda a: cp.Confusion(jnp.broadcast_to(jnp.eye(2), (5, 2, 2))), r"\(5, 2, 2\), and .* have 4 classes"),
        (
            5,
            lambda a: cp.Confusion(jnp.eye(4)),
            r"table of Confusion has shape \(4, 4\), .*; \(5, 4, 4\) is needed; jnp",
        ),
        (
            5,
            lambda a: cp.Confusion(jnp.broadcast_to(jnp.eye(4), (3, 4, 4))),
            r"\(3, 4, 4\), .* 5 workers .*\(5, 4, 4\)",
        ),
        (
            5,
            lambda a: SharedConfusion(jnp.eye(3)),
            r"table of SharedConfusion has shape \(3, 3\), .*; \(4, 4\) is needed",
        ),
        (5, lambda a: cp.Correct(a, 4), r"ability of Correct has shape \(5,\), .*; \(5, 4\) is needed, or \(5, 1\)"),
        (5, lambda a: cp.Correct(a[0], 4), r"ability of Correct has shape \(\), .* such as ability\[:, None\]"),
        (5, lambda a: cp.Correct(a[:3, None], 4), r"ability of Correct has shape \(3, 1\), .* 5 workers"),
        (
            3,
            lambda a: cp.Correct(a[:, None], 4),
            r"ability of Correct has shape \(3, 1\), .* from annotations.n_workers",
        ),
        (
            5,
            lambda a: cp.Correct(a[:, None], 4, scale=a),
            r"scale of Correct has shape \(5,\), .*; \(45,\) is needed, or one",
        ),
        (
            5,
            lambda a: cp.Correct(a[:, None], 4, guess=a),
            r"guess of Correct has shape \(5,\), .*; \(45,\) is needed, or",
        ),
    ],
    ids=["plate", "array", "classes", "one", "workers", "shared", "flat", "scalar", "few", "short", "scale", "guess"],
)
def test_a_story_whose_parts_do_not_fit_the_annotations_says_so_before_it_is_fitted(size, wrap, message):
    """JAX takes the last worker for those beyond the plate, so that three abilities would do for five workers."""
    with pytest.raises(cp.StoryError, match=message):
        cp.fit(_with_ability(size, wrap), cp.load_dataset("anesthesia"), progress=False)


@pytest.mark.parametrize("infer", [{}, {"enumerate": "parallel"}], ids=["sampled", "enumerated"])
def test_a_truth_that_the_story_samples_by_itself_is_refused_with_what_makes_it(infer):
    def story(annotations, *, truth_prior=None):
        k = annotations.n_classes
        share = numpyro.sample("prevalence", dist.Dirichlet(jnp.ones(k)))
        with numpyro.plate("task", annotations.n_tasks):
            truth = numpyro.sample("truth", dist.Categorical(share), infer=infer)
            cp.observe(truth, SharedConfusion(0.7 * jnp.eye(k) + 0.3 / k), annotations)

    with pytest.raises(cp.StoryError, match=r"samples the site 'truth' from .* cp\.tasks\(annotations, truth_prior\)"):
        cp.fit(story, cp.load_dataset("anesthesia"), progress=False)


def _with_rows(rows):
    """A story whose workers' confusion matrices are made by ``rows`` of rows of probabilities."""

    def story(annotations, *, truth_prior=None):
        k = annotations.n_classes
        with numpyro.plate("worker", annotations.n_workers, dim=-2), numpyro.plate("class", k, dim=-1):
            prior = dist.Dirichlet(jnp.ones(k) + 3 * jnp.eye(k))
            table = numpyro.sample("confusion", prior, infer={"event_dims": ["annotation"]})
        with cp.tasks(annotations, truth_prior) as truth:
            cp.observe(truth, rows(table), annotations)

    return story


def _only_of_the_last_worker(table):
    return cp.Confusion(table.at[-1].multiply(0.5))


class Halved(cp.Emission):
    """An emission of a user's own."""

    def __init__(self, table):
        self.table = table

    def probs(self, worker, task):
        return self.table[worker] / 2


jax.tree_util.register_pytree_node(Halved, lambda e: ((e.table,), None), lambda _, leaves: Halved(*leaves))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (lambda t: cp.Confusion(5 * t), r"Confusion in the story 'story' .* with sum 5;"),
        (lambda t: cp.Confusion(t.swapaxes(-1, -2)), r"Confusion .* the row of worker \d, task \d+, true class '?\d"),
        (lambda t: cp.Confusion(jnp.log(t)), r"log-probabilities go through jnp.exp"),
        (lambda t: SharedConfusion(t.sum(0)), r"SharedConfusion .* with sum 5;"),
        (_only_of_the_last_worker, r"the row of worker 5, .* with sum 0.5;"),
        (Halved, r"Halved .* with sum 0.5;"),
    ],
    ids=["times five", "transposed", "logarithms", "shared", "one worker", "own emission"],
)
def test_rows_that_are_no_probabilities_are_refused_before_anything_is_fitted(rows, message):
    """The emission, the row at fault and its sum are named."""
    with pytest.raises(cp.StoryError, match=message):
        cp.fit(_with_rows(rows), cp.load_dataset("anesthesia"), progress=False)
    with pytest.raises(cp.StoryError, match=message):
        cp.marginal(_with_rows(rows), cp.load_dataset("anesthesia"))


def _coin(wrong, **infer):
    def coin(annotations, *, truth_prior=None):
        k = annotations.n_classes
        with numpyro.plate("worker", annotations.n_workers):
            share = numpyro.sample("right", dist.Dirichlet(jnp.array([4.0, 2.0])), infer=infer)
        is_right = jnp.eye(k, dtype=bool)
        right = share[:, 0][:, None, None]
        table = jnp.where(is_right, right, wrong(share)[:, None, None] / (k - 1))
        with cp.tasks(annotations, truth_prior) as truth:
            cp.observe(truth, cp.Confusion(table), annotations)

    return coin


@pytest.mark.parametrize("method", ["em", "nuts"])
def test_a_probability_that_is_what_another_leaves_to_one_is_refused_with_how_to_write_it(method):
    """EM ended where workers are right with probability 2e-30, and other engines, which start there, came from it."""
    left = _coin(lambda share: 1 - share[:, 0])
    with pytest.raises(cp.StoryError, match=r"site 'right' of the story 'coin' .*right\[\.\.\., 1\] for 1 - right"):
        cp.fit(left, cp.load_dataset("anesthesia"), method=method, progress=False)


def test_what_the_refusal_of_such_a_probability_advises_finds_the_truth():
    crowd = {"n_tasks": 150, "n_workers": 10, "n_classes": 3, "annotations_per_task": 3, "right": 12.0, "wrong": 4.0}
    annotations, _ = cp.simulate("one_coin", **crowd, seed=0)
    for story in (_coin(lambda share: share[:, 1]), _coin(lambda share: 1 - share[:, 0], exact_step=False)):
        fit = cp.fit(story, annotations.without_gold(), progress=False)
        assert (fit.posterior.argmax(1) == annotations.gold).mean() > 0.8


def test_a_story_is_asked_for_its_steps_once_whatever_the_size_of_the_data(monkeypatch):
    looks, look = [], sites._drawn_counts
    monkeypatch.setattr(sites, "_drawn_counts", lambda *given: looks.append(1) or look(*given))
    story = _coin(lambda share: share[:, 1])
    for n_tasks in (30, 29, 31):
        annotations, _ = cp.simulate("one_coin", n_tasks=n_tasks, n_workers=5, n_classes=3, seed=0)
        sites.check_steps(Model(story, {}), annotations)
    assert len(looks) == sites.LOOKS


def test_rows_of_probabilities_pass_with_abstentions_and_shared_errors():
    annotations = cp.Annotations.from_dict(
        {task: {"a": "yes", "b": "no" if task % 3 else "yes", "c": "skip"} for task in range(9)}, abstain=["skip"]
    )
    fit = cp.fit(_with_rows(cp.Confusion), annotations, shared_error=True, progress=False)
    assert fit.posterior.shape == (9, 2)


def test_a_story_that_reads_features_that_are_not_there_fails_with_a_note_of_it():
    def by_features(annotations, *, truth_prior=None):
        width = annotations.features.shape[-1]
        slope = numpyro.sample("slope", dist.Normal(0.0, jnp.ones(width)).to_event(1))
        with cp.tasks(annotations, truth_prior) as truth:
            cp.observe(truth, cp.Correct((annotations.features @ slope)[:, None], 4), annotations)

    def by_worker_features(annotations, *, truth_prior=None):
        skill = numpyro.sample("slope", dist.Normal(0.0, 1.0)) * jnp.asarray(annotations.worker_features)
        with cp.tasks(annotations, truth_prior) as truth:
            cp.observe(truth, cp.Correct(skill, 4), annotations)

    for story, error in ((by_features, AttributeError), (by_worker_features, ValueError)):
        with pytest.raises(error, match="None") as failed:
            cp.fit(story, cp.load_dataset("anesthesia"), progress=False)
        assert any("have no features, no worker_features" in note for note in failed.value.__notes__)


def _of_skill(name, prior=None):
    """A story whose workers' skills are the site ``name``, sampled before any plate opens."""

    def story(annotations, *, truth_prior=None):
        prior_of_all = dist.Normal(jnp.ones(annotations.n_workers), 1.0).to_event(1) if prior is None else prior
        skill = numpyro.sample(name, prior_of_all)
        with cp.tasks(annotations, truth_prior) as truth:
            cp.observe(truth, cp.Correct(skill[:, None], annotations.n_classes), annotations)

    return story


@pytest.mark.parametrize(
    ("name", "of"),
    [("task", "a plate"), ("chain", "what results have"), ("draw", "what results"), ("truth", "what results")],
)
def test_a_site_with_the_name_of_a_plate_or_of_a_dimension_is_refused(name, of):
    """In a trace the plate ``task`` takes the place of a site ``task``, which was no parameter then."""
    with pytest.raises(cp.StoryError, match=f"the site '{name}' has the name of {of}"):
        cp.fit(_of_skill(name), cp.load_dataset("anesthesia"), progress=False)


def _in_the_plate_of_workers(name, *, closed=True):
    """A story whose workers' skills are sampled within their plate, which ``closed`` is before tasks begin."""

    def story(annotations, *, truth_prior=None):
        with ExitStack() as opened:
            opened.enter_context(numpyro.plate("worker", annotations.n_workers))
            skill = numpyro.sample(name, dist.Normal(1.0, 1.0))
            if closed:
                opened.close()
            with cp.tasks(annotations, truth_prior) as truth:
                cp.observe(truth, cp.Correct(skill[:, None], annotations.n_classes), annotations)

    return story


@pytest.mark.parametrize(
    ("story", "message"),
    [
        (_in_the_plate_of_workers("worker"), "the site 'worker' has the name of a plate; give it another"),
        (_in_the_plate_of_workers("prevalence"), r"two sites 'prevalence', of which one may be that of cp\.tasks"),
        (_in_the_plate_of_workers("skill", closed=False), "within another plate.*: close that plate before"),
    ],
)
def test_names_and_plates_that_collide_are_refused_with_the_mend(story, message):
    """NumPyro refuses them by bare assertions, and the prior of the truth is not among what its user wrote."""
    with pytest.raises(cp.StoryError, match=message):
        cp.fit(story, cp.load_dataset("anesthesia"), progress=False)


@pytest.mark.parametrize("kind", ["numpy", "if"])
def test_a_story_that_asks_for_values_before_there_are_any_fails_with_a_note_of_what_to_write(kind):
    def story(annotations, *, truth_prior=None):
        skill = numpyro.sample("skill", dist.Normal(jnp.ones(annotations.n_workers), 1.0).to_event(1))
        skill = np.exp(np.asarray(skill)) if kind == "numpy" else skill if skill[0] > 0 else -skill
        with cp.tasks(annotations, truth_prior) as truth:
            cp.observe(truth, cp.Correct(skill[:, None], annotations.n_classes), annotations)

    with pytest.raises(jax.errors.JAXTypeError) as failed:
        cp.fit(story, cp.load_dataset("anesthesia"), progress=False)
    assert any("jax.numpy instead of numpy" in note and "jnp.where" in note for note in failed.value.__notes__)


def test_a_deterministic_site_that_follows_from_the_truth_is_refused_and_others_are_derived():
    def story(annotations, *, truth_prior=None, of_truth=True):
        with numpyro.plate("worker", annotations.n_workers):
            skill = numpyro.deterministic("skill", 1 + numpyro.sample("raw", dist.Normal(0.0, 1.0)))
        with cp.tasks(annotations, truth_prior) as truth:
            if of_truth:
                numpyro.deterministic("first", truth == 0)
            cp.observe(truth, cp.Correct(skill[:, None], annotations.n_classes), annotations)

    patients = cp.load_dataset("anesthesia")
    with pytest.raises(cp.StoryError, match=r"site 'first' has shape \(4, 1\) in the plate 'task' of size 45"):
        cp.fit(story, patients, progress=False)
    assert cp.fit(story, patients, of_truth=False, progress=False).derived["skill"].dims == ("worker",)


def test_what_draws_from_an_improper_prior_says_so_and_the_files_are_without_draws_from_it():
    patients = cp.load_dataset("anesthesia")
    story = _of_skill("skill", dist.ImproperUniform(dist.constraints.real, (), (patients.n_workers,)))
    with pytest.raises(cp.StoryError, match="prior of the site 'skill', ImproperUniform"):
        cp.simulate(story, n_tasks=5, n_workers=5, n_classes=4)
    with pytest.raises(cp.StoryError, match="prior of the site 'skill'"):
        cp.prior_check(story, patients, draws=20)
    fit = cp.fit(story, patients, method="svi", max_iterations=50, draws=100, progress=False)
    assert "log_likelihood" in fit.idata
    assert "prior" not in fit.idata
    given, _ = cp.simulate(story, n_tasks=5, n_workers=5, n_classes=4, parameters={"skill": np.ones(5)})
    assert given.n_tasks == 5


def test_a_prior_that_is_a_function_is_saved_within_a_story_of_ones_own(tmp_path):
    def by_site(annotations):
        with numpyro.plate("site", 2):
            share = numpyro.sample("share", dist.Dirichlet(jnp.ones(annotations.n_classes)))
        return jnp.log(share)[jnp.arange(annotations.n_tasks) % 2]

    def mine(annotations):
        dawid_skene(annotations, truth_prior=by_site)

    patients = cp.load_dataset("anesthesia")
    with pytest.raises(cp.StorageError, match=r"truth_prior=.* is a function, .*cp.load_fit\(path, story=mine\)"):
        cp.fit("dawid_skene", patients, truth_prior=by_site, progress=False).save(tmp_path / "named")
    fit = cp.fit(mine, patients, progress=False)
    fit.save(tmp_path / "own")
    again = cp.load_fit(tmp_path / "own", story=mine)
    np.testing.assert_array_equal(again.probabilities, fit.probabilities)
    assert again.parameters["share"].shape == (2, 4)
