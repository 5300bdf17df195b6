"""A panel of judges on one page: who agrees with the truth, who copies whom, whom to drop, and what was judged."""

from typing import TYPE_CHECKING

from ...data.lazy import lazy_names

if TYPE_CHECKING:  # imported when first used
    from .judging import judge
    from .of_panel import Panel

__getattr__, __dir__ = lazy_names(__name__, __file__)

__all__ = ["Panel", "judge"]
