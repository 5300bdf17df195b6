"""A classifier's probabilities beside a crowd: as one more fallible worker, as evidence, and left out.

The classifier is a logistic regression of the tasks' features that was trained on majority votes; its probabilities of
each fifth of the tasks are those of a regression on the others. With little regularisation it is far too sure.
"""

import numpy as np
import typer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from support.report import Report

import crowdppl as cp

DATASETS = "labelme,music"
REGULARISATION = {"regularised": 0.01, "too sure": 100.0}  # C of scikit-learn


def probabilities(annotations: cp.Annotations, c: float) -> np.ndarray:
    """Of each task, ``(N, K)``, by a regression that has not seen its votes."""
    x = np.asarray(annotations.features, float).reshape(annotations.n_tasks, -1)
    x = (x - x.mean(0)) / (x.std(0) + 1e-9)
    votes = annotations.votes().argmax(-1)
    found = np.zeros((annotations.n_tasks, annotations.n_classes))
    regression = LogisticRegression(C=c, max_iter=300)
    found[:, np.unique(votes)] = cross_val_predict(regression, x, votes, method="predict_proba", cv=5)
    return found


def scored(name: str, posterior: np.ndarray, gold: np.ndarray, slope: float = np.nan) -> dict[str, object]:
    """One row: accuracy and mean log-probability of the true class."""
    known = gold >= 0
    right = np.maximum(posterior[known, gold[known]], 1e-12)
    accuracy = (posterior[known].argmax(-1) == gold[known]).mean()
    return {"labels": name, "accuracy": 100 * accuracy, "log-score": np.log(right).mean(), "slope": slope}


def rows_of(annotations: cp.Annotations, story: str) -> list[dict[str, object]]:
    """The classifier, the story, and both together in two ways."""
    gold = np.asarray(annotations.gold)
    rows = [scored(story, cp.fit(story, annotations, progress=False).posterior, gold)]
    for kind, c in REGULARISATION.items():
        p = probabilities(annotations, c)
        rows.append(scored(f"classifier, {kind}", p, gold))
        told = cp.fit(story, annotations, probabilities=p, progress=False)
        slope = float(told.parameters["model_slope"].to_numpy()[0])
        rows.append(scored(f"{story}, probabilities= of it", told.posterior, gold, slope))
        believed = cp.fit(story, annotations, evidence=p, progress=False)
        rows.append(scored(f"{story}, evidence= of it", believed.posterior, gold))
    return rows


def main(datasets: str = DATASETS, story: str = "dawid_skene", write: bool = False) -> None:
    """Measure, and print what was found.

    Args:
        datasets: names, with commas; their tasks have features.
        story: the story that is fitted by EM with its defaults.
        write: refresh this section of RESULTS.md.
    """
    report = Report("Probabilities of a classifier beside a crowd")
    for name in datasets.split(","):
        report.table(f"{name}: {story} by EM", rows_of(cp.load_dataset(name), story))
    report.note(
        "Accuracy in percent and mean log-score of the gold label. The classifier is a logistic regression of the "
        "features, trained on the majority votes of other tasks, with much and with little regularisation."
    )
    if write:
        report.write()


if __name__ == "__main__":
    typer.run(main)
