"""Setup 1 of the Crowd Mixture Model with the authors' confusion matrices, and with any that the names allow."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .cmm_simulated import MARGIN, crowd, measured, methods
from .crowd_mixture import PAPER
from .experiment import FAILS, HOLDS, NOT_RUN, Cell, Claim, Experiment, Finding, above, mean_sd, rows_of

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from matplotlib.figure import Figure

AUTHORS, DRAWN = "the authors'", "drawn"
CROWDS = (100, 10_000)
DRAWS = 4  # sets of matrices of each seed
METHODS = (("softMV", ""), ("hardMV", ""), ("CMM", "one each"), ("DL-EM", "one each"), ("DL-DS", "none"))
"""With the priors of the authors' program."""

TESTED = 0.05  # the level of the test over drawn matrices


def cells(seeds: int) -> list[Cell]:
    """The authors' matrices, and then those that are drawn, at few and at many annotators."""
    return [
        {"matrices": matrices, "annotators": n, "seed": seed}
        for matrices in (AUTHORS, DRAWN)
        for n in CROWDS
        for seed in range(seeds)
    ]


def run(matrices: str, annotators: int, seed: int, n_tasks: int = 3000) -> list[dict[str, Any]]:
    """A row for each method on each set of matrices, of which each has a crowd of its own."""
    from .setups import AUTHORS as given

    sets = [given / given.sum(-1, keepdims=True)] if matrices == AUTHORS else drawn(seed)
    rows = []
    for number, confusions in enumerate(sets):
        annotations, x, y = crowd("gaussians", annotators, DRAWS * seed + number, n_tasks, confusions)
        every = methods(annotations, seed)
        rows += [
            {
                "draw": number,
                "method": method,
                "prior": prior,
                "accuracy": measured(every[method, prior](), x, y)["accuracy"],
            }
            for method, prior in METHODS
            if (method, prior) in every
        ]
    return rows


def drawn(seed: int) -> list[np.ndarray]:
    r"""Sets of matrices of the groups, ``(3, 3, 3)`` each, by what the names of the groups say and nothing more.

    Experts are right about a class with a probability that is uniform from a half to 1, inexperts with one that is
    uniform from 0 to that of the experts; the other classes share what is left, by :math:`\text{Dirichlet}(1, 1)`.
    Spammers annotate by the same :math:`\text{Dirichlet}(1, 1, 1)` whatever the class.
    """
    import numpy as np

    rng = np.random.default_rng(seed)
    found = []
    for _ in range(DRAWS):
        experts = rng.uniform(0.5, 1, 3)
        rows = [[_row(rng, k, p) for k, p in enumerate(right)] for right in (experts, experts * rng.random(3))]
        found.append(np.array([*rows, [rng.dirichlet(np.ones(3))] * 3]))
    return found


def _row(rng: np.random.Generator, k: int, right: float) -> np.ndarray:
    import numpy as np

    return np.insert((1 - right) * rng.dirichlet(np.ones(2)), k, right)


def tables(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Test accuracy with the authors' matrices, and over drawn ones."""
    if frame.empty:
        return {}
    named = frame.assign(method=[f"{m}, {p}" if p else m for m, p in zip(frame["method"], frame["prior"], strict=True)])
    return {
        f"{title}: test accuracy in percent": rows.groupby(["method", "annotators"], sort=False)["accuracy"]
        .agg(mean_sd)
        .unstack()
        for matrices, title in (
            (AUTHORS, "The authors' matrices, over seeds"),
            (DRAWN, f"Drawn matrices, over sets ({DRAWS} of each seed)"),
        )
        if len(rows := rows_of(named, {"matrices": matrices}))
    }


def figures(frame: pd.DataFrame) -> dict[str, Figure]:
    """Of each set of matrices CMM's accuracy with 10,000 annotators against the others'."""
    from matplotlib.figure import Figure

    wide = _wide(frame, "method", annotators=CROWDS[-1])
    if wide.empty:
        return {}
    figure = Figure(figsize=(4.5, 4.5), layout="constrained")
    ax = figure.subplots()
    for method in wide.columns.drop("CMM"):
        ax.plot(wide[method], wide["CMM"], "o", label=method)
    ax.axline((50, 50), slope=1, color="grey", lw=0.8)
    ax.set(xlabel="test accuracy of the other, %", ylabel="test accuracy of CMM, %")
    ax.legend()
    return {"drawn_matrices": figure}


def _above_on_most(rival: str) -> Callable[[pd.DataFrame], Finding]:
    return lambda frame: _of_most(_wide(frame, "method", annotators=CROWDS[-1]), lambda by: by["CMM"] > by[rival])


def _does_not_fall(frame: pd.DataFrame) -> Finding:
    wide = _wide(frame, "annotators", method="CMM")
    return _of_most(wide, lambda by: by[CROWDS[0]] - by[CROWDS[-1]] < MARGIN)


def _wide(frame: pd.DataFrame, column: str, **settings: Any) -> pd.DataFrame:
    """Test accuracies: drawn sets of matrices × the values of a column; none where they have not been run."""
    rows = rows_of(frame, {"matrices": DRAWN, **settings})
    return rows.pivot(index=["seed", "draw"], columns=column, values="accuracy") if len(rows) else rows


def _of_most(wide: pd.DataFrame, is_so: Callable[[pd.DataFrame], pd.Series]) -> Finding:
    """Judge that something is so of more than half of the sets, by an exact binomial test."""
    from scipy.special import bdtrc

    if wide.empty:
        return NOT_RUN
    right = is_so(wide.dropna())
    n, k = len(right), int(right.sum())
    return Finding(f"{k} of {n} sets", HOLDS if k and bdtrc(k - 1, n, 0.5) < TESTED else FAILS)


def _above_on_authors(rival: str) -> Callable[[pd.DataFrame], Finding]:
    at = {"matrices": AUTHORS, "annotators": CROWDS[-1]}
    return lambda frame: above(frame, "accuracy", at | {"method": "CMM"}, at | {"method": rival})


PAPERS = {"softMV": "66.49", "hardMV": "79.07", "DL-EM": "67.01", "DL-DS": "85.13"}
MOST = (
    f"An exact one-sided binomial test over the drawn sets of matrices ({DRAWS} of each seed), each with one crowd, "
    f"rejects at {TESTED:.0%} that it is so of half of all."
)
EXPERIMENT = Experiment(
    name="cmm-matrices",
    title="Setup 1 with the authors' confusion matrices of the groups, and with matrices that are drawn.",
    paper=PAPER,
    cells=cells,
    run=run,
    tables=tables,
    figures=figures,
    claims=(
        *(
            Claim(
                f"CMM is above {rival} at 10,000 annotators.",
                "setup 1, the authors' matrices",
                f"90.46 against {paper}",
                _above_on_authors(rival),
            )
            for rival, paper in PAPERS.items()
        ),
        *(
            Claim(
                f"CMM is above {rival} at 10,000 annotators, of most matrices.",
                "setup 1, drawn matrices",
                "",
                _above_on_most(rival),
                MOST,
            )
            for rival in PAPERS
        ),
        Claim(
            "CMM's accuracy does not fall as the annotators become more, of most matrices.",
            "setup 1, drawn matrices",
            "",
            _does_not_fall,
            f"{MOST} It is so of a set where less than {MARGIN:g} point is lost from 100 to 10,000 annotators.",
        ),
    ),
    notes=(
        "Each method has the prior of the authors' program: DL-EM and CMM one pseudo-annotation in each cell, Dawid & "
        "Skene none. The authors' matrices are those of their repository fmenat/PyLearningCrowds, "
        "data/synthetic/matrix_simple_Td5.csv; the shares of the groups, 25, 55 and 20 %, are of its "
        "groups_datasim_normal.csv, as in their program of this setup. Of drawn matrices, experts are right about a "
        "class with a probability that is uniform from a half to 1, inexperts with one from 0 to the experts', and "
        "spammers annotate alike whatever the class: what the groups' names say, and nothing more. Networks and "
        "training are those of the experiment cmm-simulated."
    ),
)
