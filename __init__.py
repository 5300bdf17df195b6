"""Generative stories of crowd labels as probabilistic programs.

```python
import crowdppl as cp

annotations = cp.load_dataset("anesthesia")
fit = cp.fit("dawid_skene", annotations, method="nuts", seed=0)
fit.labels, fit.probabilities, fit.workers, fit.idata
```
"""

from typing import TYPE_CHECKING

from .data.lazy import import_tqdm as _import_tqdm
from .data.lazy import lazy_names

if TYPE_CHECKING:  # imported when first used
    from .data import AnnotationError, Annotations, UnknownNameError, list_datasets, load_dataset, load_split
    from .data.errors import StorageError
    from .data.exports.reading import read
    from .data.partitions import PartitionsError
    from .data.scan import Scan, scan
    from .inference.baselines.fit_baseline import list_baselines
    from .inference.baselines.imbalance import gold_imbalance_ratio, imbalance_ratio, rebalanced
    from .inference.baselines.self_training import SelfTraining
    from .inference.checks.check_results import Checks
    from .inference.checks.power_scaling import prior_sensitivity
    from .inference.checks.predictive import check, prior_check
    from .inference.checks.reference_posteriors import (
        ReferencePosterior,
        list_reference_posteriors,
        reference_posterior,
    )
    from .inference.checks.simulation_based_calibration import Ranks, calibrate
    from .inference.choose import Choice, choose
    from .inference.comparison.comparing import compare
    from .inference.comparison.cross_validation import kfold
    from .inference.comparison.elpd import Elpd
    from .inference.comparison.leave_one_out import loo
    from .inference.densities.marginals import Potential, marginal, potential
    from .inference.densities.simulation import simulate
    from .inference.described.describe_story import StoryDescription, describe_story
    from .inference.engines.finding import ConvergenceWarning, CrowdWarning, Finding
    from .inference.findings.register import Findings
    from .inference.findings.verdict import Verdict
    from .inference.fit import fit
    from .inference.fitted.error_correlation import ErrorCorrelation, error_correlation
    from .inference.fitted.groups import describe_groups, group_memberships, group_worker_confusions
    from .inference.fitted.next_annotations import next_annotations
    from .inference.fitted.next_comparisons import next_comparisons
    from .inference.fitted.next_gold import next_gold
    from .inference.fitted.tasks import expected_confusion
    from .inference.panel.judging import judge
    from .inference.panel.of_panel import Panel
    from .inference.plots.agreement_intervals import plot_agreement
    from .inference.plots.compared_stories import plot_comparison, plot_differences, plot_pareto_k
    from .inference.plots.confusion_matrices import plot_confusions, plot_groups
    from .inference.plots.estimated_shares import plot_estimate
    from .inference.plots.history import plot_history
    from .inference.plots.predictive_checks import plot_check, plot_checks
    from .inference.plots.prior_and_likelihood import plot_prior_sensitivity
    from .inference.plots.ranking import plot_expected, plot_ranking, plot_switch
    from .inference.plots.ranks import plot_ranks
    from .inference.plots.reliability_and_roc import plot_reliability, plot_roc
    from .inference.plots.sensitivity import plot_sensitivity_specificity
    from .inference.plots.task_annotations import plot_annotations, plot_entropy
    from .inference.plots.worker_accuracy import plot_workers
    from .inference.report.gold_page import gold_page
    from .inference.result import Fit, load_fit, stack, without_workers
    from .inference.scores.calibration import reliability
    from .inference.scores.divergences import confusion_divergences, worker_divergences
    from .inference.scores.error_bound import annotations_needed, label_error_bound
    from .inference.scores.estimates import Estimate, estimate
    from .inference.scores.gold_plan import GoldNeeded, gold_needed
    from .inference.scores.label_calibration import LabelCalibration, calibrate_labels
    from .inference.scores.label_scores import label_confusion, roc, score
    from .inference.scores.worker_agreement import Agreement, agreement
    from .inference.training_on_labels import label_then_train, self_train
    from .models import (
        AnnotationLikelihood,
        BradleyTerry,
        Classifier,
        Confusion,
        Correct,
        CorrelatedQuestions,
        Emission,
        FixedPrevalence,
        Prevalence,
        SharedError,
        SmoothPrevalence,
        StoryError,
        TaskDifficulty,
        class_log_probs,
        derived,
        list_stories,
        observe,
        tasks,
        with_shared_error,
        with_task_difficulty,
    )

_import_tqdm()
__path__ = [*__path__, f"{__path__[0]}/inference/interfaces"]  # of a checkout; a wheel has them beside this file
__getattr__, __dir__ = lazy_names(__name__, __file__)

__version__ = "0.1.0"

__all__ = [
    "Agreement",
    "AnnotationError",
    "AnnotationLikelihood",
    "Annotations",
    "BradleyTerry",
    "Checks",
    "Choice",
    "Classifier",
    "Confusion",
    "ConvergenceWarning",
    "Correct",
    "CorrelatedQuestions",
    "CrowdWarning",
    "Elpd",
    "Emission",
    "ErrorCorrelation",
    "Estimate",
    "Finding",
    "Findings",
    "Fit",
    "FixedPrevalence",
    "GoldNeeded",
    "LabelCalibration",
    "Panel",
    "PartitionsError",
    "Potential",
    "Prevalence",
    "Ranks",
    "ReferencePosterior",
    "Scan",
    "SelfTraining",
    "SharedError",
    "SmoothPrevalence",
    "StorageError",
    "StoryDescription",
    "StoryError",
    "TaskDifficulty",
    "UnknownNameError",
    "Verdict",
    "agreement",
    "annotations_needed",
    "calibrate",
    "calibrate_labels",
    "check",
    "choose",
    "class_log_probs",
    "compare",
    "confusion_divergences",
    "derived",
    "describe_groups",
    "describe_story",
    "error_correlation",
    "estimate",
    "expected_confusion",
    "fit",
    "gold_imbalance_ratio",
    "gold_needed",
    "gold_page",
    "group_memberships",
    "group_worker_confusions",
    "imbalance_ratio",
    "judge",
    "kfold",
    "label_confusion",
    "label_error_bound",
    "label_then_train",
    "list_baselines",
    "list_datasets",
    "list_reference_posteriors",
    "list_stories",
    "load_dataset",
    "load_fit",
    "load_split",
    "loo",
    "marginal",
    "next_annotations",
    "next_comparisons",
    "next_gold",
    "observe",
    "plot_agreement",
    "plot_annotations",
    "plot_check",
    "plot_checks",
    "plot_comparison",
    "plot_confusions",
    "plot_differences",
    "plot_entropy",
    "plot_estimate",
    "plot_expected",
    "plot_groups",
    "plot_history",
    "plot_pareto_k",
    "plot_prior_sensitivity",
    "plot_ranking",
    "plot_ranks",
    "plot_reliability",
    "plot_roc",
    "plot_sensitivity_specificity",
    "plot_switch",
    "plot_workers",
    "potential",
    "prior_check",
    "prior_sensitivity",
    "read",
    "rebalanced",
    "reference_posterior",
    "reliability",
    "roc",
    "scan",
    "score",
    "self_train",
    "simulate",
    "stack",
    "tasks",
    "with_shared_error",
    "with_task_difficulty",
    "without_workers",
    "worker_divergences",
]
