"""Salmon's lecture on crowd labels: rules over votes and classical stories, as labels and as teachers of a network."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .experiment import NOT_RUN, Cell, Claim, Experiment, Finding, NotRun, above, mean_sd, rows_of, twice

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from matplotlib.figure import Figure

    from crowdppl.data import Annotations

CLUSTERS: dict[str, Any] = {"membership": "worker", "share": 0.1}  # as DL-WC has them
LABELLERS: dict[str, tuple[str, dict[str, Any]]] = {
    "majority vote": ("majority_vote", {}),
    "WAWA": ("wawa", {}),
    "naive soft": ("naive_soft", {}),
    "Dawid–Skene": ("dawid_skene", {}),
    "GLAD": ("glad", {}),
    "worker clusters": ("annotator_groups", CLUSTERS),
}
TEACHERS = {
    "DL-MV": "dl_mv",
    "DL-NS": "dl_ns",
    "DL-WAWA": "dl_wawa",
    "DL-DS": "dl_ds",
    "DL-GLAD": "dl_glad",
    "DL-WC": "dl_wc",
}
LABELLED = ("anesthesia", "bluebird", "digits", "labelme", "music")
TRAINED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "digits": ({}, {"epochs": 20}),
    "labelme": ({}, {"epochs": 30}),
    "music": ({"batch_norm": True}, {"epochs": 30}),
}
"""By dataset the network's options and the training's."""

RATE = 1e-3
BINS = 20  # of the histograms of entropies, from 0 to the logarithm of the number of classes
PAPERS = {
    ("labelme", "DL-MV"): "79.83 (CoNAL), 79.95 (CMM), 81.3 (DASC)",
    ("labelme", "DL-NS"): "81.69 (CMM)",
    ("labelme", "DL-DS"): "83.57 (CMM), 82.2 (DASC)",
    ("labelme", "DL-GLAD"): "83.12 (CoNAL)",
    ("labelme", "DL-WC"): "82.74 (CoNAL)",
    ("music", "DL-MV"): "72.53 (CoNAL), 59.3 (DASC)",
    ("music", "DL-DS"): "65.2 (DASC)",
    ("music", "DL-GLAD"): "77.82 (CoNAL)",
    ("music", "DL-WC"): "75.76 (CoNAL)",
}
"""Test accuracies that the named papers report, with networks and features of their own."""


def cells(n_seeds: int) -> list[Cell]:
    """Return the cells: labels once, since they do not depend on a seed, and then a network for each seed."""
    labels = [{"part": "labels", "data": data, "method": name, "seed": 0} for data in LABELLED for name in LABELLERS]
    taught = [
        {"part": "training", "data": data, "method": name, "seed": seed}
        for seed in range(n_seeds)
        for data in TRAINED
        for name in TEACHERS
    ]
    return labels + taught


def run(part: str, data: str, method: str, seed: int) -> dict[str, Any]:
    """Label a dataset, or train a network on labels of it."""
    from crowdppl import load_dataset

    annotations = load_dataset(data)
    return labelled(annotations, method) if part == "labels" else taught(annotations, data, method, seed)


def labelled(annotations: Annotations, method: str) -> dict[str, Any]:
    """Labels' accuracy and entropies, and the best, worst and average confusion matrix by accuracy."""
    import numpy as np

    from crowdppl import fit

    name, options = LABELLERS[method]
    given = {} if name in ("majority_vote", "wawa", "naive_soft") else {"progress": False, "sweeps": 0, **options}
    found = fit(name, annotations, **given)
    posterior, most = np.asarray(found.posterior), float(np.log(annotations.n_classes))
    entropies = found.entropies.dropna()
    row: dict[str, Any] = {"entropy": float(entropies["entropy"].mean()), "n_classes": annotations.n_classes}
    row["vote_entropy"] = float(entropies["vote_entropy"].mean())
    for column in ("entropy", "vote_entropy"):
        heights, _ = np.histogram(np.clip(entropies[column], 0, most), np.linspace(0, most, BINS + 1))
        row[f"{column}_counts"] = heights.tolist()
    if annotations.gold is not None:
        row["accuracy"] = 100 * float(right_labels(posterior, np.asarray(annotations.gold)))
    extremes = found.extreme_confusions()
    size = (annotations.n_classes, annotations.n_categories)
    for which, one in extremes.groupby("which", sort=False):
        confusion = one["probability"].to_numpy().reshape(size)
        row[f"{which}_confusion"] = confusion.round(4).tolist()
        row[f"{which}_accuracy"] = 100 * float(posterior.mean(0) @ np.diagonal(confusion))
    return row


def right_labels(posterior: np.ndarray, gold: np.ndarray) -> float:
    """Return the share of gold tasks whose most probable class is right; ties count as what they would by a draw."""
    import numpy as np

    known = np.flatnonzero(gold >= 0)
    best = posterior[known] >= posterior[known].max(-1, keepdims=True) - 1e-9
    return float((best[np.arange(len(known)), gold[known]] / best.sum(-1)).mean())


def taught(annotations: Annotations, data: str, method: str, seed: int) -> dict[str, Any]:
    """The test accuracy of a network that was trained on labels."""
    from crowdppl import Classifier, label_then_train, load_split

    of_network, of_training = TRAINED[data]
    network = Classifier("mlp", hidden=(128,), dropout=0.5, **of_network)
    told = {"network_rate": RATE, "seed": seed, "progress": False, **of_training}
    found = label_then_train(TEACHERS[method], annotations, classifier=network, **told)
    x, y = load_split(data, "test")
    return {"accuracy": 100 * float((found.predict_proba(x).argmax(-1) == y).mean())}


def tables(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Labels, entropies, workers and networks: a row for each method and dataset."""
    import pandas as pd

    labels, training = rows_of(frame, {"part": "labels"}), rows_of(frame, {"part": "training"})
    found = {}
    for title, columns in {
        "Labels: accuracy on gold, %": {"accuracy": 1},
        "Mean entropy in nats: of the label, and of the vote shares (naive soft)": {"entropy": 3, "vote_entropy": 3},
        "Accuracy of the best, the worst and the average worker by accuracy, %": {
            "best_accuracy": 1,
            "worst_accuracy": 1,
            "average_accuracy": 1,
        },
    }.items():
        rows = []
        for method in LABELLERS:
            row: dict[str, Any] = {"method": method}
            for data in LABELLED:
                some = rows_of(labels, {"data": data, "method": method})
                row[data] = " / ".join(mean_sd(some.get(name, []), digits) for name, digits in columns.items())
            rows.append(row)
        found[title] = pd.DataFrame(rows).set_index("method")
    rows = []
    for method in TEACHERS:
        row = {"method": method}
        for data in TRAINED:
            row[f"{data}, papers"] = PAPERS.get((data, method), "–")
            row[data] = mean_sd(rows_of(training, {"data": data, "method": method}).get("accuracy", []), 1)
        rows.append(row)
    found["Label, then train: test accuracy of the network, %"] = pd.DataFrame(rows).set_index("method")
    return found


def figures(frame: pd.DataFrame) -> dict[str, Figure]:
    """Entropies of labels and of votes, and the confusion matrices of the best, the worst and the average worker."""
    labels = rows_of(frame, {"part": "labels", "method": "Dawid–Skene"})
    drawn = {}
    for _, row in labels.iterrows():
        drawn[f"entropy_{row['data']}"] = _entropy_figure(row)
        if row["n_classes"] <= 10:
            drawn[f"workers_{row['data']}"] = _worker_figure(row)
    return drawn


def _entropy_figure(row: pd.Series) -> Figure:
    import matplotlib.pyplot as plt
    import numpy as np

    edges = np.linspace(0, np.log(row["n_classes"]), BINS + 1)
    figure, ax = plt.subplots(figsize=(5.6, 3.2), layout="constrained")
    ax.stairs(row["entropy_counts"], edges, fill=True, alpha=0.5, label="label of Dawid–Skene")
    ax.stairs(row["vote_entropy_counts"], edges, color="black", label="vote shares (naive soft)")
    ax.set(xlabel="entropy in nats", ylabel="tasks", title=row["data"])
    ax.legend(fontsize=8)
    return figure


def _worker_figure(row: pd.Series) -> Figure:
    import matplotlib.pyplot as plt
    import numpy as np

    figure, axes = plt.subplots(1, 3, figsize=(9, 3.2), layout="constrained")
    for ax, which in zip(axes, ("best", "worst", "average"), strict=True):
        ax.imshow(np.array(row[f"{which}_confusion"]), vmin=0, vmax=1, cmap="Blues")
        ax.set(xlabel="annotation", title=f"{which}: {row[f'{which}_accuracy']:.0f} % right")
    axes[0].set_ylabel("true class")
    figure.suptitle(f"{row['data']}: workers by accuracy, Dawid–Skene")
    return figure


def labels_better(first: str, second: str) -> Callable[[pd.DataFrame], Finding]:
    """Return the judge of a claim that one method labels better than another, in the mean of the datasets."""

    def judged(frame: pd.DataFrame) -> Finding:
        labels = rows_of(frame, {"part": "labels"})
        if "accuracy" not in labels or labels.empty:
            return NOT_RUN
        by_data = labels.dropna(subset="accuracy").assign(seed=lambda some: some["data"])
        return above(by_data, "accuracy", {"method": first}, {"method": second})

    return judged


def trains_better(data: str, first: str, second: str) -> Callable[[pd.DataFrame], Finding]:
    """Return the judge of a claim that labels of one method teach better than those of another."""
    settings = {"part": "training", "data": data}
    return lambda frame: above(frame, "accuracy", {**settings, "method": first}, {**settings, "method": second})


_OF_LABELS = (("WAWA", "majority vote"), ("Dawid–Skene", "majority vote"), ("GLAD", "majority vote"))
_OF_TRAINING = (
    ("labelme", "DL-NS", "DL-MV", "CMM's paper", "81.69 against 79.95"),
    ("labelme", "DL-DS", "DL-MV", "CMM's paper", "83.57 against 79.95"),
    ("labelme", "DL-GLAD", "DL-MV", "CoNAL's paper", "83.12 against 79.83"),
    ("labelme", "DL-WC", "DL-MV", "CoNAL's paper", "82.74 against 79.83"),
    ("music", "DL-DS", "DL-MV", "DASC's paper", "65.2 against 59.3"),
    ("music", "DL-GLAD", "DL-MV", "CoNAL's paper", "77.82 against 72.53"),
    ("music", "DL-WC", "DL-MV", "CoNAL's paper", "75.76 against 72.53"),
)
CLAIMS = tuple(
    Claim(
        f"{first} labels better than {second}, in the mean of the datasets.",
        "lecture",
        "",
        labels_better(first, second),
        twice("the datasets with gold labels") + " Labels do not depend on a seed: ± is the deviation over datasets.",
    )
    for first, second in _OF_LABELS
) + tuple(
    Claim(
        f"A network learns better from labels of {first} than of {second}.",
        f"{where}, {data}",
        paper,
        trains_better(data, first, second),
    )
    for data, first, second, where, paper in _OF_TRAINING
)

EXPERIMENT = Experiment(
    name="lecture",
    title="Rules over votes and classical stories, as labels and as teachers of a network",
    paper="Salmon, lecture on crowd labels",
    cells=cells,
    run=run,
    tables=tables,
    figures=figures,
    claims=CLAIMS,
    needs=("bluebird", "labelme", "music"),
    notes=(
        "The lecture has no figures to compare with; those beside ours are of the named papers, which have its methods "
        "as baselines, with networks and features of their own. Labels do not depend on a seed; a claim on them is "
        "judged over the four datasets with gold labels, of which ties of votes count as what they would by a draw. "
        "Worker clusters are workers who share the confusion matrix of their cluster. The best and the worst worker "
        "are by accuracy, whatever number of annotations they gave; the average is over annotations. Networks: 128 "
        "hidden units, dropout 0.5, batch norm on music, learning rate 0.001, 20 epochs on digits and 30 on the "
        "others, chosen for the time that they take."
    ),
    not_run=(
        NotRun(
            "CIFAR-10H: the trap tasks and the time to annotate of its own workers",
            "the lecture's examples",
            "The counts of annotations are open; the workers, their trap tasks and times are not in them. Nearest: the "
            "notebook measuring_a_crowd, with the entropy and the confusion matrix of these counts, and traps and "
            "times of workers who are drawn from them.",
            "The release with one row an annotation, of 2,571 workers; cp.Annotations.from_frame(…, seconds=…) "
            "takes their times.",
        ),
        NotRun(
            "Networks on CIFAR-10H's images",
            "the lecture's examples",
            "The images are not among the data that are open here. Nearest: labelme and music, on features.",
            "60,000 images, which python -m benchmarks.papers.cifar10 FOLDER CIFAR10H gives cp.load_dataset, and hours "
            "of a GPU.",
        ),
    ),
)
