"""Results computed from a fit: labels, workers, tasks, decisions, groups, a summary."""

from ...data.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
