"""From annotations to results: densities, engines, what follows from a fit, and views of it."""

from ..data.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
