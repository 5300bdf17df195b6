"""The stories of how workers come to write what they write, and what they are made of."""

from collections.abc import Callable

import pandas as pd

from ..data import unknown_name
from .dawid_skene import dawid_skene
from .emissions import Emission, Table
from .errors import StoryError
from .one_coin import one_coin
from .responses import Responses
from .truth import Prevalence, Truth, TruthPrior, answer, tasks
from .two_coin import two_coin

Story = Callable[..., None]

STORIES: dict[str, Story] = {"dawid_skene": dawid_skene, "one_coin": one_coin, "two_coin": two_coin}


def find_story(story: str | Story) -> Story:
    """The story of that name, or the function itself.

    Raises:
        UnknownNameError: for a name that is no story's, with the nearest one.
    """
    if callable(story):
        return story
    if story not in STORIES:
        raise unknown_name("story", story, STORIES)
    return STORIES[story]


def list_stories() -> pd.DataFrame:
    """By name: what each story says, in a line."""
    lines = [(story.__doc__ or "").strip().splitlines()[0] for story in STORIES.values()]
    return pd.DataFrame({"story": list(STORIES), "says": lines}).set_index("story")


__all__ = [
    "STORIES",
    "Emission",
    "Prevalence",
    "Responses",
    "Story",
    "StoryError",
    "Table",
    "Truth",
    "TruthPrior",
    "answer",
    "find_story",
    "list_stories",
    "tasks",
]
