"""Methods without a likelihood: rules over the votes, and classifiers trained on labels."""

from ...data.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
