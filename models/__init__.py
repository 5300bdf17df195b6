"""The stories, which are generative models of how workers annotate, and the parts that they are made of."""

import inspect
import re
from collections.abc import Mapping
from typing import Any

import pandas as pd

from ..data import unknown_name
from ..data.cards import Listing
from .anno_reg import anno_reg
from .annotator_groups import annotator_groups
from .common_individual import common_individual
from .confusion_from_features import confusion_from_features
from .crowd_layer import crowd_layer
from .dawid_skene import dawid_skene
from .difficulty import difficulty
from .glad import glad
from .graded_response import graded_response
from .hierarchical_dawid_skene import hierarchical_dawid_skene
from .independent_confusion_subtypes import ebcc, independent_confusion_subtypes
from .item_response import item_response
from .mace import mace
from .one_coin import one_coin
from .ordinal_dawid_skene import ordinal_dawid_skene
from .parts.abstaining import Abstaining
from .parts.bradley_terry import BradleyTerry
from .parts.classifier import Classifier
from .parts.confusion_logits import AddedLogits, NetworkLogits
from .parts.contract import Story, StoryError, promised
from .parts.correct import Correct
from .parts.correlated_questions import CorrelatedQuestions
from .parts.derived import derived
from .parts.emissions import AnnotationLikelihood, Confusion, Emission, Gated, PerAnnotation, SharedConfusion, Switch
from .parts.general import with_part
from .parts.graded import Graded
from .parts.handlers_of_threads import use_handlers_of_threads
from .parts.scored_annotations import CrowdLayer
from .parts.shared_error import WEIGHT, SharedError
from .parts.smooth_prevalence import SmoothPrevalence
from .parts.subtypes import Subtypes
from .parts.switched_kernels import SwitchedKernels
from .parts.task_difficulty import WEIGHT as DIFFICULTY_WEIGHT
from .parts.task_difficulty import TaskDifficulty
from .parts.truth import Truth, observe, tasks
from .parts.truth_prior import ClassPrior, FixedPrevalence, Given, Prevalence, TruthPrior, class_log_probs
from .score_factor import score_factor
from .two_coin import two_coin
from .worker_clusters import worker_clusters

use_handlers_of_threads()

STORIES: dict[str, Story] = {
    story.__name__: story
    for story in (
        dawid_skene,
        one_coin,
        two_coin,
        difficulty,
        annotator_groups,
        common_individual,
        mace,
        glad,
        item_response,
        hierarchical_dawid_skene,
        worker_clusters,
        independent_confusion_subtypes,
        confusion_from_features,
        graded_response,
        ordinal_dawid_skene,
        score_factor,
    )
}


WITH_CLASSIFIER: dict[str, Story] = {story.__name__: story for story in (crowd_layer, anno_reg)}
"""Stories that need a classifier, since they label tasks by nothing else, so that plain annotations do not do."""

AS_PUBLISHED: dict[str, Story] = {story.__name__: story for story in (ebcc,)}
"""Stories with the settings of their authors, where these are not the defaults here."""

KNOWN_STORIES = {name: promised(story) for name, story in (STORIES | WITH_CLASSIFIER | AS_PUBLISHED).items()}
"""All stories of the package; tests hold each to :mod:`.parts.contract`."""

ALIASES = {
    "aggnet": "dawid_skene",
    "cmm": "annotator_groups",
    "conal": "common_individual",
    "madl": "confusion_from_features",
}
"""Names that papers give to stories. AggNet is ``dawid_skene`` with a network as classifier."""


def find_story(story: str | Story) -> Story:
    """The story of that name or alias, or the function itself.

    Raises:
        UnknownNameError: no story has that name; the message gives the nearest one.
        StoryError: the function takes no annotations.
    """
    if callable(story):
        try:
            takes = inspect.signature(story).parameters
        except ValueError:  # of what is written in C, such as a type
            raise StoryError(f"{story!r} is no story; a story is a function: def name(annotations)") from None
        if not takes:
            name = getattr(story, "__name__", "story")
            raise StoryError(
                f"{name} takes no arguments; a story is a function of annotations: def {name}(annotations)"
            )
        return story
    name = ALIASES.get(story, story)
    if name not in KNOWN_STORIES:
        raise unknown_name("story", story, [*KNOWN_STORIES, *ALIASES])
    return KNOWN_STORIES[name]


def with_shared_error(
    story: str | Story,
    *,
    worker_families: pd.DataFrame | Mapping[Any, Any] | pd.Series | None = None,
    shared_weight: float = WEIGHT,
) -> Story:
    """Return the story in which workers share some of their errors; it keeps the contract of a story.

    ``cp.fit(story, annotations, shared_error=True)`` fits it, and is the same fit. Sites beside the story's own:
    ``pull_strength (F, 5)``, how often a task's pull on a family of workers is 0, 0.2, 0.4, 0.6 or 0.8, the probability
    that an annotation follows the impression instead of the worker's own judgement; and ``pull (K, K)``, the class of
    the impression by true class.

    Args:
        story: a story's name, or any story.
        worker_families: the family of each worker, such as the model behind several prompts: a mapping, a series, or a
            frame with the columns worker and family. Each family has impressions of its own. All workers are one
            family by default. Where workers are pairs with a question, a worker's name stands for all of its pairs.
        shared_weight: number of tasks that the prior of each row of both sites counts as. They expect a pull of 0.27
            on average, to the true class in 70 of 100 tasks.

    Raises:
        UnknownNameError: no story has that name.
        StoryError: the story has shared errors already; where it runs: the weight is not positive, or the families name
            a worker that the annotations do not know, or do not name one that they know.
    """
    given = {"worker_families": worker_families, "shared_weight": shared_weight}
    return with_part(find_story(story), "shared_error", **given)


def with_task_difficulty(story: str | Story, *, difficulty_weight: float = DIFFICULTY_WEIGHT) -> Story:
    """Return the story in which tasks have a level of difficulty; it keeps the contract of a story.

    ``cp.fit(story, annotations, task_difficulty=True)`` fits it, and is the same fit. On a task of difficulty d the
    log-odds of what a worker annotates are 1 − d times what the story says: at 0 the story itself, towards 1 chance.
    It goes with :func:`with_shared_error`, in any order. Site beside the story's own: ``difficulty_share (4,)``, how
    often the difficulty of a task is 0, 0.4, 0.7 or 0.9.

    Args:
        story: a story's name, or any story.
        difficulty_weight: number of tasks that the prior of the site counts as. It expects a difficulty of 0 of most
            tasks.

    Raises:
        UnknownNameError: no story has that name.
        StoryError: the story has difficulties of tasks already; where it runs: the weight is not positive.
    """
    return with_part(find_story(story), "task_difficulty", difficulty_weight=difficulty_weight)


def first_line(story: Story) -> str:
    """The first line of a story's docstring, without markup."""
    line = (inspect.getdoc(story) or "A story without a docstring.").split("\n", 1)[0]
    return re.sub(r"(:\w+:)?`+([^`]*)`+", r"\2", line)


def list_stories() -> pd.DataFrame:
    """The stories by name, with one line that says what each assumes of workers and tasks, and the names of papers.

    ``crowdppl.describe_story(name)`` has the density of one, its hyperparameters and the options of the engines.
    """
    lines = [first_line(story) for story in KNOWN_STORIES.values()]
    others = [", ".join(alias for alias, name in ALIASES.items() if name == story) for story in KNOWN_STORIES]
    frame = pd.DataFrame({"story": list(KNOWN_STORIES), "says": lines, "also_called": others}).set_index("story")
    return Listing.of(frame, "`cp.describe_story(name)` has its density, its hyperparameters, the engines' options")


__all__ = [
    "ALIASES",
    "AS_PUBLISHED",
    "KNOWN_STORIES",
    "STORIES",
    "WITH_CLASSIFIER",
    "Abstaining",
    "AddedLogits",
    "AnnotationLikelihood",
    "BradleyTerry",
    "ClassPrior",
    "Classifier",
    "Confusion",
    "Correct",
    "CorrelatedQuestions",
    "CrowdLayer",
    "Emission",
    "FixedPrevalence",
    "Gated",
    "Given",
    "Graded",
    "NetworkLogits",
    "PerAnnotation",
    "Prevalence",
    "SharedConfusion",
    "SharedError",
    "SmoothPrevalence",
    "Story",
    "StoryError",
    "Subtypes",
    "Switch",
    "SwitchedKernels",
    "TaskDifficulty",
    "Truth",
    "TruthPrior",
    "class_log_probs",
    "derived",
    "find_story",
    "list_stories",
    "observe",
    "tasks",
    "with_shared_error",
    "with_task_difficulty",
]
