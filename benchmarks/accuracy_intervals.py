"""How often the intervals of workers' accuracies hold what the workers got right on gold tasks."""

import typer
from support.data import data_folder
from support.report import Report

import crowdppl as cp

DATASETS = ("rte", "bluebird", "dog", "music", "labelme")
LEAST = 10  # annotations to gold tasks, for a worker to count


def main(write: bool = False) -> None:
    """Measure, and print what was found.

    Args:
        write: refresh this section of RESULTS.md.
    """
    data_folder()
    report = Report("Coverage of 90 % intervals of the workers' accuracy")
    report.table("dawid_skene with default priors, NUTS", [{"dataset": name, **coverage(name)} for name in DATASETS])
    report.note(
        f"Workers with at least {LEAST} annotations to gold tasks. Covered: the share of them whose gold accuracy, the "
        "share of these annotations that are right, lies in the 90 % interval of the accuracy. A gold accuracy has an "
        "error of its own, so that intervals that are right cover somewhat less than 90 %. 2 chains of 500 draws."
    )
    if write:
        report.write()


def coverage(name: str) -> dict[str, float]:
    """For one dataset how many workers count, the share covered in percent, and means of both accuracies."""
    fit = cp.fit("dawid_skene", cp.load_dataset(name), method="nuts", chains=2, seed=0, progress=False)
    workers = fit.workers[fit.workers["gold_annotations"] >= LEAST]
    held = workers["gold_accuracy"].between(workers["accuracy_low"], workers["accuracy_high"])
    return {
        "workers": len(workers),
        "covered, %": 100 * held.mean(),
        "mean accuracy": workers["accuracy"].mean(),
        "mean gold accuracy": workers["gold_accuracy"].mean(),
    }


if __name__ == "__main__":
    typer.run(main)
