"""A network whose training ends early says so; one with the default number of epochs is trained."""

import numpy as np
import pytest
from flax import nnx
from picked_findings import findings_of

import crowdppl as cp
from crowdppl.data import Annotations
from crowdppl.inference.engines.minibatch_em import LONGER, STEPS, WAITS, course, with_epochs
from crowdppl.inference.engines.settings import EPOCHS, PATIENCE, EMSettings

NETWORK = cp.Classifier("mlp")


def crowd(seed, n_tasks=200):
    """Three classes whose features tell them in part, and three annotations a task, which the features can mend."""
    annotations, _ = cp.simulate(
        "dawid_skene", n_tasks=n_tasks, n_workers=12, n_classes=3, annotations_per_task=3, seed=seed
    )
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(3, 10))
    centres *= 1.8 / np.linalg.norm(centres, axis=1, keepdims=True)
    x = centres[np.asarray(annotations.gold)] + rng.normal(size=(n_tasks, 10))
    return annotations.replace(features=x.astype("f4"))


def module():
    """A network whose last layer starts at random, where that of :class:`crowdppl.Classifier` starts at 0."""
    rngs = nnx.Rngs(0)
    return nnx.Sequential(nnx.Linear(10, 128, rngs=rngs), nnx.relu, nnx.Linear(128, 3, rngs=rngs))


def right(fit):
    return (fit.posterior.argmax(-1) == np.asarray(fit.annotations.gold)).mean()


@pytest.mark.parametrize(
    ("n_tasks", "options", "has_network", "epochs"),
    [
        (200, {}, True, STEPS // 4),  # of four batches
        (1000, {}, True, EPOCHS),
        (200, {"batch_size": 200}, True, STEPS),
        (200, {"batch_size": 200}, False, EPOCHS),
        (200, {"epochs": 7}, True, 7),
        (200, {"epochs": 7, "held_out": 0.1}, True, 7),
        (200, {"held_out": 0.1}, True, LONGER * STEPS // 4),
    ],
)
def test_a_network_takes_enough_steps_where_no_epochs_are_given(n_tasks, options, has_network, epochs):
    rows = Annotations.from_matrix(np.zeros((n_tasks, 2), int), classes=[0, 1])
    assert with_epochs(rows, EMSettings(**options), has_network=has_network).passes == epochs


@pytest.mark.parametrize(
    ("n_tasks", "options", "patience"),
    [(200, {}, STEPS // 4 // WAITS), (1000, {}, PATIENCE), (200, {"patience": 3}, 3)],
)
def test_a_better_epoch_is_waited_for_for_ten_or_for_a_fifth_of_the_usual_ones(n_tasks, options, patience):
    rows = Annotations.from_matrix(np.zeros((n_tasks, 2), int), classes=[0, 1])
    assert with_epochs(rows, EMSettings(held_out=0.1, **options), has_network=True).patience == patience


def test_the_course_is_steps_and_the_rise_of_an_annotation_in_the_last_quarter():
    rows = Annotations.from_matrix(np.zeros((10, 2), int), classes=[0, 1])
    history = [-9.0, -9.0, -8.0, -8.0, -6.0, -4.0, -2.0, -1.0]
    assert course(history, rows, 4, 8) == {"epochs": 8, "steps": 24, "rise": (-1.5 - -5.0) / 20}
    assert course(history, rows, 4, 9) == {"epochs": 8, "steps": 24}  # held-out annotations ended it
    assert course([-9.0], rows, 4, 1) == {"epochs": 1, "steps": 3}


@pytest.mark.parametrize(("classifier", "said"), [(NETWORK, "hardly trained"), (module(), "still learning")])
def test_what_more_steps_would_mend_is_warned_of(classifier, said):
    """Fifty epochs of 200 tasks leave a network half trained: labels of the default are better by 5 points and more."""
    annotations = crowd(2)
    options = {"classifier": classifier, "progress": False}
    with pytest.warns(cp.ConvergenceWarning, match=rf"{said}.* 200 steps in 50 epochs.*raise epochs"):
        short = cp.fit("dawid_skene", annotations, epochs=50, **options)
    (found,) = findings_of(short, "network_still_learns")
    assert (found.values["steps"], found.severity) == (200, "warning")
    whole = cp.fit("dawid_skene", annotations, **options)
    assert right(whole) > right(short) + 0.05
    assert whole.outcome.facts["steps"] == STEPS


def test_a_network_that_is_trained_is_not_warned_of():
    fit = cp.fit("dawid_skene", crowd(3, 1000), classifier=NETWORK, progress=False)
    assert not findings_of(fit, "network_still_learns")
    assert fit.outcome.facts["rise"] < 0.01


@pytest.mark.parametrize(
    ("options", "reach"),
    [({"epochs": 2}, 8 * 3e-4), ({"epochs": 20, "network_rate": 1e-4}, 80 * 1e-4)],
)
def test_a_network_whose_steps_cannot_move_its_weights_is_warned_of_however_flat_its_course(options, reach):
    """Labels of the default are better by 5 points and more; the log-posterior rose by less than what is told of."""
    annotations, more = crowd(2), {"classifier": NETWORK, "progress": False}
    with pytest.warns(
        cp.ConvergenceWarning, match=r"hardly trained: .* in \d+ epochs.* raise epochs, as to epochs=\d+"
    ):
        short = cp.fit("dawid_skene", annotations, **options, **more)
    (found,) = findings_of(short, "network_still_learns")
    assert found.values["reach"] == pytest.approx(reach)
    assert found.values.get("rise", 0.0) < 0.01
    epochs = int(found.sentence.partition("to epochs=")[2].partition(",")[0])
    mended = cp.fit("dawid_skene", annotations, **options | {"epochs": epochs}, **more)
    assert right(mended) > right(short) + 0.05
    assert not any("hardly" in one.sentence for one in findings_of(mended, "network_still_learns"))


@pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")
def test_a_network_that_em_trained_for_svi_is_warned_of_as_ems_own():
    few = {"epochs": 2, "max_iterations": 3, "draws": 4, "sweeps": 0}
    fit = cp.fit("dawid_skene", crowd(2), method="svi", classifier=NETWORK, progress=False, **few)
    (found,) = findings_of(fit, "network_still_learns")
    assert found.values["reach"] == pytest.approx(8 * 3e-4)


def test_a_module_which_may_come_trained_and_a_story_without_a_network_are_not_said_to_be_hardly_trained():
    module = nnx.Linear(10, 3, rngs=nnx.Rngs(0))
    for options in ({"classifier": module, "epochs": 2}, {"epochs": 2, "batch_size": 50}):
        fit = cp.fit("dawid_skene", crowd(2), progress=False, **options)
        assert "reach" not in fit.outcome.facts
        assert not findings_of(fit, "network_still_learns")


def test_training_that_held_out_annotations_ended_is_not_said_to_be_hardly_trained():
    options = {"classifier": NETWORK, "held_out": 0.3, "patience": 1, "network_rate": 1e-2, "progress": False}
    fit = cp.fit("dawid_skene", crowd(2), epochs=60, **options)
    assert fit.outcome.facts["epochs"] < 60
    assert "reach" not in fit.outcome.facts
