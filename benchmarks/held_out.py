"""Training that held-out annotations end, beside the default: labels, and classes of tasks that nobody annotated."""

import warnings
from typing import Any, NamedTuple

import numpy as np
import typer
from support.data import data_folder
from support.report import Report
from support.seeds import with_deviation

import crowdppl as cp

CROWDS: dict[str, dict[str, Any]] = {
    f"{n_classes} classes, {'far' if far == 2 else 'near'}": {"n_classes": n_classes, "right": right, "far": far}
    for n_classes, right in ((2, 0.7), (4, 0.5))
    for far in (2.0, 0.7)
}
N_TASKS, N_TEST = 200, 2000  # of a crowd
NETWORKS = {
    name: cp.Classifier("mlp", hidden=(128,), dropout=0.5, batch_norm=name == "music") for name in ("labelme", "music")
}
WAYS: dict[str, dict[str, Any]] = {"all annotations": {}, "held_out=0.1": {"held_out": 0.1}}


class Data(NamedTuple):
    """Annotations, the tasks' true labels as positions, and tasks that nobody annotated."""

    annotations: cp.Annotations
    truth: np.ndarray  # (N,)
    x: np.ndarray
    y: np.ndarray


def main(draws: int = 3, engines: str = "em,svi", write: bool = False) -> None:
    """Measure, and print what was found.

    Args:
        draws: crowds of each kind, and seeds of the datasets.
        engines: their names, with commas.
        write: refresh this section of RESULTS.md.
    """
    warnings.simplefilter("ignore")
    data_folder()
    rows: list[dict[str, object]] = []
    for engine in engines.split(","):
        for name in (*CROWDS, *NETWORKS):
            for way, options in WAYS.items():
                found = np.array([_fit(name, seed, method=engine, **options) for seed in range(draws)]).T
                accuracies = (with_deviation(values, 1) for values in found[:2])
                labels, test, log_score = *accuracies, with_deviation(found[2], 2)
                print(engine, name, way, labels, test, log_score, flush=True)
                rows.append(
                    {
                        "data": name,
                        "engine": engine,
                        "trained on": way,
                        "labels": labels,
                        "test": test,
                        "log-score, test": log_score,
                    }
                )
    report = Report("Training that held-out annotations end")
    report.table(f"Accuracy in percent: dawid_skene with a network, mean of {draws} ± standard deviation", rows)
    report.note(
        f"Crowds of {N_TASKS} tasks with five annotations by ten workers, right in 70 % of two classes and in 50 % of "
        "four; ten features, which tell the classes well (far) or in part (near); a network 'mlp'; test on "
        f"{N_TEST:,} tasks. labelme and music: 128 hidden units, dropout 0.5, batch norm on music. All else by default."
    )
    if write:
        report.write()


def _fit(name: str, seed: int, **options: Any) -> tuple[float, float, float]:
    """Accuracy in percent of the labels and of the network on the test tasks, and its log-score there."""
    data = _crowd(seed, **CROWDS[name]) if name in CROWDS else _dataset(name)
    classifier = NETWORKS.get(name, "mlp")
    fit = cp.fit("dawid_skene", data.annotations, classifier=classifier, seed=seed, progress=False, **options)
    labels, probabilities = np.asarray(fit.posterior).argmax(-1), np.asarray(fit.predict_proba(data.x))
    of_truth = np.maximum(probabilities[np.arange(len(data.y)), data.y], 1e-9)
    test = probabilities.argmax(-1) == data.y
    return 100 * float((labels == data.truth).mean()), 100 * float(test.mean()), float(np.log(of_truth).mean())


def _dataset(name: str) -> Data:
    annotations = cp.load_dataset(name)
    return Data(annotations, np.asarray(annotations.gold), *cp.load_split(name, "test"))


def _crowd(seed: int, *, n_classes: int, right: float, far: float) -> Data:
    """A crowd whose classes' centres are so far from the middle, in directions that are drawn."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=N_TASKS + N_TEST)
    centres = rng.normal(size=(n_classes, 10))
    centres *= far / np.linalg.norm(centres, axis=1, keepdims=True)
    x = centres[truth] + 0.7 * rng.normal(size=(len(truth), 10))
    annotated = truth[:N_TASKS, None]
    workers = np.argsort(rng.random((N_TASKS, 10)), axis=1)[:, :5]
    wrong = (annotated + rng.integers(1, n_classes, workers.shape)) % n_classes
    labels = np.full((N_TASKS, 10), -1)
    np.put_along_axis(labels, workers, np.where(rng.random(workers.shape) < right, annotated, wrong), axis=1)
    annotations = cp.Annotations.from_matrix(labels, classes=range(n_classes), missing=-1)
    return Data(annotations.replace(features=x[:N_TASKS]), truth[:N_TASKS], x[N_TASKS:], truth[N_TASKS:])


if __name__ == "__main__":
    typer.run(main)
