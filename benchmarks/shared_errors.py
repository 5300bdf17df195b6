"""Shared errors on real crowds: accuracy, log-score and calibration without and with, how independent workers are."""

import warnings

import numpy as np
import typer
from support.report import Report

import crowdppl as cp

DATASETS = (
    "bluebird,dog,rte,trec,adult,product,sentiment,weather_amt,movie_sp,fact_eval,relevance,temp,labelme,music,"
    "ws_youtube,ws_sms,judges_llmbar"
)
FEWEST = 1e-12  # least probability in a log-score
PARTS = ({"shared_error": True}, {"task_difficulty": True}, {"shared_error": True, "task_difficulty": True})
SIZES = {"n_tasks": 1000, "n_workers": 20, "annotations_per_task": 5}  # of a simulated crowd


def main(
    datasets: str = DATASETS, story: str = "dawid_skene", classes: str = "2,5,20", crowds: int = 3, write: bool = False
) -> None:
    """Measure, and print what was found.

    Args:
        datasets: names, with commas.
        story: the story that is fitted by EM with its defaults.
        classes: numbers of classes of crowds that are simulated, with commas.
        crowds: that are simulated of each.
        write: refresh this section of RESULTS.md.
    """
    report = Report("Shared errors of workers")
    rows = [row(name, story) for name in datasets.split(",")]
    report.table(f"{story} by EM, without and with shared_error=True", rows)
    report.note(
        "Accuracy in percent, mean log-score of the gold label (probabilities from 10⁻¹²), expected calibration error "
        "in ten bins. Independent: like how many independent workers the workers count, by the posterior of the labels "
        "without and with shared errors, and by gold. The prior of the pulls and the fourfold weight of how often an "
        "impression is right were set with gold labels of these and of nine other datasets in view."
    )
    drawn = [simulated(story, parts, int(k), crowds) for parts in PARTS for k in classes.split(",")]
    sizes = "1,000 tasks with five annotations each by 20 workers"
    report.table(f"{story} by EM on crowds of its own: {sizes}, means of {crowds} crowds", drawn)
    report.note(
        "Drawn from the story and its prior, and fitted by the same story: right is the share of the labels that are "
        "right, said their mean probability, held how many 90 % intervals of the realised accuracy hold it."
    )
    if write:
        report.write()


def simulated(story: str, parts: dict[str, bool], n_classes: int, crowds: int) -> dict[str, object]:
    """The story with its parts, fitted to crowds that are drawn from it."""
    found = []
    for seed in range(crowds):
        annotations, _ = cp.simulate(story, n_classes=n_classes, seed=seed, **SIZES, **parts)
        truth = np.asarray(annotations.gold)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit = cp.fit(story, annotations.without_gold(), progress=False, **parts)
            workers = fit.workers
        was_right = truth[np.asarray(annotations.task)] == np.asarray(annotations.label)
        actual = np.bincount(annotations.worker, was_right) / np.bincount(annotations.worker)
        held = (workers["realised_accuracy_low"] <= actual) & (actual <= workers["realised_accuracy_high"])
        found.append(((fit.posterior.argmax(-1) == truth).mean(), fit.posterior.max(-1).mean(), held.mean()))
    right, said, held = np.mean(found, axis=0)
    return {
        "parts": " + ".join(parts),
        "classes": n_classes,
        "right": f"{right:.3f}",
        "said": f"{said:.3f}",
        "held": f"{held:.0%}",
    }


def row(name: str, story: str) -> dict[str, object]:
    """Both fits of one dataset, whose gold labels they do not see."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        annotations = cp.load_dataset(name)
        plain = cp.fit(story, annotations, progress=False)
        shared = cp.fit(story, annotations, shared_error=True, progress=False)
    correlations = [cp.error_correlation(source) for source in (plain, shared, annotations)]
    reached = [scores(fit.posterior, np.asarray(annotations.gold)) for fit in (plain, shared)]
    both = {key: f"{reached[0][key]:.{n}f} → {reached[1][key]:.{n}f}" for key, n in DIGITS.items()}
    independent = " → ".join(f"{found.n_effective:.1f}" for found in correlations[:2])
    return {
        "dataset": name,
        **both,
        "workers": annotations.n_workers,
        "independent": independent,
        "by gold": f"{correlations[2].n_effective:.1f}",
    }


DIGITS = {"accuracy": 1, "log-score": 2, "calibration error": 3}


def scores(posterior: np.ndarray, gold: np.ndarray) -> dict[str, float]:
    """Accuracy, log-score and calibration error of label probabilities, on the tasks with gold labels."""
    known = np.flatnonzero(gold >= 0)
    p, label = posterior[known], gold[known]
    right, sure = p.argmax(-1) == label, p.max(-1)
    place = np.minimum((sure * 10).astype(int), 9)
    gaps = [abs((right[place == b] - sure[place == b]).sum()) for b in range(10)]
    return {
        "accuracy": 100 * right.mean(),
        "log-score": float(np.log(np.maximum(p[np.arange(len(p)), label], FEWEST)).mean()),
        "calibration error": float(sum(gaps) / len(p)),
    }


if __name__ == "__main__":
    typer.run(main)
