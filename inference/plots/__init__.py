"""Pictures of annotations, fits and comparisons. Each returns its axes, and draws in those that it is given."""

from .answers import plot_answers, plot_entropy
from .comparison import plot_comparison
from .confusions import plot_confusions
from .elpd import plot_differences, plot_pareto_k
from .gold import plot_reliability, plot_roc
from .groups import plot_groups
from .history import plot_history
from .ranks import plot_ranks
from .sensitivity import plot_sensitivity_specificity
from .switch import plot_switch
from .workers import plot_workers

__all__ = [
    "plot_answers",
    "plot_comparison",
    "plot_confusions",
    "plot_differences",
    "plot_entropy",
    "plot_groups",
    "plot_history",
    "plot_pareto_k",
    "plot_ranks",
    "plot_reliability",
    "plot_roc",
    "plot_sensitivity_specificity",
    "plot_switch",
    "plot_workers",
]
