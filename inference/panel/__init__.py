"""A panel of judges on one page: who agrees with the truth, who copies whom, whom to drop, and what was judged."""

from ...data.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
