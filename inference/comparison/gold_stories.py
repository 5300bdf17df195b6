"""``cp.fit("auto", …, gold=…)``: a diverse set of stories and the votes, weighted by what gold labels say of them."""

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from ...data import AnnotationError, Annotations
from ...models import Story
from ..densities.evidence import Gold, with_evidence
from ..engines.checkpoints import CheckpointOptions
from ..fit_story import fit_story
from ..fitted.gold_mix import CENTRE, learned, shares_of_votes
from ..fitted.misled import told_label
from ..fitted.posterior import Posterior
from .default_set import DEFAULT_SET, SHARED, StorySet, auto, fit_each, kept_stories, story_set, usual_votes
from .default_set import VOTES as OF_VOTES

GOLD_SET: dict[str, dict[str, Any]] = DEFAULT_SET | {"mace": {}, "glad": {}, "hierarchical_dawid_skene": {}}
"""The set of stories that gold labels choose from, in the form of :data:`.DEFAULT_SET`."""

OPEN, LEAST_OPEN = 0.6, 0.05
"""Share of the expected weights that the annotations do not tell, where these depend on each other, and at the least.

It is the same for each story, and for the votes :data:`VOTES` times that.
"""
VOTES = 3.0

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
    r"""Fit a diverse set of stories, and weigh their labels and the votes by what gold labels say of them.

    Annotations cannot tell whether the workers of a crowd differ in how often they are right, or in which classes they
    confuse; twenty gold labels can. Each story is fitted twice: without the gold labels, so that these judge what they
    have not taught, and with them, for its labels and workers. The weights and one power are those of
    :mod:`.gold_mix`; the labels of the gold tasks are known. Workers who may copy count as one, and a story
    that has lost a class has no weight, as by :func:`.auto` without gold labels.

    Gold labels move the weights from those that :func:`.auto` gives without them, :math:`w`. With the probability
    :math:`d` that annotations of a task depend on each other given its label (:mod:`.dependence`) expected are
    :math:`(1 - s) w + s u`, where :math:`s` is :data:`OPEN` times :math:`d`, and :math:`u` knows nothing; and a
    power whose logarithm is :math:`d` times the usual one. Where all stories have lost a class :math:`w` is 1 for the
    votes. So gold labels that all components expect alike change little.

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
    keeping = CheckpointOptions(None) if checkpoints is None else checkpoints
    keeping.check_new()
    at_mode = {"sweeps": 0} if method == "em" else {}  # of nine crowds of 40 and 60 tasks averaged labels are no better
    options = {"copies": "auto"} | at_mode | options
    fit_one = partial(fit_story, method=method, seed=seed, progress=False)
    before = keeping.within("without gold")
    alone = auto(
        annotations, stories=stories, method=method, seed=seed, progress=progress, checkpoints=before, **options
    )
    is_usual = stories is None and annotations.named and not annotations.scored
    own = story_set(stories, annotations, options)
    chosen = own | (GOLD_SET if is_usual else {}) | own  # in this order, with the options for these annotations
    for name in [name for name in alone.members if name not in chosen]:  # found in these annotations
        families = alone.members[name].model.hyperparameters["worker_families"]
        chosen[name] = DEFAULT_SET[SHARED] | {"worker_families": families}
    judged, left_out = dict(alone.members), dict(alone.left_out) if alone.members else {}
    more = {name: about for name, about in chosen.items() if name not in {*judged, *left_out}}
    if more:
        first = len(alone.members) + len(alone.left_out)
        found = fit_each(more, annotations, fit_one, options, before, progress=progress, first=first)
        judged, left_out = judged | found[0], left_out | found[1]
    known_to = options | {"gold": gold}
    taught = {name: about for name, about in chosen.items() if name in judged}
    fits, _ = fit_each(taught, annotations, fit_one, known_to, keeping.within("with gold"), progress=progress)
    kept, _ = kept_stories(fits)
    votes = shares_of_votes(next(iter(judged.values())).annotations)
    components = np.stack([*(judged[name].posterior[at] for name in kept), votes[at]]).astype(float)
    told = np.array([alone.weights.get(name, 0.0) for name in kept])
    told = np.append(told, not told.any())
    depends = usual_votes(alone.members, alone.weights) / OF_VOTES if alone.members else 1.0
    mix = learned(components, known[at], expected_weights(told, depends), centre=depends * CENTRE)
    weights = pd.Series(mix.weights[:-1], pd.Index(list(kept), name="story"), name="weight")
    weights = weights.reindex(pd.Index(list(fits), name="story"), fill_value=0.0)
    return Posterior(fits, weights / weights.sum(), None, left_out, votes=float(mix.weights[-1]), power=mix.power)


def expected_weights(told: np.ndarray, depends: float, *, most: float = OPEN) -> np.ndarray:
    """Return the weights of S stories and of the votes that are expected before a gold label is seen, ``(S + 1,)``.

    Args:
        told: those that :func:`.auto` gives the stories without gold labels, or the votes where all stories have lost a
            class, ``(S + 1,)``.
        depends: the probability that annotations of a task depend on each other given its label.
        most: the share that the annotations do not tell where it is 1.
    """
    even = np.array([*np.ones(len(told) - 1), VOTES])
    share = max(most * depends, LEAST_OPEN)
    weights: np.ndarray = (1 - share) * told / told.sum() + share * even / even.sum()
    return weights
