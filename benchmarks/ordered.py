"""Ordered classes: stories and priors of the truth on real and simulated crowds, beside votes and the mean score.

The simulated crowds are of no story here: tasks have places on a line, not only classes. In half of them workers use a
scale of their own, so that the middle class is overused as in some real ones, and in the others they know where the
classes end. The prior of the truth is chosen for each dataset by the others.
"""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import typer
from scipy.stats import norm
from support.data import data_folder, read_annotations, read_gold
from support.report import Report

import crowdppl as cp
from crowdppl.inference.comparison.default_set import ORDERED, auto
from crowdppl.inference.fitted.posterior import fitted_of

SHAPES = {
    "even": lambda classes: np.ones(classes),
    "middle": lambda classes: norm.pdf(np.linspace(-1.5, 1.5, classes)),
    "skewed": lambda classes: 0.6 ** np.arange(classes),
}
"""Shares of the true classes, up to a factor."""
SEEDS = {5: (0, 1), 7: (2, 3)}
"""Of the simulated crowds of so many classes."""
DATASETS = {"adult": 4, "relevance": 4, "judges_asset": 10}
"""Datasets with gold labels in an order, and their classes; the highest of relevance, "broken", is beside the order."""
STORIES = ("dawid_skene", "one_coin", "ordinal_dawid_skene", "graded_response")
PRIORS = {
    "prevalence": cp.Prevalence(),
    "smooth 0.8": cp.SmoothPrevalence(0.8),
    "smooth 1.6": cp.SmoothPrevalence(1.6),
    "smooth 3.2": cp.SmoothPrevalence(3.2),
    "smooth learned": cp.SmoothPrevalence(None),
    "even": "uniform",
}
SHARES = {
    "none": {},
    **{f"{scale}: {share}": {f"smooth {scale}": share} for scale in (0.8, 1.6, 3.2) for share in (0.5, 0.75, 0.9)},
    **{
        f"0.8: {share:.1f}, {name}: {0.9 - share:.1f}": {"smooth 0.8": share, prior: 0.9 - share}
        for name, prior in {"3.2": "smooth 3.2", "any": "prevalence"}.items()
        for share in (0.7, 0.6, 0.5)
    },
}
"""Of graded_response in the default set of stories, by the scale of its smooth prevalence, or with any prevalence."""
CHOSEN_FOR = ("ordinal_dawid_skene", "graded_response")
MEASURES = ("accuracy", "mae", "log_score", "spearman")


def main(
    datasets: str = ",".join(DATASETS),
    svi: bool = False,
    priors: bool = False,
    shares: bool = False,
    write: bool = False,
) -> None:
    """Measure, and print tables by dataset.

    Args:
        datasets: names of real datasets, with commas.
        svi: fit the ordinal stories by SVI too.
        priors: compare priors of the truth, and choose one for each dataset by the others.
        shares: average the default set of stories with several shares of the ordinal one, and choose one for each
            dataset by the others.
        write: refresh this section of RESULTS.md.
    """
    data_folder()
    warnings.simplefilter("ignore")
    report = Report("Ordered classes")
    crowds = {name: real(name) for name in datasets.split(",") if name} | simulated()
    fits = {(story, "usual", "em"): {} for story in STORIES}
    if svi:
        fits |= {(story, "usual", "svi"): {"method": "svi"} for story in CHOSEN_FOR}
    if priors:
        fits |= {(s, name, "em"): {"truth_prior": prior} for s in CHOSEN_FOR for name, prior in PRIORS.items()}
    rows = [row for name, (annotations, gold) in crowds.items() for row in of_crowd(name, annotations, gold, fits)]
    scores = pd.DataFrame(rows)
    scores.insert(0, "data", scores.pop("crowd").str.replace(r" #.*", "", regex=True))
    means = scores.groupby(["data", "way", "prior", "engine"], sort=False)[list(MEASURES)].mean()
    usual = means[means.index.get_level_values("prior").isin(["", "usual"])].droplevel("prior").reset_index()
    report.table("Stories with their usual prior, votes and mean score", usual.to_dict("records"))
    if shares:
        compare_shares(report, crowds)
    if priors:
        compare_priors(report, means.drop(index=["", "usual"], level="prior", errors="ignore"))
    report.note(
        "Means over crowds. Log-score in nats, of gold labels; of the mean score, which has no probabilities, it is "
        "left out, and its label is the class that is nearest. mae: of the median class. Of relevance the highest "
        "class is beside the order (broken). The share of the ordinal story in auto is chosen for each dataset on the "
        "others, by log-score. Asked of adult are an accuracy of at least 0.775 and a mae of at most 0.25."
    )
    if write:
        report.write()


def of_crowd(name: str, annotations: cp.Annotations, gold: np.ndarray, fits: dict) -> list[dict[str, object]]:
    """Scores of the votes, the mean score and the fits of one crowd, whose tasks without gold labels have −1."""
    known, counts = gold >= 0, np.asarray(annotations.votes(), dtype=float)
    shares = counts / counts.sum(-1, keepdims=True)
    rows = [("mean score", "", ""), ("majority vote", "", "")]
    found = [of_mean(shares[known], gold[known]), measured(shares[known], gold[known], annotations)]
    for (story, prior, engine), options in fits.items():
        posterior = np.asarray(cp.fit(story, annotations, progress=False, **options).posterior)
        rows.append((story, prior, engine))
        found.append(measured(posterior[known], gold[known], annotations))
    return [
        {"crowd": name, "way": way, "prior": prior, "engine": engine} | scores
        for (way, prior, engine), scores in zip(rows, found, strict=True)
    ]


def measured(probabilities: np.ndarray, gold: np.ndarray, annotations: cp.Annotations) -> dict[str, float]:
    """Scores of label probabilities, those of the kind of labels among them."""
    of_kind = annotations.kind.label_scores(probabilities, gold, range(annotations.n_classes))
    of_truth = probabilities[np.arange(len(gold)), gold]
    return {
        "accuracy": float((annotations.kind.majority(probabilities)[np.arange(len(gold)), gold]).mean()),
        "mae": float(of_kind["mae"].mean()),
        "log_score": float(np.log(np.maximum(of_truth, 1e-6)).mean()),
        "spearman": float(of_kind["spearman"]),
    }


def of_mean(shares: np.ndarray, gold: np.ndarray) -> dict[str, float]:
    """Scores of the class nearest to the mean annotation."""
    mean = shares @ np.arange(shares.shape[1])
    error = np.abs(np.rint(mean) - gold)
    rank = pd.Series(mean.round(6)).corr(pd.Series(gold), method="spearman")
    return {"accuracy": float((error == 0).mean()), "mae": float(error.mean()), "log_score": np.nan, "spearman": rank}


def compare_shares(report: Report, crowds: dict[str, tuple[cp.Annotations, np.ndarray]]) -> None:
    """Scores of ``cp.fit("auto")`` by the ordinal story's prior and share, and what the others choose by log-score."""
    rows = []
    for name, (annotations, gold) in crowds.items():
        known, average = gold >= 0, auto(annotations, progress=False)
        others = average.weights.drop(list(ORDERED))
        of_priors = {
            prior: fitted_of(cp.fit("graded_response", annotations, truth_prior=PRIORS[prior], progress=False))
            for prior in dict.fromkeys(prior for shares in SHARES.values() for prior in shares)
        }
        for title, shares in SHARES.items():
            of_others = others / others.sum() * (1 - sum(shares.values()))
            weights = pd.concat([of_others, pd.Series(shares, dtype=float)]).rename_axis("story")
            members = {**average.members, **of_priors}
            of_title = replace(average, members={name: members[name] for name in weights.index}, weights=weights)
            posterior, data = np.asarray(of_title.posterior), name.partition(" #")[0]
            rows.append({"data": data, "share": title} | measured(posterior[known], gold[known], annotations))
    means = pd.DataFrame(rows).groupby(["data", "share"], sort=False).mean()
    by_data = means["log_score"].unstack("share")[list(SHARES)]
    chosen = {name: by_data.drop(index=name).mean().idxmax() for name in by_data.index}
    for measure in ("log_score", "accuracy", "mae"):
        shown = means[measure].unstack("share")[list(SHARES)]
        shown["by others"] = [shown.loc[name, chosen[name]] for name in shown.index]
        shown.loc["mean"] = shown.mean()
        shown = shown.map("{:.3f}".format)
        shown["chosen"] = [chosen.get(name, "") for name in shown.index]
        title = f"auto by the prior of graded_response's prevalence, and its share: {measure}"
        report.table(title, shown.reset_index(names="data").to_dict("records"))


def compare_priors(report: Report, means: pd.DataFrame) -> None:
    """Log-scores and accuracies by prior of the truth, and what the others would choose for each dataset."""
    for measure in ("log_score", "accuracy"):
        table = means[measure].unstack("prior").droplevel("engine")[list(PRIORS)]
        for story, frame in table.groupby(level="way"):
            by_data = frame.droplevel("way")
            chosen = {name: by_data.drop(index=name).mean().idxmax() for name in by_data.index}
            shown = by_data.assign(chosen=[chosen[name] for name in by_data.index])
            shown.insert(len(PRIORS), "by others", [by_data.loc[name, chosen[name]] for name in by_data.index])
            shown.loc["mean"] = shown.drop(columns="chosen").mean()
            report.table(f"{story}: {measure}", shown.fillna("").reset_index(names="data").to_dict("records"))


def real(name: str) -> tuple[cp.Annotations, np.ndarray]:
    """A dataset's annotations, and the gold class of each task, −1 without one."""
    annotations = cp.Annotations.from_frame(read_annotations(name), ordered=[*range(DATASETS[name])])
    gold = read_gold(name).reindex(annotations.tasks.to_index("task"))
    return annotations, gold.fillna(-1).to_numpy(dtype=int)


def simulated() -> dict[str, tuple[cp.Annotations, np.ndarray]]:
    """Crowds of 5 and 7 classes and of every shape, by name."""
    return {
        f"{classes} classes, {shape}{how} #{seed}": crowd(np.random.default_rng(seed), classes, shape, knows=knows)
        for how, knows in {"": False, ", ends known": True}.items()
        for classes, seeds in SEEDS.items()
        for shape in SHAPES
        for seed in seeds
    }


def crowd(
    rng: np.random.Generator, n_classes: int, shape: str, *, knows: bool = False
) -> tuple[cp.Annotations, np.ndarray]:
    """100 tasks × 10 of 38 workers who differ in severity, noise and in how much of the scale they use.

    A task's place is standard normal, and its true class where shares of this shape put the place. Workers add their
    severity, of a standard deviation of 0.3, and noise of about 1, use about 0.35 of the line, and cut it evenly.
    Where they know the ends of the classes, 3 of 8 annotate a task, the noise is about 0.5, and they cut where classes
    end.

    Args:
        rng: of everything.
        n_classes: K.
        shape: of :data:`SHAPES`.
        knows: whether workers know where classes end.
    """
    n_tasks, n_workers, per_task = (300, 8, 3) if knows else (100, 38, 10)
    shares = SHAPES[shape](n_classes)
    place = rng.normal(size=n_tasks)
    ends = norm.ppf(np.cumsum(shares / shares.sum())[:-1])
    gold = np.searchsorted(ends, place)
    used, severity, noise = (
        0.35 * np.exp(rng.normal(0, 0.25, n_workers)),
        rng.normal(0, 0.3, n_workers),
        np.exp(rng.normal(0, 0.4, n_workers)),
    )
    task = np.repeat(np.arange(n_tasks), per_task)
    worker = np.concatenate([rng.choice(n_workers, per_task, replace=False) for _ in range(n_tasks)])
    perceived = place[task] + severity[worker] + noise[worker] * rng.normal(size=len(task)) * (0.5 if knows else 1)
    halves = norm.ppf((np.cumsum(shares) - shares / 2) / shares.sum())  # of each class's tasks
    middle = np.interp((n_classes - 1) / 2, np.arange(n_classes), halves)  # of the scale, where that of the classes is
    evenly = norm.ppf(np.arange(1, n_classes) / n_classes)
    label = np.searchsorted(ends, perceived) if knows else np.searchsorted(evenly, used[worker] * (perceived - middle))
    frame = pd.DataFrame({"task": task, "worker": worker, "label": label})
    annotations = cp.Annotations.from_frame(frame, ordered=[*range(n_classes)])
    return annotations, gold[np.asarray(annotations.tasks.to_index("task"), dtype=int)]


if __name__ == "__main__":
    typer.run(main)
