"""A story with its truth summed out: its sites, its densities, what is known beside the annotations, simulation."""

from ...data.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
