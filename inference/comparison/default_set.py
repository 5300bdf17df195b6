"""``cp.fit("auto", …)``: a default set of stories, fitted, compared and averaged."""

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
"""The default set of stories: by name the options of :func:`crowdppl.fit`, with ``story``, by default the name.

These four of the seven stories for named workers and any number of classes gave the best labels, averaged, on public
datasets (``benchmarks/auto.py``). hierarchical_dawid_skene, annotator_groups and independent_confusion_subtypes often
predict annotations better, but their labels are right less often.
"""

DEFAULT_SET_UNNAMED: dict[str, dict[str, Any]] = {
    f"annotator_groups ({groups})": {"story": "annotator_groups", "groups": groups} for groups in (1, 2, 3)
}
"""The default set of stories where no worker is named, in the form of :data:`DEFAULT_SET`."""


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
    """Fit a set of stories, compare them by how well they predict held-out annotations, and average their labels.

    The weights are those of stacking over K folds of the annotations, refitted by EM whatever the fits' engine.

    Args:
        annotations: who labelled what.
        stories: the stories to fit: names, functions, or by name ``{"story": …, hyperparameter: …}``;
            :data:`DEFAULT_SET` by default, or :data:`DEFAULT_SET_UNNAMED` where no worker is named.
        method: the engine of the fits whose labels are averaged; ``"svi"`` and ``"nuts"`` give the workers' scores
            intervals.
        folds: K, of the comparison.
        seed: of the engines and the folds.
        progress: whether to show a progress bar.
        options: of :func:`crowdppl.fit`, for every story, such as ``gold``, ``evidence`` and ``classifier``.

    Returns:
        the average, with its fits, weights and comparison, and the stories that do not fit these data.

    Raises:
        ValueError: fewer than two of the stories fit these data; with the reason of each.
    """
    chosen = story_set(stories, annotations)
    fits: dict[str, Fitted] = {}
    left_out: dict[str, str] = {}
    with progress_bar("stories", len(chosen) + 1, show=progress) as bar:
        for number, (name, about) in enumerate(chosen.items()):
            bar(number, name)
            own = {"story": name} | dict(about) | options
            story: str | Story = own.pop("story")
            try:
                fits[name] = fit_story(story, annotations, method=method, seed=seed, progress=False, **own)
            except StoryError as error:
                left_out[name] = str(error)
        if len(fits) < 2:
            reasons = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
            raise ValueError(
                f"{len(fits)} of {len(chosen)} stories fit these data, and two at least are needed. {reasons}"
            )
        bar(len(chosen), "comparing")
        comparison = compare(fits, method="kfold", folds=folds, refit_by="em", seed=seed, progress=False)
        comparison.attrs["how"] = f"{folds} folds of the annotations, for each of which every story was refitted by EM"
    return Averaged(fits, comparison["weight"].reindex(list(fits)), comparison, left_out)


def story_set(stories: StorySet | Iterable[str | Story] | None, annotations: Annotations) -> dict[str, dict[str, Any]]:
    """The stories to fit, by name, each with its options of :func:`crowdppl.fit`.

    Args:
        stories: as for :func:`auto`.
        annotations: the data; the default depends on whether workers are named.
    """
    if stories is None:
        return DEFAULT_SET if annotations.named else DEFAULT_SET_UNNAMED
    if isinstance(stories, Mapping):
        return {str(name): dict(about) for name, about in stories.items()}
    return {story if isinstance(story, str) else story.__name__: {"story": story} for story in stories}
