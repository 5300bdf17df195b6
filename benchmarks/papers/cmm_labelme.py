"""The Crowd Mixture Model on labelme: test accuracy with and without workers' names, and the confusion matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .crowd_mixture import BY_PRIOR, OURS, PAPER, PRIORS, PRIORS_SAY, RESTARTS, above_by_prior, converged_at, trained
from .experiment import (
    FAILS,
    HOLDS,
    HOLDS_IF,
    NOT_RUN,
    NOT_TESTED,
    TWICE,
    Cell,
    Claim,
    Experiment,
    Finding,
    above,
    draw_spread,
    mean_sd,
    percent_right,
    rows_of,
)

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from matplotlib.figure import Figure

    from crowdppl.data import Annotations

PROTOCOLS: dict[str, dict[str, Any]] = {
    "paper's": {"epochs": 50, "network_rate": 1e-3},
    "ours": {"epochs": 30},
}
"""How networks are trained: 50 epochs of Adam at 0.001, or what benchmarks/classifiers.py chose on validation."""

TABLE_3 = {
    ("truth known", "individual"): 92.09,
    ("softMV", "individual"): 81.69,
    ("hardMV", "individual"): 79.95,
    ("DL-DS", "individual"): 83.57,
    ("DL-EM", "individual"): 83.07,
    ("DL-DS", "each alone"): 14.08,
    ("DL-EM", "each alone"): 75.92,
    ("CMM", "global"): 83.10,
}
USED = 0.05  # the share of the annotations from which a group counts as used
ALONE = "each alone"
"""The setting without names in which every annotation is of a worker of its own, as the paper's rivals had it."""
TABLE_4 = {
    "softMV": (0.216, 0.024),
    "hardMV": (0.225, 0.035),
    "DL-DS": (0.153, 0.036),
    "DL-EM": (0.295, 0.259),
    "CMM": (0.234, 0.054),
}


def cells(seeds: int) -> list[Cell]:
    """A cell for each method, setting, prior, protocol and seed; CMM with its many starts last."""
    kinds: list[Cell] = [_cell(method, "individual", "") for method in ("truth known", "softMV", "hardMV")]
    for setting in ("individual", "global"):
        kinds += [_cell(method, setting, prior) for method in ("DL-DS", "DL-EM") for prior in PRIORS]
    for protocol in PROTOCOLS:
        kinds += [_cell(method, "global", "default", protocol) for method in ("CMM", OURS)]
    kinds += [_cell(method, ALONE, prior) for method in ("DL-DS", "DL-EM") for prior in PRIORS]
    kinds.append(_cell("CMM", "global", "one each"))
    return [{**kind, "seed": seed} for kind in kinds for seed in range(seeds)]


def _cell(method: str, setting: str, prior: str, protocol: str = "paper's") -> Cell:
    return {"method": method, "setting": setting, "prior": prior, "protocol": protocol}


def run(method: str, setting: str, prior: str, protocol: str, seed: int, restarts: int = RESTARTS) -> dict[str, Any]:
    """Train one network and measure it on the test images; divergences of the confusion matrices where it has any."""
    from crowdppl import load_dataset, load_split

    annotations = load_dataset("labelme")
    x, y = load_split("labelme", "test")
    fitted, confusions, crowd = fit_method(annotations, method, setting, prior, protocol, seed, restarts)
    found: dict[str, Any] = {"accuracy": percent_right(fitted.predict_proba(x), y)}
    if confusions is not None:
        found |= divergences(annotations, confusions, crowd)
    if method == "CMM":
        found["epochs_to_converge"] = converged_at(fitted.history)
        found |= groups(fitted)
    return found


def groups(fitted: Any) -> dict[str, list[float]]:
    """Table 4's measures of the groups, the largest group first: α, I-sim, and H as a share of that of even rows."""
    import numpy as np

    from crowdppl import describe_groups

    frame = describe_groups(fitted).sort_values("share", ascending=False)
    return {
        "alpha": frame["share"].tolist(),
        "i_sim": frame["similarity"].tolist(),
        "h": (frame["entropy"] / np.log(fitted.annotations.n_classes)).tolist(),
    }


def fit_method(
    annotations: Annotations, method: str, setting: str, prior: str, protocol: str, seed: int, restarts: int = RESTARTS
) -> tuple[Any, np.ndarray | None, np.ndarray | None]:
    """A fit with a classifier by the paper's name of the method, and its confusion matrices.

    Returns:
        the fit; the workers' confusion matrices ``(J, K, K)``, the same for all where the method has one for all, or
        None where it has none; the crowd's ``(K, K)``, or None where it follows from the workers'.
    """
    import numpy as np

    from crowdppl import Classifier, group_worker_confusions
    from crowdppl.inference.fitted.confusions import mean_confusions

    training = {"classifier": Classifier("mlp", hidden=(128,), dropout=0.5), "seed": seed, **PROTOCOLS[protocol]}
    how = {"named": setting == "individual", "alone": setting == ALONE}
    fitted, source = trained(method, annotations, prior, **how, restarts=restarts, **training)
    if method == "truth known" or setting == ALONE:
        return fitted, None, None
    if method in ("softMV", "hardMV"):
        return fitted, *votes_confusions(annotations, hard=method == "hardMV")
    if method in ("DL-DS", "DL-EM"):
        matrices = mean_confusions(source.fitted)
        return fitted, np.broadcast_to(matrices, (annotations.n_workers, *matrices.shape[1:])), None
    return fitted, group_worker_confusions(fitted, annotations), mean_confusions(fitted.fitted)[0]


def votes_confusions(annotations: Annotations, *, hard: bool) -> tuple[np.ndarray, np.ndarray]:
    """The confusion matrix of all annotations against the votes, given to every worker ``(J, K, K)``, and once.

    Args:
        annotations: the data.
        hard: against the most frequent class, the first one of a tie; else against the shares of the votes.
    """
    import numpy as np

    votes = annotations.votes().astype(float)
    q = np.eye(annotations.n_classes)[votes.argmax(-1)] if hard else votes / votes.sum(-1, keepdims=True)
    counts = q.T @ votes
    crowd = counts / counts.sum(-1, keepdims=True)
    return np.broadcast_to(crowd, (annotations.n_workers, *crowd.shape)), crowd


def divergences(annotations: Annotations, confusions: np.ndarray, crowd: np.ndarray | None = None) -> dict[str, float]:
    """I-JS and G-JS as in the paper's table 4, and G-JS of workers who count as often as they annotated.

    I-JS is the mean divergence over all rows of the workers' confusion matrices, where a row of which gold has no
    annotation counts as even. G-JS is that of the crowd's, which is the plain mean of the workers' where the method has
    no other.
    """
    import numpy as np

    from crowdppl.inference.scores.divergences import empirical_confusions, jensen_shannon

    by_worker, actual = empirical_confusions(annotations)
    even = np.where(np.isnan(by_worker), 1 / annotations.n_classes, by_worker)
    weighted = np.average(confusions, axis=0, weights=annotations.n_by_worker())
    return {
        "i_js": float(jensen_shannon(confusions, even).mean()),
        "g_js": float(jensen_shannon(confusions.mean(0) if crowd is None else crowd, actual).mean()),
        "g_js_weighted": float(jensen_shannon(weighted if crowd is None else crowd, actual).mean()),
    }


def tables(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The paper's tables 3 and 4."""
    import pandas as pd

    if frame.empty:
        return {}
    keys = ["method", "setting", "prior", "protocol"]
    three, four = [], []
    for key, by in frame.groupby(keys, sort=False):
        method, setting, prior, protocol = map(str, key)
        paper = TABLE_3.get((method, setting), float("nan"))
        three.append((method, setting, prior, protocol, mean_sd(by["accuracy"]), paper))
        if method in TABLE_4 and protocol == "paper's" and (setting == "individual" or method == "CMM"):
            ours = [mean_sd(by[measure], 3) if measure in by else "–" for measure in ("i_js", "g_js", "g_js_weighted")]
            four.append((method, prior, *ours, *TABLE_4[method]))
    measures = ["I-JS", "G-JS", "G-JS, weighted", "I-JS, paper", "G-JS, paper"]
    found = {
        "Table 3: test accuracy": pd.DataFrame(three, columns=[*keys, "test accuracy, %", "paper"]).set_index(keys),
        "Table 4: divergence of the confusion matrices from those on gold": pd.DataFrame(
            four, columns=["method", "prior", *measures]
        ).set_index(["method", "prior"]),
    }
    if len(published := rows_of(frame, PUBLISHED)) and "alpha" in published:
        found["Table 4: the groups of CMM, one each, by their weight"] = pd.DataFrame(
            {
                name: [mean_sd(of_one, digits) for of_one in zip(*published[measure].dropna(), strict=True)]
                for name, measure, digits in (("α", "alpha", 3), ("I-sim", "i_sim", 3), ("H", "h", 3))
            }
        ).rename_axis("group")
    return found


def figures(frame: pd.DataFrame) -> dict[str, Figure]:
    """Test accuracy of every method beside the paper's, which has no figure of these data."""
    import matplotlib.pyplot as plt

    if frame.empty:
        return {}
    rows = rows_of(frame, {"protocol": "paper's"})
    groups = [(tuple(map(str, key)), by) for key, by in rows.groupby(["method", "setting", "prior"], sort=False)]
    figure, ax = plt.subplots(figsize=(7, 0.32 * len(groups) + 1), layout="constrained")
    for place, (key, by) in enumerate(groups):
        draw_spread(ax, by["accuracy"], place, color="C0")
        if (paper := TABLE_3.get((key[0], key[1]))) is not None:
            ax.plot(paper, place, "x", color="C1")
    ax.set_yticks(range(len(groups)), [", ".join(filter(None, key)) for key, _ in groups])
    ax.invert_yaxis()
    ax.set_xlabel("test accuracy, % (○ ours, × the paper's)")
    return {"accuracies": figure}


PUBLISHED = _cell("CMM", "global", "one each")
_NAMED_EM = {"method": "DL-EM", "setting": "individual"}


def _by_prior(method: str, setting: str) -> Callable[[pd.DataFrame], Finding]:
    def judge(frame: pd.DataFrame) -> Finding:
        return above_by_prior(frame, PUBLISHED, {"method": method, "setting": setting})

    return judge


def _as_good_as_named(frame: pd.DataFrame) -> Finding:
    """Under no prior of DL-EM is it above CMM by more than twice the standard error."""
    better = {prior: above(frame, "accuracy", _cell("DL-EM", "individual", prior), PUBLISHED) for prior in PRIORS}
    if any(finding.verdict.startswith(NOT_TESTED) for finding in better.values()):
        return next(iter(better.values()))
    ours = "DL-EM, " + "; ".join(f"{prior}: {finding.ours}" for prior, finding in better.items())
    as_good = [repr(prior) for prior, finding in better.items() if finding.verdict == FAILS]
    if len(as_good) in (0, len(better)):
        return Finding(ours, HOLDS if as_good else FAILS)
    return Finding(ours, f"{HOLDS_IF} the other's prior is {' or '.join(as_good)}")


def _above_votes(frame: pd.DataFrame) -> Finding:
    found = [above(frame, "accuracy", PUBLISHED, _cell(votes, "individual", "")) for votes in ("softMV", "hardMV")]
    if any(finding.verdict.startswith(NOT_TESTED) for finding in found):
        return found[0]
    ours = "; ".join(finding.ours for finding in found)
    return Finding(ours, HOLDS if all(finding.verdict == HOLDS for finding in found) else FAILS)


def _workers_nearer(frame: pd.DataFrame) -> Finding:
    return above_by_prior(frame, PUBLISHED, _NAMED_EM, "i_js", digits=3, less=True)


def _crowd_is_nearer(frame: pd.DataFrame) -> Finding:
    plain = above_by_prior(frame, PUBLISHED, _NAMED_EM, "g_js", digits=3, less=True)
    if plain.verdict.startswith(NOT_TESTED):
        return plain
    weighted = above_by_prior(frame, PUBLISHED, _NAMED_EM, "g_js_weighted", digits=3, less=True)
    ours = f"plain means of the workers: {plain.ours}. Weighted by their annotations: {weighted.ours}"
    if plain.verdict == HOLDS and weighted.verdict == FAILS:
        return Finding(ours, f"{HOLDS_IF} workers of few annotations count like those of many")
    return Finding(ours, plain.verdict)


def _several_groups(frame: pd.DataFrame) -> Finding:
    rows = rows_of(frame, PUBLISHED)
    if "alpha" not in rows or rows["alpha"].dropna().empty:
        return NOT_RUN
    largest, second = ([float(shares[place]) for shares in rows["alpha"].dropna()] for place in (0, 1))
    first, other = (mean_sd([100 * share for share in shares]) for shares in (largest, second))
    return Finding(f"the largest group has {first} %, the second {other} %", HOLDS if min(second) > USED else FAILS)


CLAIMS = (
    Claim(
        "Without workers' names CMM is above DL-DS.",
        "table 3, Global",
        "83.10 against 14.08",
        _by_prior("DL-DS", ALONE),
        BY_PRIOR,
    ),
    Claim(
        "Without workers' names CMM is above DL-EM.",
        "table 3, Global",
        "83.10 against 75.92",
        _by_prior("DL-EM", ALONE),
        BY_PRIOR,
    ),
    Claim(
        "CMM without names is as good as DL-EM with them.",
        "table 3",
        "83.10 against 83.07",
        _as_good_as_named,
        "The mean over seeds by which DL-EM is above CMM is not more than twice its standard error, under each prior "
        "of DL-EM; 'holds if' names those under which it is not. So it would hold too where five seeds cannot tell.",
    ),
    Claim(
        "CMM is above the majority votes, soft and hard.",
        "table 3",
        "83.10 against 81.69, 79.95",
        _above_votes,
        f"{TWICE} It has to be so of both votes.",
    ),
    Claim(
        "CMM's confusion matrices of workers are nearer than DL-EM's.",
        "table 4",
        "0.234, 0.295",
        _workers_nearer,
        BY_PRIOR,
    ),
    Claim(
        "CMM's confusion matrix of the crowd is nearer than DL-EM's.",
        "table 4",
        "0.054, 0.259",
        _crowd_is_nearer,
        f"{BY_PRIOR} It is judged of plain means of the workers' matrices; where it holds of these and fails of means "
        "weighted by annotations, 'holds if' says so.",
    ),
    Claim(
        "CMM has more than one group of annotations.",
        "table 4",
        "",
        _several_groups,
        f"No test: of every seed two groups at least have more than {USED:.0%} of the annotations, a margin of ours.",
    ),
)

EXPERIMENT = Experiment(
    name="cmm-labelme",
    title="Networks learnt from labelme's crowd, with and without the workers' names.",
    paper=PAPER,
    cells=cells,
    run=run,
    tables=tables,
    figures=figures,
    claims=CLAIMS,
    needs=("labelme",),
    notes=(
        f"{PRIORS_SAY} CMM, one each: as published, a truth for each annotation, three groups from k-means over the "
        f"annotations, the best log-posterior of {RESTARTS} starts; '{OURS}' is ours, of the same groups. Neither "
        "reads workers' names. Without names DL-DS and DL-EM have each annotation as of a worker of its own (each "
        "alone), as the paper's rivals had it; with one confusion matrix for all annotations (global) they are no "
        "rivals of the paper. All "
        'networks have 128 units and dropout 0.5, on VGG-16 features; protocol "paper\'s": 50 epochs of 64 tasks, '
        "Adam at 0.001, as in the authors' program; 'ours': 30 epochs at 0.0003, chosen on the validation images with "
        "another story. Table 4 has Jensen and Shannon's divergence to base 2, with rows of which a worker has no "
        "annotation as even, which gives the paper's figures of both majority votes to the last digit; the crowd's "
        "confusion matrix of DL-DS and DL-EM is the plain mean of the workers', as in the authors' program, or "
        "weighted by their annotations. CMM's of a worker is the groups' at the worker's posterior of them. Of a group "
        "α is the share of the annotations, I-sim one minus the divergence of its matrix from the identity, and H the "
        "mean entropy of the rows, 1 where they are even, as in the authors' program; the paper's figures of them are "
        "not at hand."
    ),
)
