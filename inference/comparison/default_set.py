"""A shelf of stories, compared and averaged: what ``cp.fit("auto", …)`` does."""

from collections.abc import Iterable, Mapping
from typing import Any

from ...data import Annotations
from ...models import Story, StoryError
from ..engines.progress import progress_bar
from ..fit_story import fit_story
from ..fitted.fitted import Fitted
from .comparing import compare
from .stacking import Averaged

StorySet = Mapping[str, Mapping[str, Any]]

DEFAULT_SET: dict[str, dict[str, Any]] = {
    "dawid_skene": {},
    "worker_clusters": {},
    "mace": {},
    "common_individual": {},
}
"""By name what is given to :func:`crowdppl.fit`: ``story``, the name by default, and the story's hyperparameters.

Of the seven stories for named workers of any number of classes those whose average labelled best on public datasets
(``benchmarks/auto.py``); hierarchical_dawid_skene, annotator_groups and independent_confusion_subtypes often predict
annotations better than they label.
"""

UNNAMED: dict[str, dict[str, Any]] = {
    f"annotator_groups ({groups})": {"story": "annotator_groups", "groups": groups} for groups in (1, 2, 3)
}
"""The same where no worker is named."""


def auto(
    annotations: Annotations,
    *,
    stories: StorySet | Iterable[str | Story] | None = None,
    method: str = "em",
    folds: int = 5,
    seed: int = 0,
    progress: bool = True,
    **options: Any,
) -> Averaged:
    """Fit a shelf of stories, compare them by what they predict of held-out annotations, and average their labels.

    The weights are those of stacking over K folds of the annotations, with refits by EM whatever the engine of the fits.

    Args:
        annotations: who labelled what.
        stories: what is on the shelf: names, functions, or by name ``{"story": …, hyperparameter: …}``;
            :data:`SHELF` by default.
        method: the engine of the fits whose labels are averaged; ``"svi"`` and ``"nuts"`` give the workers intervals.
        folds: of the comparison.
        seed: of the engines and the folds.
        progress: show a progress bar.
        options: of :func:`crowdppl.fit`, for every story, such as ``gold``, ``evidence`` and ``classifier``.

    Raises:
        ValueError: no two stories can be told of these data, with the reason of each.
    """
    shelf = story_set(stories, annotations)
    fits: dict[str, Fitted] = {}
    left_out: dict[str, str] = {}
    with progress_bar("stories", len(shelf) + 1, show=progress) as bar:
        for number, (name, about) in enumerate(shelf.items()):
            bar(number, name)
            own = {"story": name} | dict(about) | options
            told: str | Story = own.pop("story")
            try:
                fits[name] = fit_story(told, annotations, method=method, seed=seed, progress=False, **own)
            except StoryError as error:
                left_out[name] = str(error)
        if len(fits) < 2:
            reasons = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
            count = f"{len(fits)} of {len(shelf)} stories can be told of these data"
            raise ValueError(f"{count}; two are needed to compare. {reasons}")
        bar(len(shelf), "comparing")
        comparison = compare(fits, method="kfold", folds=folds, refit_by="em", seed=seed, progress=False)
    return Averaged(fits, comparison["weight"].reindex(list(fits)), comparison, left_out)


def story_set(stories: StorySet | Iterable[str | Story] | None, annotations: Annotations) -> dict[str, dict[str, Any]]:
    """The stories to fit, by name.

    Args:
        stories: as for :func:`auto`.
        annotations: the data; where no worker is named the default is :data:`UNNAMED`.
    """
    if stories is None:
        return DEFAULT_SET if annotations.named else UNNAMED
    if isinstance(stories, Mapping):
        return {str(name): dict(about) for name, about in stories.items()}
    return {story if isinstance(story, str) else story.__name__: {"story": story} for story in stories}
