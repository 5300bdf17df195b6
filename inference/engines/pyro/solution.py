"""Where one start of EM ended."""

from typing import NamedTuple

from torch import Tensor

from .density import Parameters


class Solution(NamedTuple):
    """Where one start of EM ended."""

    parameters: Parameters
    history: list[float]  # log-posterior by iteration or epoch; the last is of these parameters
    warnings: tuple[str, ...]
    weights: dict[str, Tensor] | None = None  # of the classifier, with its running statistics
