"""Self-training by sparsity: what DASC gains where fewer and fewer annotations are left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .dasc import DASC, EPOCHS, GROWTH, METHODS, PAPER, ROUNDS, by_round, values
from .experiment import Cell, Claim, Experiment, Finding, above, mean_sd, rows_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from crowdppl.data import Annotations

DATASET = "labelme"
SHARES = (1.0, 0.7, 0.4)
ROUNDS_HERE = 4


def cells(seeds: int) -> list[Cell]:
    """Each method with each share of the annotations, seed by seed."""
    return [
        {"method": method, "share": share, "seed": seed}
        for seed in range(seeds)
        for share in SHARES
        for method in METHODS
    ]


def run(method: str, share: float, seed: int) -> list[dict[str, Any]]:
    """Train a method with DASC on a random share of the annotations."""
    from crowdppl import load_dataset

    annotations = thinned(load_dataset(DATASET), share, seed)
    return by_round(annotations, DATASET, method, DASC, seed, ROUNDS_HERE)


def thinned(annotations: Annotations, share: float, seed: int) -> Annotations:
    """A random share of the annotations; all tasks, workers and classes stay."""
    import numpy as np

    kept = np.random.default_rng(seed).random(annotations.n_rows) < share
    return annotations.replace(
        task=np.asarray(annotations.task)[kept],
        worker=np.asarray(annotations.worker)[kept],
        label=np.asarray(annotations.label)[kept],
    )


def tables(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Test accuracy before and after, and the gain, by share and method."""
    import pandas as pd

    rows = {}
    for share in SHARES:
        row = {}
        for method, name in METHODS.items():
            at = {"method": method, "share": share}
            row[f"{name}, base"] = mean_sd(values(frame, at | {"round": 0}, "test"))
            row[f"{name}, DASC"] = mean_sd(values(frame, at | {"last": True}, "test"))
            row[f"{name}, gain"] = mean_sd(gains(frame, method, share)["gain"])
        rows[share] = row
    title = "labelme: test accuracy in percent by the share of the annotations that is left"
    return {title: pd.DataFrame.from_dict(rows, "index").rename_axis("share")}


def gains(frame: pd.DataFrame, method: str, share: float) -> pd.DataFrame:
    """By seed the test accuracy after the last round less that of round 0: columns seed, method, share, gain."""
    import pandas as pd

    picked = rows_of(frame, {"method": method, "share": share})
    if picked.empty:
        return pd.DataFrame(columns=["seed", "method", "share", "gain"])
    before, after = (rows_of(picked, at).set_index("seed")["test"] for at in ({"round": 0}, {"last": True}))
    found = (after - before).rename("gain").reset_index()
    return found.assign(method=method, share=share)


def figures(frame: pd.DataFrame) -> dict[str, Figure]:
    """Test accuracy by share, with and without DASC."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.2), layout="constrained")
    for ax, (method, name) in zip(figure.subplots(1, len(METHODS), sharey=True), METHODS.items(), strict=True):
        for label, at in (("alone", {"round": 0}), (DASC, {"last": True})):
            picked = rows_of(frame, {"method": method, **at})
            if picked.empty:
                continue
            mean, deviation = picked.groupby("share")["test"].mean(), picked.groupby("share")["test"].std()
            ax.errorbar(mean.index, mean, yerr=deviation.fillna(0.0), marker="o", capsize=2, label=label)
        ax.set_title(name)
        ax.set_xlabel("share of annotations")
    figure.axes[0].set_ylabel("test accuracy, %")
    if figure.axes[0].get_legend_handles_labels()[0]:
        figure.axes[0].legend()
    return {"sparsity": figure}


def _more_where_sparse(frame: pd.DataFrame, method: str) -> Finding:
    import pandas as pd

    sparse, full = (gains(frame, method, share) for share in (SHARES[-1], SHARES[0]))
    both = pd.concat([sparse, full])
    return above(both, "gain", {"share": SHARES[-1]}, {"share": SHARES[0]})


def _raises(frame: pd.DataFrame, method: str, share: float) -> Finding:
    at = {"method": method, "share": share}
    return above(frame, "test", at | {"last": True}, at | {"round": 0})


def _claims(method: str, name: str) -> tuple[Claim, ...]:
    return (
        Claim(
            f"DASC raises the test accuracy of {name} with {100 * SHARES[-1]:.0f} % of the annotations.",
            "sparsity study",
            "",
            lambda frame: _raises(frame, method, SHARES[-1]),
        ),
        Claim(
            f"What {name} gains by DASC is more with {100 * SHARES[-1]:.0f} % of the annotations than with all.",
            "sparsity study",
            "",
            lambda frame: _more_where_sparse(frame, method),
        ),
    )


EXPERIMENT = Experiment(
    name="dasc-sparsity",
    title="Self-training with quotas where only a share of labelme's annotations is left.",
    paper=PAPER,
    cells=cells,
    run=run,
    tables=tables,
    figures=figures,
    claims=tuple(claim for method, name in METHODS.items() for claim in _claims(method, name)),
    needs=(DATASET,),
    notes=(
        f"Annotations are left out at random, anew for each seed; tasks that nobody annotated any more are predicted "
        f"all the same. Training is that of the experiment dasc ({EPOCHS[DATASET]} epochs a round, {GROWTH:g} "
        f"pseudo-annotations for each annotation and round), with {ROUNDS_HERE} rounds instead of {ROUNDS[DATASET]}."
    ),
)
