"""Crowds of known true labels: healthy ones of several shapes, and ones that cannot be trusted, each by a seed."""

from collections.abc import Callable

import numpy as np
import pandas as pd

import crowdppl as cp

ABSTAIN = "-"
SPREAD, BOUNDS = 0.1, (0.4, 0.97)  # of accuracies around their mean


def drawn(
    rng: np.random.Generator,
    accuracy: np.ndarray,
    *,
    n_tasks: int = 250,
    n_classes: int = 3,
    per_task: int = 5,
    prevalence: np.ndarray | None = None,
    activity: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return true labels ``(N,)``, what each worker would give ``(N, J)``, and which of it was given ``(N, J)``.

    Args:
        rng: of everything.
        accuracy: of each worker ``(J,)``, who errs evenly.
        n_tasks: N.
        n_classes: K.
        per_task: annotations of each task.
        prevalence: of the classes ``(K,)``; even by default.
        activity: of each worker ``(J,)``; even by default.
    """
    n_workers = len(accuracy)
    truth = rng.choice(n_classes, n_tasks, p=prevalence)
    right = rng.random((n_tasks, n_workers)) < accuracy
    wrong = (truth[:, None] + rng.integers(1, n_classes, right.shape)) % n_classes
    wait = rng.exponential(1 / (np.ones(n_workers) if activity is None else activity), right.shape)
    return truth, np.where(right, truth[:, None], wrong), wait.argsort(1).argsort(1) < per_task


def crowd(truth: np.ndarray, label: np.ndarray, given: np.ndarray, n_classes: int) -> cp.Annotations:
    """Return the annotations ``label (N, J)`` where ``given (N, J)``, −1 for an abstention, with gold labels."""
    task, worker = np.nonzero(given)
    names = [*map(str, range(n_classes))]
    said = np.array([*names, ABSTAIN])[label[task, worker]]
    frame = pd.DataFrame({"task": task, "worker": worker, "label": said})
    abstain = [ABSTAIN] if (label[given] < 0).any() else None
    ann = cp.Annotations.from_frame(frame, classes=names, abstain=abstain)
    return ann.with_gold({t: names[truth[t]] for t in ann.tasks})


def accuracies(rng: np.random.Generator, n: int, mean: float = 0.73, spread: float = SPREAD) -> np.ndarray:
    """Return accuracies of workers, ``(n,)``."""
    return np.clip(rng.normal(mean, spread, n), *BOUNDS)


def plain(rng: np.random.Generator) -> cp.Annotations:
    """250 tasks × 5, 20 workers, three classes."""
    return crowd(*drawn(rng, accuracies(rng, 20)), 3)


def plain_two_classes(rng: np.random.Generator) -> cp.Annotations:
    """300 tasks × 5, 15 workers, two classes."""
    return crowd(*drawn(rng, accuracies(rng, 15), n_tasks=300, n_classes=2), 2)


def alike(rng: np.random.Generator) -> cp.Annotations:
    """300 tasks × 5, 15 workers who are right equally often, two classes."""
    return crowd(*drawn(rng, np.full(15, 0.73), n_tasks=300, n_classes=2), 2)


def thin(rng: np.random.Generator) -> cp.Annotations:
    """50 tasks × 4, 10 workers, two classes."""
    return crowd(*drawn(rng, accuracies(rng, 10, 0.78), n_tasks=50, per_task=4, n_classes=2), 2)


def rare(rng: np.random.Generator) -> cp.Annotations:
    """300 tasks × 5, 15 workers, two classes of which one has 8 % of the tasks."""
    prevalence = np.array([0.92, 0.08])
    return crowd(*drawn(rng, accuracies(rng, 15, 0.85), n_tasks=300, n_classes=2, prevalence=prevalence), 2)


def many_classes(rng: np.random.Generator) -> cp.Annotations:
    """400 tasks × 5, 60 workers of very different activity, ten classes of different prevalence."""
    prevalence, activity = rng.dirichlet(np.full(10, 3.0)), rng.pareto(1.2, 60) + 0.05
    sizes = {"n_tasks": 400, "n_classes": 10, "prevalence": prevalence, "activity": activity}
    return crowd(*drawn(rng, accuracies(rng, 60, 0.65), **sizes), 10)


def dense(rng: np.random.Generator) -> cp.Annotations:
    """80 tasks that all of 10 workers annotate, four classes."""
    return crowd(*drawn(rng, accuracies(rng, 10, 0.7, 0.15), n_tasks=80, per_task=10, n_classes=4), 4)


def abstaining(rng: np.random.Generator) -> cp.Annotations:
    """300 tasks × 8, 12 workers who abstain in 40 %, two classes."""
    truth, label, given = drawn(rng, accuracies(rng, 12, 0.75), n_tasks=300, per_task=8, n_classes=2)
    return crowd(truth, np.where(rng.random(label.shape) < 0.4, -1, label), given, 2)


def noise(n_classes: int) -> Callable[[np.random.Generator], cp.Annotations]:
    """250 tasks × 5, 20 workers who guess."""
    return lambda rng: crowd(*drawn(rng, np.full(20, 1 / n_classes), n_classes=n_classes), n_classes)


def noise_thin(rng: np.random.Generator) -> cp.Annotations:
    """50 tasks × 4, 10 workers who guess one of two classes."""
    return crowd(*drawn(rng, np.full(10, 0.5), n_tasks=50, per_task=4, n_classes=2), 2)


def noise_uneven(rng: np.random.Generator) -> cp.Annotations:
    """250 tasks × 5, 20 workers who give the one class in 70 % to 90 % of the tasks, whatever these are."""
    truth, label, given = drawn(rng, np.full(20, 0.5), n_classes=2)
    return crowd(truth, (rng.random(label.shape) >= rng.uniform(0.7, 0.9, 20)).astype(int), given, 2)


def constants(
    share: float, *, n_classes: int = 2, one_class: bool = True
) -> Callable[[np.random.Generator], cp.Annotations]:
    """250 tasks × 5, 20 workers, of whom a share gives one class whatever the task, all the same or each an own one."""

    def made(rng: np.random.Generator) -> cp.Annotations:
        truth, label, given = drawn(rng, accuracies(rng, 20), n_classes=n_classes)
        n = round(20 * share)
        label[:, :n] = 0 if one_class else rng.integers(0, n_classes, n)
        return crowd(truth, label, given, n_classes)

    return made


def wrong_majority(rng: np.random.Generator) -> cp.Annotations:
    """250 tasks × 5, 20 workers, three classes; 65 % of the workers take class 1 for class 2."""
    truth, label, given = drawn(rng, accuracies(rng, 20, 0.8, 0.05))
    taken = (truth[:, None] == 1) & (np.arange(20) < 13) & (rng.random(label.shape) < 0.8)
    return crowd(truth, np.where(taken, 2, label), given, 3)


def copies(share: float, *, per_task: int = 14, n_classes: int = 3) -> Callable[[np.random.Generator], cp.Annotations]:
    """250 tasks, 14 workers, among them two groups of four of whom three repeat a share of a leader's annotations."""

    def made(rng: np.random.Generator) -> cp.Annotations:
        sizes = {"per_task": per_task, "n_classes": n_classes}
        truth, label, given = drawn(rng, accuracies(rng, 14, 0.62, 0.08), **sizes)
        for first in (0, 4):
            of = slice(first + 1, first + 4)
            copied = rng.random(label[:, of].shape) < share
            label[:, of] = np.where(copied, label[:, first : first + 1], label[:, of])
        return crowd(truth, label, given, n_classes)

    return made


def two_difficulties(rng: np.random.Generator) -> cp.Annotations:
    """300 tasks × 5, 15 workers, three classes; on 35 % of the tasks all are right in .42."""
    truth, label, given = drawn(rng, accuracies(rng, 15, 0.92, 0.03), n_tasks=300)
    wrong = (truth[:, None] + rng.integers(1, 3, label.shape)) % 3
    on_hard = np.where(rng.random(label.shape) < 0.42, truth[:, None], wrong)
    return crowd(truth, np.where(rng.random((300, 1)) < 0.35, on_hard, label), given, 3)


def misleading(rng: np.random.Generator) -> cp.Annotations:
    """300 tasks × 5, 15 workers, three classes; of 20 % of the tasks 60 % of the annotations are of one wrong class."""
    truth, label, given = drawn(rng, accuracies(rng, 15, 0.88, 0.05), n_tasks=300)
    misled = (rng.random((300, 1)) < 0.2) & (rng.random(label.shape) < 0.6)
    return crowd(truth, np.where(misled, (truth[:, None] + 1) % 3, label), given, 3)


def one_heavy(n_classes: int) -> Callable[[np.random.Generator], cp.Annotations]:
    """200 tasks that one worker annotates, right in .85, and 200 workers of one to three annotations, in .6 to .9."""

    def made(rng: np.random.Generator) -> cp.Annotations:
        accuracy = np.append(0.85, rng.uniform(0.6, 0.9, 200))
        truth, label, _ = drawn(rng, accuracy, n_tasks=200, n_classes=n_classes)
        given = rng.random(label.shape).argsort(0).argsort(0) < rng.integers(1, 4, 201)
        given[:, 0] = True
        return crowd(truth, label, given, n_classes)

    return made


def one_gave_most(rng: np.random.Generator) -> cp.Annotations:
    """1,000 tasks, three classes; one worker, right in .7, annotates .93 of them, 30 others, in .75 to .9, .6 once."""
    truth, label, _ = drawn(rng, np.append(0.7, rng.uniform(0.75, 0.9, 30)), n_tasks=1000)
    by_other = rng.random(1000) < 0.6
    given = np.zeros(label.shape, bool)
    given[np.flatnonzero(by_other), 1 + rng.integers(0, 30, by_other.sum())] = True
    given[:, 0] = ~by_other | (rng.random(1000) < 0.9)
    return crowd(truth, label, given, 3)


def two_workers(rng: np.random.Generator) -> cp.Annotations:
    """400 tasks that both of two workers annotate, who are right in .9 and .6 of two classes."""
    return crowd(*drawn(rng, np.array([0.9, 0.6]), n_tasks=400, per_task=2, n_classes=2), 2)


def lazy(rng: np.random.Generator) -> cp.Annotations:
    """300 tasks × 8, 12 workers, two classes; five abstain in half of the tasks and give one class to the others."""
    truth, label, given = drawn(rng, accuracies(rng, 12, 0.75), n_tasks=300, per_task=8, n_classes=2)
    label[:, :5] = np.where(rng.random((300, 5)) < 0.5, -1, 0)
    return crowd(truth, label, given, 2)


def few_experts(rng: np.random.Generator) -> cp.Annotations:
    """400 tasks × 8, 32 workers, three classes; four are right in .95, all others in .36."""
    return crowd(*drawn(rng, np.repeat([0.95, 0.36], [4, 28]), n_tasks=400, per_task=8), 3)


def pairs_of_classes(rng: np.random.Generator) -> cp.Annotations:
    """480 tasks × 5, 32 workers, eight classes in pairs; nine of ten errors are the other class of the pair."""
    truth, label, given = drawn(rng, rng.beta(5, 4, 32) * 0.85 + 0.1, n_tasks=480, n_classes=8)
    other = (label != truth[:, None]) & (rng.random(label.shape) < 0.9)
    return crowd(truth, np.where(other, truth[:, None] ^ 1, label), given, 8)


def twins(rng: np.random.Generator) -> cp.Annotations:
    """120 tasks that seven judges annotate, two classes; of one of them, right in .65, two others give all the same."""
    truth, label, given = drawn(rng, accuracies(rng, 7, 0.65, 0.05), n_tasks=120, per_task=7, n_classes=2)
    label[:, 1:3] = label[:, :1]
    return crowd(truth, label, given, 2)


def runs(rng: np.random.Generator) -> cp.Annotations:
    """300 tasks, two classes, four judges, right in about .83, each of whom was run three times, nearly alike."""
    truth, label, given = drawn(rng, accuracies(rng, 4, 0.83, 0.05), n_tasks=300, per_task=4, n_classes=2)
    label, given = np.repeat(label, 3, axis=1), np.repeat(given, 3, axis=1)
    return crowd(truth, np.where(rng.random(label.shape) < 0.01, 1 - label, label), given, 2)


def two_families(rng: np.random.Generator) -> cp.Annotations:
    """400 tasks, two classes, two families of three judges, right in .8, who say in .6 what their family would."""
    truth, label, given = drawn(rng, np.full(8, 0.8), n_tasks=400, per_task=8, n_classes=2)
    follows = rng.random((400, 6)) < 0.6
    return crowd(truth, np.where(follows, np.repeat(label[:, 6:], 3, axis=1), label[:, :6]), given[:, :6], 2)


def followed(share: float) -> Callable[[np.random.Generator], cp.Annotations]:
    """250 tasks × 5, 20 workers, two classes; a share of a task's later annotations repeat the first, shown to all."""

    def made(rng: np.random.Generator) -> cp.Annotations:
        truth, label, given = drawn(rng, accuracies(rng, 20, 0.7), n_classes=2)
        came = np.where(given, rng.random(label.shape), np.inf).argsort(1)[:, :5]
        said = np.take_along_axis(label, came, 1)
        said = np.where(rng.random(said.shape) < share, said[:, :1], said)
        frame = pd.DataFrame({"task": np.arange(250).repeat(5), "worker": came.ravel(), "label": said.ravel()})
        return cp.Annotations.from_frame(frame, classes=[0, 1]).with_gold(dict(enumerate(truth.tolist())))

    return made


def in_doubt(rng: np.random.Generator) -> cp.Annotations:
    """300 tasks × 5, 20 workers, four classes; of 40 % of the tasks 60 % of the annotations are of the first class."""
    truth, label, given = drawn(rng, accuracies(rng, 20, 0.85, 0.05), n_tasks=300, n_classes=4)
    doubt = (rng.random((300, 1)) < 0.4) & (rng.random(label.shape) < 0.6)
    return crowd(truth, np.where(doubt, 0, label), given, 4)


def majority_copied(rng: np.random.Generator) -> cp.Annotations:
    """300 tasks × 7, 20 workers, three classes; eight give what most of the others gave to the task."""
    truth, label, given = drawn(rng, accuracies(rng, 20, 0.65), n_tasks=300, per_task=7)
    votes = np.stack([((label == k) & given)[:, 8:].sum(1) for k in range(3)], 1)
    label[:, :8] = np.where(votes.any(1), votes.argmax(1), truth)[:, None]
    return crowd(truth, label, given, 3)


def added_class(rng: np.random.Generator) -> cp.Annotations:
    """300 tasks × 5, 15 workers, three classes, the last of which is there for the later half: before, they err."""
    truth, label, given = drawn(rng, accuracies(rng, 15, 0.8), n_tasks=300)
    missing = (np.arange(300)[:, None] < 150) & (label == 2)
    return crowd(truth, np.where(missing, rng.random(label.shape) < 0.25, label).astype(int), given, 3)


def copied_functions(rng: np.random.Generator) -> cp.Annotations:
    """800 tasks, two classes, eight labelling functions, four of which come as three that hardly differ."""
    truth = (rng.random(800) < 0.3).astype(int)
    of_class, right = np.arange(8) % 2, rng.uniform(0.7, 0.95, 8)
    fires = rng.random((800, 8)) < 0.2 * np.where(truth[:, None] == of_class, right, 1 - right)
    label = np.where(fires, of_class, -1)
    again = np.where(rng.random((800, 8)) < 0.9, label, -1)
    said = np.concatenate([label, again[:, :4], again[:, :4]], 1)
    return crowd(truth, said, np.ones(said.shape, bool), 2)


def rare_classes(rng: np.random.Generator) -> cp.Annotations:
    """400 tasks × 5, 20 workers, three classes of which two have 5 % and 2 % of the tasks."""
    return crowd(*drawn(rng, accuracies(rng, 20, 0.8, 0.06), n_tasks=400, prevalence=np.array([0.93, 0.05, 0.02])), 3)


HEALTHY: dict[str, Callable[[np.random.Generator], cp.Annotations]] = {
    "plain": plain,
    "plain, two classes": plain_two_classes,
    "alike, two classes": alike,
    "thin": thin,
    "rare class": rare,
    "rare classes": rare_classes,
    "ten classes": many_classes,
    "dense": dense,
    "abstaining": abstaining,
}

UNTRUSTWORTHY: dict[str, Callable[[np.random.Generator], cp.Annotations]] = {
    **{f"noise, {k} classes": noise(k) for k in (2, 3, 5)},
    "noise, thin": noise_thin,
    "noise, uneven": noise_uneven,
    **{f"constant {share:.0%}, one class": constants(share) for share in (0.4, 0.5, 0.6)},
    **{
        f"constant {share:.0%}, own classes": constants(share, n_classes=3, one_class=False)
        for share in (0.4, 0.5, 0.6)
    },
    "wrong majority": wrong_majority,
    **{f"copies {share:.0%}": copies(share) for share in (0.75, 0.85)},
    **{f"copies {share:.0%}, two classes": copies(share, per_task=7, n_classes=2) for share in (0.75, 0.85)},
    "few experts": few_experts,
    "pairs of classes": pairs_of_classes,
    "twins": twins,
    "three runs of four judges": runs,
    "two families of three judges": two_families,
    "lazy": lazy,
    "copied labelling functions": copied_functions,
    "two difficulties": two_difficulties,
    "misleading tasks": misleading,
    "one class in doubt": in_doubt,
    "first label followed 60%": followed(0.6),
    "majority copied": majority_copied,
    "class added half way": added_class,
    **{f"one heavy worker, {k} classes": one_heavy(k) for k in (2, 4)},
}
