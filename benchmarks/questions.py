"""Several questions a task: the third rater of a rubric predicted from two, and a rubric whose scores are noise.

Each rater's annotations of each fold of the tasks are left out in turn, and predicted by a fit of all others, those of
the two other raters of the same tasks among them. Quality by question with a prevalence of each question is Dawid and
Skene's story of each question alone.
"""

import warnings

import numpy as np
import typer
from support.data import data_folder
from support.report import Report

import crowdppl as cp
from crowdppl.inference.comparison.held_out import predict_annotations, refit_without
from crowdppl.inference.fitted.pointwise import rounds

FOLDS = 5
ASKED = 0.05  # nats an annotation, over each question alone
WAYS = {
    "each question alone": {"quality": "by_question"},
    "pooled": {"quality": "pooled"},
    "one quality over all questions": {},
    "by question, 4 kinds": {"quality": "by_question", "truth_prior": cp.CorrelatedQuestions(4)},
    "by question, 8 kinds": {"quality": "by_question", "truth_prior": cp.CorrelatedQuestions(8)},
    "by question, 16 kinds": {"quality": "by_question", "truth_prior": cp.CorrelatedQuestions(16)},
    "pooled, 8 kinds": {"quality": "pooled", "truth_prior": cp.CorrelatedQuestions(8)},
    "ordinal_dawid_skene by question, 8 kinds": {
        "story": "ordinal_dawid_skene",
        "quality": "by_question",
        "truth_prior": cp.CorrelatedQuestions(8),
    },
}
AVERAGED = [f"by question, {n} kinds" for n in (4, 8, 16)]
AVERAGE = "mean of 4, 8 and 16 kinds"


def main(write: bool = False) -> None:
    """Measure, and print a table for each rubric.

    Args:
        write: refresh this section of RESULTS.md.
    """
    data_folder()
    warnings.simplefilter("ignore")
    report = Report("Several questions a task")
    report.table(
        "rubric_campus: log-score of the third rater, given two", third_rater(cp.load_dataset("rubric_campus"))
    )
    report.table("rubric_amt: dawid_skene of scores that are nearly noise", [noise(cp.load_dataset("rubric_amt"))])
    report.note(
        f"Log-scores in nats an annotation, mean over {FOLDS} folds of the tasks and the three raters; asked are "
        f"{ASKED} more than of each question alone. Two raters' scores of coherence are equal on all tasks, so that "
        "nothing is left to win there. 8 kinds are the default, which was chosen with this rubric in view; the mean, "
        "of the probabilities that fits of all three numbers give, chooses none. "
        "On rubric_amt the first line of the summary warns; that the intervals of every worker's informativeness "
        "include none, and that labels are not surer than the prevalence, is asked: the entropies are of a label and "
        "of its question's prevalence, in nats."
    )
    if write:
        report.write()


def third_rater(annotations: cp.Annotations) -> list[dict[str, object]]:
    """Mean log-scores of left-out annotations by way, in all and by question."""
    task, worker = np.asarray(annotations.task), np.asarray(annotations.worker)
    units = annotations.tasks
    fold = np.random.default_rng(0).integers(0, FOLDS, len(units.tasks))[units.task[task]]
    question = np.asarray(annotations.question)[task]
    kept: dict[str, np.ndarray] = {}
    for name, options in WAYS.items():
        given = {"story": "dawid_skene", "annotations": annotations, "progress": False} | options
        fitted = cp.fit(**given).fitted
        scores = np.zeros(annotations.n_rows)
        for rater in range(annotations.n_workers):
            for part in range(FOLDS):
                held = (worker == rater) & (fold == part)
                without = refit_without(fitted, held.astype(np.float32))
                scores += held * np.asarray(predict_annotations(without, rounds(task, held)))
        kept[name] = scores
    kept[AVERAGE] = np.logaddexp.reduce([kept[name] for name in AVERAGED], 0) - np.log(len(AVERAGED))
    alone = kept["each question alone"].mean()
    rows: list[dict[str, object]] = []
    for name, scores in kept.items():
        by_question = {str(asked): scores[question == q].mean() for q, asked in enumerate(annotations.questions)}
        rows.append({"way": name, "log-score": scores.mean(), "better by": scores.mean() - alone, **by_question})
    return [{key: value if isinstance(value, str) else f"{value:.3f}" for key, value in row.items()} for row in rows]


def noise(annotations: cp.Annotations) -> dict[str, object]:
    """What a fit says of scores that are nearly noise."""
    fit = cp.fit("dawid_skene", annotations, progress=False)
    labels = fit.posterior
    low, prevalence = fit.workers["informativeness_low"], fit.parameters["prevalence"].to_numpy()
    of_prevalence = -(prevalence * np.log(prevalence)).sum(-1)[np.asarray(annotations.question)]
    return {
        "warned in the first line": "use none" in str(fit.summary()).splitlines()[0],
        "workers with a lower end below 0.01": f"{(low < 0.01).mean():.0%}",
        "median lower end": f"{low.median():.3f}",
        "entropy of a label": f"{-(labels * np.log(np.maximum(labels, 1e-12))).sum(-1).mean():.3f}",
        "of its prevalence": f"{of_prevalence.mean():.3f}",
    }


if __name__ == "__main__":
    typer.run(main)
