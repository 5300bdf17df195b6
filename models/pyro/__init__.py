"""Five stories as plain Pyro programs, to read and to change: in the words of Pyro and PyTorch alone.

They need the extra ``pyro``. Each is the story of the same name in :mod:`crowdppl.models` with its defaults, has the
same sites and, up to a constant, the same density. ``truth`` is enumerated by Pyro. ``cp.fit`` does not use them: any
story, these too, is a Pyro program by :func:`crowdppl.inference.torch.program.in_pyro`, with all of its options.
"""

from .annotator_groups import annotator_groups
from .common_individual import common_individual
from .dawid_skene import dawid_skene
from .difficulty import difficulty
from .padded import Padded, padded
from .two_coin import two_coin

STORIES = {story.__name__: story for story in (two_coin, dawid_skene, difficulty, annotator_groups, common_individual)}

__all__ = [
    "STORIES",
    "Padded",
    "annotator_groups",
    "common_individual",
    "dawid_skene",
    "difficulty",
    "padded",
    "two_coin",
]
