"""Difficulty-specified crowdsourcing: workers who err more on difficult tasks, on Gaussians and on images."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .experiment import (
    FAILS,
    HOLDS,
    HOLDS_IF,
    NOT_TESTED,
    Cell,
    Claim,
    Experiment,
    Finding,
    NotRun,
    above,
    mean_sd,
    rows_of,
    twice,
)

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from matplotlib.figure import Figure

    from crowdppl.data import Annotations

SETS = 4  # data sets of Gaussians for each seed: they take seconds, and the methods differ by tenths of a point
INTERCEPT = "gaussians, intercept"
"""The Gaussians with a logistic regression that has an intercept, which the paper's has not."""

TRUTH, BAYES = "truth known", "Bayes rule"
MV, EM = "majority vote, then train", "EM (two_coin)"
ADAPTIVE, PUBLISHED = "adaptive", "adaptive, gradient as published"
FIXED, OTHER_PRIOR = "fixed", "fixed, the classifier as prior"
OF_GAUSSIANS = (MV, EM, ADAPTIVE, FIXED, OTHER_PRIOR, TRUTH, BAYES)
OF_IMAGES = (MV, EM, ADAPTIVE, PUBLISHED, FIXED, OTHER_PRIOR, TRUTH)
STORIES: dict[str, tuple[str, dict[str, Any]]] = {
    EM: ("two_coin", {}),
    ADAPTIVE: ("difficulty", {}),
    PUBLISHED: ("difficulty", {"through_difficulty": True}),
    FIXED: ("difficulty", {"kind": "fixed"}),
    OTHER_PRIOR: ("difficulty", {"kind": "fixed", "votes_as_prior": False}),
}
NETWORK: dict[str, Any] = {"epochs": 20, "network_rate": 1e-3}  # of the images
STEEP = 4.0  # by which the linear rule's margin becomes log-odds, so that images are as often hard as easy
GRID = 41  # points of a ROC curve that are kept
OTHER_CLASS = ("even", "odd")
PAPER = {
    "gaussians": {MV: "93.6 ± 0.05", EM: "94.00 ± 0.11", ADAPTIVE: "93.9 ± 0.15", FIXED: "94.4 ± 0.13"},
    "structural": {MV: "50.0 ± 0.0", EM: "60.2 ± 9.1", PUBLISHED: "70.4 ± 0.9", FIXED: "74.3 ± 1.7"},
    "unstructured": {MV: "50.0 ± 0.0", EM: "50.6 ± 0.6", PUBLISHED: "76.7 ± 0.8", FIXED: "78.2 ± 0.3"},
}
"""Test accuracies in percent; on Gaussians the gradient of a logistic regression is the published one."""


def cells(n_seeds: int) -> list[Cell]:
    """Return the cells: Gaussians first, which take a second each."""
    gaussians = [
        (data, method, seed)
        for data in ("gaussians", INTERCEPT)
        for seed in range(SETS * n_seeds)
        for method in OF_GAUSSIANS
    ]
    images = [
        (kind, method, seed) for seed in range(n_seeds) for kind in PAPER if kind != "gaussians" for method in OF_IMAGES
    ]
    return [{"data": data, "method": method, "seed": seed} for data, method, seed in [*gaussians, *images]]


def run(data: str, method: str, seed: int) -> dict[str, Any]:
    """Fit a method to a data set."""
    import numpy as np

    from crowdppl import Classifier

    from .setups import SENSITIVITY, SPECIFICITY, two_gaussians

    of_gaussians = data in ("gaussians", INTERCEPT)
    setup = two_gaussians(seed) if of_gaussians else images(data, seed)
    linear = Classifier("logistic", bias=data == INTERCEPT, prior=None)
    options: dict[str, Any] = {"classifier": linear} if of_gaussians else {"classifier": "mlp", **NETWORK}
    annotations, x, y = setup
    posterior, of_test, found = _fitted(method, annotations, x, {**options, "seed": seed})
    row: dict[str, Any] = {"accuracy": 100 * float((of_test == y).mean())}
    if posterior is not None:
        row |= _ranked(posterior, np.asarray(annotations.gold))
    if found is not None:
        row |= {"sensitivity": found[0].tolist(), "specificity": found[1].tolist()}
        if data != "unstructured":
            row["coins"] = float(np.abs(np.concatenate([found[0] - SENSITIVITY, found[1] - SPECIFICITY])).mean())
    return row


def images(kind: str, seed: int) -> tuple[Annotations, np.ndarray, np.ndarray]:
    r"""Return digits, odd against even, with annotations of five experts; features and classes of the test images.

    Args:
        kind: ``"structural"`` for experts of the story, with the coins of the Gaussians, whose tasks are as difficult
            as they are for a linear rule that was trained on the truth of other images; ``"unstructured"`` for experts
            who err with probability 1 / (3 + k), k uniform on 0 to 5, drawn anew for every annotation.
        seed: of the annotations.
    """
    import numpy as np

    from crowdppl import load_dataset, load_split
    from crowdppl.data import Annotations

    from .setups import SENSITIVITY, SPECIFICITY

    given = load_dataset("digits")
    x, z = np.asarray(given.features), np.asarray(given.gold) % 2
    rng = np.random.default_rng(seed)
    if kind == "structural":
        p = 1 / (1 + np.exp(-STEEP * _margin(x, z)))
        coin = np.where(z[:, None] == 1, SENSITIVITY, SPECIFICITY)
        right = 1 / (1 + np.exp(-4 * np.log(coin / (1 - coin)) * ((p - 0.5) ** 2)[:, None]))
    else:
        right = 1 - 1 / (3 + rng.integers(0, 6, (len(z), len(SENSITIVITY))))
    labels = np.where(rng.random(right.shape) < right, z[:, None], 1 - z[:, None])
    annotations = Annotations.from_matrix(labels, classes=[0, 1], gold=dict(enumerate(z.tolist())), features=x)
    x_test, y_test = load_split("digits", "test")
    return annotations, x_test, y_test % 2


def _margin(x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """What a linear rule of the pixels says of each image, trained on the truth of the others: near ±1."""
    import numpy as np

    from crowdppl.inference.findings.of_classifier import linear_rule

    scores = linear_rule(x, np.eye(2)[z])
    return scores[:, 1] - scores[:, 0]


def _fitted(
    method: str, annotations: Annotations, x: np.ndarray, options: dict[str, Any]
) -> tuple[np.ndarray | None, np.ndarray, tuple[np.ndarray, np.ndarray] | None]:
    """Return the positive class's label probabilities, classes of the test tasks, sensitivities and specificities."""
    import numpy as np

    from crowdppl import fit, label_then_train

    told = {**options, "progress": False}
    if method == BAYES:
        return np.asarray(annotations.features).sum(1), (x.sum(1) > 0).astype(int), None
    if method == MV:
        trained = label_then_train("majority_vote", annotations, **told)
        return annotations.votes()[:, 1].astype(float), trained.predict_proba(x).argmax(-1), None
    if method == TRUTH:
        known = fit("two_coin", annotations, gold=True, **told)
        return None, known.predict_proba(x).argmax(-1), None
    story, more = STORIES[method]
    found = fit(story, annotations, **told, **more)
    values = found.parameters
    if story == "two_coin":
        coins = values["sensitivity"].to_numpy()[:, 1], values["specificity"].to_numpy()[:, 0]
    else:
        easiest = 1 / (1 + np.exp(-values["ability"].to_numpy() / 4))
        coins = easiest[:, 1], easiest[:, 0]
    return found.posterior[:, 1], found.predict_proba(x).argmax(-1), coins


def _ranked(score: np.ndarray, truth: np.ndarray) -> dict[str, Any]:
    """The area under the ROC curve, and the curve on a grid of false positive rates."""
    import numpy as np
    from sklearn.metrics import roc_auc_score, roc_curve

    false, true, _ = roc_curve(truth, score)
    curve = np.interp(np.linspace(0, 1, GRID), false, true)
    return {"auc": float(roc_auc_score(truth, score)), "true_positive_rates": curve.round(4).tolist()}


def tables(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Test accuracy beside the paper's, and what the Gaussians and the images tell of labels and experts."""
    import pandas as pd

    found = {}
    for data in ("gaussians", INTERCEPT, "structural", "unstructured"):
        methods = OF_IMAGES if data in PAPER and data != "gaussians" else OF_GAUSSIANS
        rows = []
        for method in methods:
            cell = rows_of(frame, {"data": data, "method": method})
            columns = {
                "test accuracy, %": ("accuracy", 2),
                "ROC-AUC of the truth": ("auc", 3),
                "error of the coins": ("coins", 3),
            }
            ours = {title: mean_sd(cell.get(name, []), digits) for title, (name, digits) in columns.items()}
            rows.append({"method": method, "test accuracy, paper": PAPER.get(data, {}).get(method, "–"), **ours})
        titles = {"gaussians": f"Two Gaussians: over {GAUSSIANS}"}
        titles[INTERCEPT] = f"{titles['gaussians']}, with an intercept, which the paper's regression has not"
        found[titles.get(data, f"Images, {data} annotations")] = pd.DataFrame(rows).set_index("method")
    return found


def figures(frame: pd.DataFrame) -> dict[str, Figure]:
    """ROC curves of the truth, and estimated over actual sensitivities and specificities."""
    drawn = {}
    for data in PAPER:
        if (one := _roc_figure(frame, data)) is not None:
            drawn[f"roc_{data}"] = one
    for coin in ("sensitivity", "specificity"):
        if (one := _coin_figure(frame, coin)) is not None:
            drawn[coin] = one
    if (one := _accuracy_figure(frame)) is not None:
        drawn["accuracy_images"] = one
    return drawn


def _axes(width: float, height: float) -> tuple[Figure, Any]:
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")


def _roc_figure(frame: pd.DataFrame, data: str) -> Figure | None:
    import numpy as np

    rows = rows_of(frame, {"data": data})
    if "true_positive_rates" not in rows or rows["true_positive_rates"].dropna().empty:
        return None
    figure, ax = _axes(5.4, 5.0)
    ax.plot([0, 1], [0, 1], color="0.7", linewidth=1, linestyle="--")
    for method, some in rows.dropna(subset="true_positive_rates").groupby("method", sort=False):
        mean = np.mean(np.array(some["true_positive_rates"].tolist()), axis=0)
        ax.plot(np.linspace(0, 1, GRID), mean, label=f"{method}: {some['auc'].mean():.3f}")
    ax.set(xlabel="false positive rate", ylabel="true positive rate", title=f"ROC of the truth's posterior: {data}")
    ax.legend(title="area", fontsize=8, loc="lower right")
    return figure


def _coin_figure(frame: pd.DataFrame, coin: str) -> Figure | None:
    import numpy as np

    from .setups import SENSITIVITY, SPECIFICITY

    rows = rows_of(frame, {"data": "gaussians"})
    if coin not in rows or rows[coin].dropna().empty:
        return None
    actual = SENSITIVITY if coin == "sensitivity" else SPECIFICITY
    figure, ax = _axes(5.4, 5.0)
    ax.plot([0.5, 1], [0.5, 1], color="0.7", linewidth=1, linestyle="--")
    for i, (method, some) in enumerate(rows.dropna(subset=coin).groupby("method", sort=False)):
        values = np.array(some[coin].tolist())
        ax.errorbar(actual + 0.004 * i, values.mean(0), values.std(0), fmt="o", markersize=4, label=method)
    ax.set(
        xlabel=f"actual {coin} on the easiest tasks", ylabel="estimated: mean and deviation over data sets", title=coin
    )
    ax.legend(fontsize=8)
    return figure


def _accuracy_figure(frame: pd.DataFrame) -> Figure | None:
    import numpy as np

    kinds = [kind for kind in PAPER if kind != "gaussians" and not rows_of(frame, {"data": kind}).empty]
    if not kinds:
        return None
    figure, ax = _axes(7.5, 3.6)
    at = np.arange(len(OF_IMAGES))
    for i, kind in enumerate(kinds):
        cells_of = [rows_of(frame, {"data": kind, "method": method})["accuracy"] for method in OF_IMAGES]
        ax.errorbar(at + 0.15 * i, [c.mean() for c in cells_of], [c.std() for c in cells_of], fmt="o", label=kind)
    ax.set_xticks(at, [method.replace(", ", ",\n") for method in OF_IMAGES], fontsize=8)
    ax.set(ylabel="test accuracy, %", title="Digits, odd against even: the network on test images")
    ax.legend(fontsize=8)
    return figure


def judge(
    data: str, measure: str, forms: Sequence[str], other: str, digits: int, *, more: bool = True
) -> Callable[[pd.DataFrame], Finding]:
    """Return the judge of a claim: a method, in one form or several, has more of a measure than another, or less."""

    def judged(frame: pd.DataFrame) -> Finding:
        findings = {}
        for form in forms:
            one, than = {"data": data, "method": form}, {"data": data, "method": other}
            findings[form] = above(frame, measure, one, than, digits, less=not more)
        return together(findings)

    return judged


def together(findings: Mapping[str, Finding]) -> Finding:
    """Return one finding of several forms of a method."""
    if len(findings) == 1:
        return next(iter(findings.values()))
    ours = "; ".join(f"{form}: {found.ours}" for form, found in findings.items() if found.ours)
    verdicts = {found.verdict for found in findings.values()}
    if len(verdicts) == 1:
        return Finding(ours, verdicts.pop())
    held = [form for form, found in findings.items() if found.verdict == HOLDS]
    untold = [found.verdict for found in findings.values() if found.verdict.startswith(NOT_TESTED)]
    if held:
        return Finding(ours, f"{HOLDS_IF} the method is: {'; '.join(held)}")
    return Finding(ours, untold[0] if untold else FAILS)


def rule(data: str, forms: Sequence[str]) -> str:
    """Return the rule of :func:`judge`."""
    said = twice(GAUSSIANS if data == "gaussians" else "seeds")
    return said if len(forms) == 1 else f"{said} Judged of each form of the method; 'holds if' names those that do."


GAUSSIANS = f"data sets ({SETS} of each seed)"
_BOTH = (FIXED, OTHER_PRIOR)
_EITHER = (PUBLISHED, ADAPTIVE)
_ACCURACIES = (
    ("gaussians", "EM", (EM,), "majority vote", MV),
    ("gaussians", "Adaptive", (ADAPTIVE,), "majority vote", MV),
    ("gaussians", "Fixed", _BOTH, "EM", EM),
    ("gaussians", "Fixed", _BOTH, "adaptive", ADAPTIVE),
    ("structural", "EM", (EM,), "majority vote", MV),
    ("structural", "Adaptive", _EITHER, "EM", EM),
    ("structural", "Fixed", _BOTH, "adaptive as published", PUBLISHED),
    ("unstructured", "EM", (EM,), "majority vote", MV),
    ("unstructured", "Adaptive", _EITHER, "EM", EM),
    ("unstructured", "Fixed", _BOTH, "adaptive as published", PUBLISHED),
)
_OF_GAUSSIANS = (
    ("auc", "EM ranks the tasks better than majority vote.", (EM,), MV, True),
    ("auc", "Adaptive ranks the tasks better than EM.", (ADAPTIVE,), EM, True),
    ("auc", "Fixed ranks the tasks better than majority vote.", _BOTH, MV, True),
    ("auc", "Fixed ranks the tasks better than EM.", _BOTH, EM, True),
    ("auc", "Fixed ranks the tasks worse than adaptive.", _BOTH, ADAPTIVE, False),
    ("coins", "Adaptive comes closer to the experts' sensitivities and specificities than EM.", (ADAPTIVE,), EM, False),
    ("coins", "Fixed comes closer to the experts' sensitivities and specificities than EM.", _BOTH, EM, False),
)
_WHERE = {
    "gaussians": "Gaussians, test accuracies",
    "structural": "images, structural",
    "unstructured": "images, unstructured",
}
_FIGURES = {
    "auc": "Gaussians, figure of the ROC of the truth",
    "coins": "Gaussians, figure of the experts' sensitivities and specificities",
}
CLAIMS = tuple(
    Claim(
        f"{name} has a higher test accuracy than {other}.",
        _WHERE[data],
        " against ".join(PAPER[data].get(method, PAPER[data].get(PUBLISHED, "–")) for method in (forms[0], than)),
        judge(data, "accuracy", forms, than, 2 if data == "gaussians" else 1),
        rule(data, forms),
    )
    for data, name, forms, other, than in _ACCURACIES
) + tuple(
    Claim(says, _FIGURES[measure], "", judge("gaussians", measure, forms, than, 3, more=more), rule("gaussians", forms))
    for measure, says, forms, than, more in _OF_GAUSSIANS
)

EXPERIMENT = Experiment(
    name="difficulty",
    title="Experts who err more on difficult tasks: two Gaussians with logistic regression, and images with a network",
    paper="Xu et al., Data Difficulty Specified Crowdsourcing",
    cells=cells,
    run=run,
    tables=tables,
    figures=figures,
    claims=CLAIMS,
    notes=(
        f"Gaussians: {SETS} data sets a seed, a logistic regression without intercept, as published; their Bayes rule "
        "is right on 92.1 % of the tasks, so that the paper's "
        "figures are those of one lucky test set. ROC-AUC: of the truth's posterior on the annotated tasks. Coins: "
        "mean absolute error of the experts' sensitivities and specificities on the easiest tasks, σ(λ / 4). Fixed has "
        "the votes as prior of the truth, as in the paper; with the classifier as prior it is the story with the votes "
        "for the difficulties alone. A logistic regression learns through the difficulty, as published; a network by "
        "default does not. Images: the paper has Dogs vs. Cats and a network of four convolutional layers; these are "
        "the digits of the package, odd against even, and 128 hidden units for 20 epochs at a learning rate of 0.001. "
        "The paper does not define the difficulty of its images; structural annotations have it from a linear rule "
        "trained on the truth of the other images. Nothing was chosen by test tasks."
    ),
    not_run=(
        NotRun(
            "Dogs vs. Cats, a network of four convolutional layers",
            "the experiments on images",
            "The images are not among the data that are open here. Nearest: the digits of the package, odd "
            "against even, with one hidden layer; the experts are those of the paper.",
            "25,000 images, and five seeds of six methods with a convolutional network: hours of a GPU. "
            "Classifier('cnn', …) is the network's form.",
        ),
        NotRun(
            "The difficulty of images as the authors computed it",
            "the experiments on images",
            "The paper does not define it. Nearest: the margin of a linear rule.",
            "The authors' program.",
        ),
    ),
)
