"""Plots of annotations, fits, checks and comparisons.

Each function returns the Matplotlib axes that it has drawn in: those that it is given, or those of a new figure.
"""

from typing import TYPE_CHECKING

from ...data.lazy import lazy_names

if TYPE_CHECKING:  # imported when first used
    from .agreement_intervals import plot_agreement
    from .compared_stories import plot_comparison
    from .confusion_matrices import plot_confusions, plot_groups
    from .estimated_shares import plot_estimate
    from .history import plot_history
    from .pointwise_elpd import plot_differences, plot_pareto_k
    from .predictive_checks import plot_check, plot_checks
    from .prior_and_likelihood import plot_prior_sensitivity
    from .ranking import plot_expected, plot_ranking, plot_switch
    from .ranks import plot_ranks
    from .reliability_and_roc import plot_reliability, plot_roc
    from .sensitivity import plot_sensitivity_specificity
    from .task_annotations import plot_annotations, plot_entropy
    from .worker_accuracy import plot_workers

__getattr__, __dir__ = lazy_names(__name__, __file__)

__all__ = [
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
]
