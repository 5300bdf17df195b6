"""What the experiments of CoNAL share: the methods by the paper's names, and what a fit has learnt of confusions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .experiment import FAILS, HOLDS, HOLDS_IF, NOT_TESTED, TWICE, Cell, Finding, above, mean_sd, percent_right, rows_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import pandas as pd
    from matplotlib.figure import Figure

    from crowdppl.data import Annotations

PAPER = "Chu, Ma & Wang, Learning from Crowds by Modeling Common Confusions, AAAI 2021."
PUBLISHED, OURS = "CoNAL", "CoNAL, one truth a task"
AS_PUBLISHED: dict[str, Any] = {"truth": "answer", "kernels": "free", "hidden": 128, "bias": True}
"""Options of ``common_individual`` by which it is what the authors' program does."""

TEST_ACCURACY = "Test accuracy, %"
ACCURACIES = {TEST_ACCURACY: "accuracy", "Accuracy of the labels of annotated tasks, %": "labels"}
"""Titles of tables, and what is measured in them."""

IN_EITHER = (
    f"{TWICE} Judged of CoNAL as published; 'holds if' says that it fails there and holds with one truth for all "
    "annotations to a task."
)
"""The rule of :func:`above_in_either`."""

LAMBDA = 1e-5  # the paper's, of a mean over annotations
AGGREGATED = {"DL-MV": "dl_mv", "DL-GLAD": "dl_glad", "DL-WC": "dl_wc"}
STORIES = {"DL-CL": "crowd_layer", "Anno-Reg": "anno_reg", "AggNet": "dawid_skene", OURS: "common_individual"}
MADL: dict[str, dict[str, Any]] = {
    "MaDL": {"truth": "answer", "hidden": 128},
    "MaDL, one truth a task": {"hidden": 128},
}
"""Options of ``confusion_from_features``, of another paper: each annotation by itself as there, and our default."""

BASELINES = {"DoctorNet": "doctor_net", "Max-MIG": "max_mig"}


def methods() -> list[str]:
    """The methods of the paper's comparison that are there, and ours, the cheap ones first."""
    from crowdppl.inference.baselines.fit_baseline import BASELINES as registered
    from crowdppl.models import KNOWN_STORIES

    others = [method for method, name in BASELINES.items() if name in registered or name in KNOWN_STORIES]
    return ["DL-MV", *list(STORIES)[:2], *others, "DL-GLAD", "DL-WC", "AggNet", PUBLISHED, OURS]


def train(method: str, annotations: Annotations, separation: float | None = None, **training: Any) -> Any:
    """A fit with a classifier, by the paper's name of the method.

    Args:
        method: one of :func:`methods` or of :data:`MADL`, or ``"truth known"``.
        annotations: tasks with features.
        separation: the weight of CoNAL's regulariser, in nats; the paper's by default for CoNAL, 0 for ours.
        training: ``classifier``, ``seed`` and options of the training; ``embedding`` of both CoNALs.
    """
    from crowdppl import fit, label_then_train

    embedding = {"embedding": training.pop("embedding", 20)}
    training = {"progress": False, **training}
    if method == "truth known":
        return fit("majority_vote", annotations, gold=True, **training)
    if method in MADL:
        return fit("madl", annotations, **MADL[method], **training)
    if method in AGGREGATED:
        return label_then_train(AGGREGATED[method], annotations, **training)
    if method == PUBLISHED:
        published = LAMBDA * annotations.n_annotations if separation is None else separation
        return fit("conal", annotations, separation=published, **AS_PUBLISHED, **embedding, **training)
    options = {**embedding, "separation": separation or 0.0} if method == OURS else {}
    return fit((STORIES | BASELINES)[method], annotations, **options, **training)


def learnt(fitted: Any) -> dict[str, Any]:
    """Of a CoNAL: the common confusion matrix, the mean of the workers' own by annotations given, and the switch.

    A free kernel is given as what it has workers annotate where the classifier is certain: the softmax of its rows.

    Returns:
        ``common`` and ``individual``, ``(K, K)`` as lists; ``switch``, the share of the annotations in each twentieth
        of [0, 1]; ``switch_mean`` and ``switch_spread``, a standard deviation.
    """
    import numpy as np
    from scipy.special import softmax

    is_free = "common" in fitted.derived
    source = fitted.derived if is_free else fitted.parameters
    common, individual = (np.squeeze(np.asarray(source[name], dtype=float)) for name in ("common", "individual"))
    if is_free:
        common, individual = softmax(common, axis=-1), softmax(individual, axis=-1)
    switch = np.asarray(fitted.derived["switch"], dtype=float).ravel()
    given = fitted.annotations.n_by_worker()
    return {
        "common": np.round(common, 4).tolist(),
        "individual": np.round(np.average(individual, axis=0, weights=given), 4).tolist(),
        "switch": (np.histogram(switch, 20, (0, 1))[0] / len(switch)).round(4).tolist(),
        "switch_mean": float(switch.mean()),
        "switch_spread": float(switch.std()),
    }


def measured(method: str, fitted: Any, x: Any, y: Any) -> dict[str, Any]:
    """Test accuracy and that of the labels of the annotated tasks, in percent; of a CoNAL what it has learnt too.

    ``rise`` is what the last quarter of the epochs added to the log-posterior, in nats an annotation; None of labels
    without a likelihood.

    Args:
        method: one of :func:`methods`.
        fitted: by :func:`train`.
        x: features of test tasks.
        y: their classes.
    """
    found = {
        "accuracy": percent_right(fitted.predict_proba(x), y),
        "labels": percent_right(fitted.probabilities, fitted.annotations.gold),
        "rise": fitted.outcome.facts.get("rise") if hasattr(fitted, "outcome") else None,
    }
    return found | (learnt(fitted) if method in (PUBLISHED, OURS) else {})


def accuracy_tables(rows: pd.DataFrame, column: str) -> dict[str, pd.DataFrame]:
    """Both accuracies of :func:`measured`, means and standard deviations: methods × the values of a column."""
    if rows.empty:
        return {}
    return {
        title: rows.groupby(["method", column], sort=False)[measure].agg(mean_sd).unstack().fillna("–")
        for title, measure in ACCURACIES.items()
    }


def shares_who_confuse(annotations: Annotations) -> pd.DataFrame:
    """The share of the workers who annotated a task of one class with another at least once, of all workers.

    The percentages of the paper's figure 1: of labelme's 59 workers 61.0 % took a street for the inside of a city, and
    of music's 44 workers 63.6 % metal for rock.

    Args:
        annotations: whose gold labels are known; workers are named.

    Returns:
        With the columns gold, annotation and share (0 to 1), the largest share first; pairs that nobody confused are
        left out.
    """
    import numpy as np
    import pandas as pd

    gold = np.asarray(annotations.gold)[annotations.task]
    wrong = (gold >= 0) & (gold != np.asarray(annotations.label))
    names = np.array(list(annotations.classes))
    rows = pd.DataFrame(
        {
            "gold": names[gold[wrong]],
            "annotation": names[np.asarray(annotations.label)[wrong]],
            "worker": np.asarray(annotations.worker)[wrong],
        }
    )
    share = rows.groupby(["gold", "annotation"])["worker"].nunique() / annotations.n_workers
    return share.rename("share").sort_values(ascending=False, kind="stable").reset_index()


def above_in_either(frame: pd.DataFrame, rival: Cell, where: Cell, measure: str = "accuracy") -> Finding:
    """Judge that CoNAL has more of a measure than a rival: as published, or else if a task's annotations share a truth.

    Args:
        frame: a row for each cell.
        rival: settings of the rival.
        where: settings of both.
        measure: the column.
    """
    published, ours = (above(frame, measure, {**where, "method": name}, rival) for name in (PUBLISHED, OURS))
    if published.verdict.startswith(NOT_TESTED):
        return published
    told = f"{published.ours}; one truth a task: {ours.ours}"
    if published.verdict == FAILS and ours.verdict == HOLDS:
        return Finding(told, f"{HOLDS_IF} the annotations to a task share one truth")
    return Finding(told, published.verdict)


def trained_for(frame: pd.DataFrame, epochs: int | None) -> pd.DataFrame:
    """Return the rows of cells that name so many epochs; for None those of cells that name none."""
    if epochs is not None:
        return rows_of(frame, {"epochs": epochs})
    return frame[frame["epochs"].isna()] if "epochs" in frame else frame


def to_the_end(judge: Callable[[pd.DataFrame], Finding], usual: int, long: int) -> Callable[[pd.DataFrame], Finding]:
    """Judge networks that were trained for many epochs, and say after them what the verdict is after the usual few."""

    def judged(frame: pd.DataFrame) -> Finding:
        found = judge(trained_for(frame, long))
        if found.verdict.startswith(NOT_TESTED):
            return found
        before = judge(trained_for(frame, None)).verdict
        return Finding(f"{found.ours}. After {usual} epochs: {before}", found.verdict)

    return judged


def rise_table(frame: pd.DataFrame, usual: int) -> pd.DataFrame:
    """Return what the last quarter of the epochs added, in nats an annotation: methods × numbers of epochs."""
    epochs = frame["epochs"].fillna(usual).astype(int) if "epochs" in frame else usual
    rows = frame.assign(epochs=epochs).dropna(subset=["rise"])
    table = rows.groupby(["method", "epochs"], sort=False)["rise"].agg(lambda values: mean_sd(values, 3))
    return table.unstack().fillna("–")


def draw_matrices(rows: pd.DataFrame) -> Figure:
    """Draw the common confusion matrix and the workers' own on average, a row for each CoNAL, means over the seeds.

    A row above them has what simulated crowds were made of, where the columns ``actual_common`` and
    ``actual_individual`` say so.
    """
    import matplotlib.pyplot as plt

    lines = {str(method): (by, "") for method, by in rows.groupby("method", sort=False)}
    if "actual_common" in rows:
        lines = {"actual": (rows, "actual_")} | lines
    figure, axes = plt.subplots(len(lines), 2, figsize=(7, 3.3 * len(lines)), layout="constrained", squeeze=False)
    for line, (name, (by, prefix)) in zip(axes, lines.items(), strict=True):
        for ax, what in zip(line, ("common", "individual"), strict=True):
            draw_matrix(ax, mean_matrix(by[f"{prefix}{what}"]), f"{name}: {what}")
    return figure


def draw_matrix(ax: Any, matrix: Any, title: str, classes: list[str] | None = None) -> None:
    """Draw a confusion matrix with its numbers."""
    import numpy as np

    values = np.asarray(matrix, dtype=float)
    ax.imshow(values, vmin=0, vmax=1, cmap="Blues")
    for (row, column), value in np.ndenumerate(values):
        if value >= 0.05:
            ax.text(column, row, f"{value:.2f}"[1:] if value < 0.995 else "1", ha="center", va="center", fontsize=6)
    names = classes or [str(k) for k in range(len(values))]
    ax.set_xticks(range(len(names)), names, rotation=90, fontsize=6)
    ax.set_yticks(range(len(names)), names, fontsize=6)
    ax.set_title(title, fontsize=8)


def mean_matrix(values: Any) -> np.ndarray:
    """The mean over cells of matrices, or of histograms, that are kept as lists."""
    import numpy as np

    return np.mean([np.asarray(value, dtype=float) for value in values], axis=0)
