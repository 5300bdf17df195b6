"""One story from several seeds, whose labels and predictions are averaged: networks end where their start leads."""

from __future__ import annotations

from typing import Any

from ..data import Annotations
from ..data.numbers import whole_number
from ..models import Classifier, Story
from ..models.parts.classifier import is_torch_module
from .engines.checkpoint_options import CheckpointOptions
from .engines.settings import checked_seed
from .fit_story import fit_story
from .fitted.posterior import Posterior, equal_weights

MOST_MEMBERS = 100  # each of which is a fit; their mean is hardly another from a dozen on


def checked_members(members: Any, story: object, classifier: Any, *, averages: bool) -> int:
    """Return the number of members.

    Args:
        members: what was given.
        story: what is fitted, for the message.
        classifier: as for :func:`crowdppl.fit`.
        averages: whether the story is an average, a rule, or one of a scan, which have no members.

    Raises:
        ValueError: it is no whole number from 1 to :data:`MOST_MEMBERS`, or all members would be equal.
    """
    members = whole_number("members", members, least=1, most=MOST_MEMBERS)
    if members == 1:
        return 1
    if averages:
        raise ValueError(
            f"members={members}: they are fits of one story, in memory, from several seeds, and story={story!r} is "
            "none; leave it out, or name a story, such as 'dawid_skene'"
        )
    made = classifier if isinstance(classifier, Classifier) or is_torch_module(classifier) else None
    if made is None and classifier is not None:
        made = Classifier(classifier)
    if made is None or (isinstance(made, Classifier) and not made.is_network):
        raise ValueError(
            f"members={members}: members differ by where a network starts and how it is trained, and there is no "
            "network; leave it out, or give classifier='mlp', a flax.nnx module or a torch.nn.Module"
        )
    return members


def fit_members(
    story: str | Story,
    annotations: Annotations,
    members: int,
    *,
    seed: int = 0,
    checkpoints: CheckpointOptions | None = None,
    **options: Any,
) -> Posterior:
    """Fit a story from ``members`` seeds, and average them with equal weights.

    Args:
        story: as for :func:`crowdppl.fit`.
        annotations: the data.
        members: M, how many.
        seed: of the first; each later one is greater by one.
        checkpoints: where each fit is kept, in a folder of its own.
        options: of :func:`.fit_story`.
    """
    seed, kept = checked_seed(seed), checkpoints or CheckpointOptions(None)
    kept.check_new()
    fits = {}
    for number in range(members):
        own = None if kept.folder is None else kept.within(f"member {number}")
        fits[f"seed {seed + number}"] = fit_story(story, annotations, seed=seed + number, checkpoints=own, **options)
    return Posterior(fits, equal_weights(fits))
