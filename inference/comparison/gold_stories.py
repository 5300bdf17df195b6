"""``cp.fit("auto", …, gold=…)``: a diverse set of stories and the votes, weighted by what gold labels say of them."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from ...data import AnnotationError, Annotations
from ...models import Story
from ..densities.evidence import Gold, with_evidence
from ..engines.checkpoints import CheckpointOptions
from ..fit_story import fit_story
from ..fitted.fitted import Fitted
from ..fitted.gold_mix import learned, shares_of_votes
from ..fitted.misled import told_label
from ..fitted.posterior import Posterior
from .default_set import StorySet, fit_each, kept_stories, story_set

GOLD_SET: dict[str, dict[str, Any]] = {
    "dawid_skene with shared errors": {"story": "dawid_skene", "shared_error": True},
    "dawid_skene": {},
    "one_coin": {},
    "mace": {},
    "glad": {},
    "hierarchical_dawid_skene": {},
}
"""The set of stories that gold labels choose from, in the form of :data:`.DEFAULT_SET`."""

EXPECTED = {"dawid_skene with shared errors": 4.0}
OTHERS, VOTES = 0.7, 2.0
"""Weights that are expected without gold labels: of the story of :data:`EXPECTED`, of each other, and of the votes."""

OF_AN_AVERAGE = ("weights", "votes", "misled", "folds")
"""Options of :func:`.auto` with which gold labels count as known labels and do not choose."""


def auto_with_gold(
    annotations: Annotations,
    *,
    gold: Gold,
    stories: StorySet | Iterable[str | Story] | str | Story | None = None,
    method: str = "em",
    seed: int = 0,
    progress: bool = True,
    checkpoints: CheckpointOptions | None = None,
    **options: Any,
) -> Posterior:
    """Fit a diverse set of stories, and weigh their labels and the votes by what gold labels say of them.

    Annotations cannot tell whether the workers of a crowd differ in how often they are right, or in which classes they
    confuse; twenty gold labels can. Each story is fitted twice: without the gold labels, so that these judge what they
    have not taught, and with them, for its labels and workers. The weights and one power are those of
    :mod:`.gold_mix`; the labels of the gold tasks are known. A story that has lost a class has no weight, as by
    :func:`.auto`.

    Args:
        annotations: who labelled what.
        gold: as for :func:`crowdppl.fit`, one label or more.
        stories: as for :func:`.auto`; :data:`GOLD_SET` by default, where workers are named and annotate the classes
            themselves.
        method: the engine of the fits.
        seed: of the engines.
        progress: whether to show a progress bar.
        checkpoints: where each story's fits are kept, in folders of their own.
        options: of :func:`crowdppl.fit`, for every story.

    Raises:
        AnnotationError: gold labels do not fit the annotations, or none is known.
        ValueError: none of the stories fits these data, with the reason of each.
    """
    known = told_label(with_evidence(annotations, gold))
    at = np.flatnonzero(known >= 0)
    if not len(at):
        raise AnnotationError("gold: none of the labels is known; give gold={task: label, …}, one label or more")
    is_usual = stories is None and annotations.named and not annotations.scored
    chosen = GOLD_SET if is_usual else story_set(stories, annotations)

    def fit_twice(story: str | Story, data: Annotations, **own: Any) -> tuple[np.ndarray, Fitted]:
        """Return label probabilities of the gold tasks that these have not taught, and the fit that they have."""
        own |= {"method": method, "seed": seed, "progress": False}
        kept: CheckpointOptions | None = own.pop("checkpoints")

        def folder(name: str) -> CheckpointOptions | None:
            return None if kept is None else kept.within(name)

        without = fit_story(story, data, checkpoints=folder("without gold"), **own)
        return without.posterior[at], fit_story(story, data, gold=gold, checkpoints=folder("with gold"), **own)

    at_mode = {"sweeps": 0} if method == "em" else {}  # of nine crowds of 40 and 60 tasks averaged labels are no better
    both, left_out = fit_each(chosen, annotations, fit_twice, at_mode | options, checkpoints, progress=progress)
    fits = {name: fitted for name, (_, fitted) in both.items()}
    kept, _ = kept_stories(fits)
    components = np.stack([*(both[name][0] for name in kept), shares_of_votes(annotations)[at]]).astype(float)
    mix = learned(components, known[at], np.array([*(EXPECTED.get(name, OTHERS) for name in kept), VOTES]))
    weights = pd.Series(mix.weights[:-1], pd.Index(list(kept), name="story"), name="weight")
    weights = weights.reindex(pd.Index(list(fits), name="story"), fill_value=0.0)
    return Posterior(fits, weights / weights.sum(), None, left_out, votes=float(mix.weights[-1]), power=mix.power)
