"""Several fits of one story with a network, each from a seed of its own, and their mean."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from ...data.errors import warn, whole_number
from ...models import Classifier
from ...models.parts.truth_prior import is_torch_module
from ..engines.checkpoints import CheckpointOptions
from ..engines.finding import ConvergenceWarning
from ..engines.settings import checked_seed
from .fitted import Fitted
from .posterior import Posterior, equal_weights

MOST_MEMBERS = 100
"""Fits of one story from several seeds at the most: their mean is hardly another from a dozen on."""

EQUAL = 1e-5  # of weights, between networks whose training differs by rounding alone
T = TypeVar("T")


def checked_members(members: Any, story: object, classifier: Any, *, averages: bool) -> int:
    """Return the number of members.

    Args:
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


def from_seeds(
    fit_one: Callable[..., T], members: int, seed: int, checkpoints: CheckpointOptions | None
) -> dict[str, T]:
    """Return what is fitted from each of several seeds, by the seed's name.

    Args:
        fit_one: called with ``seed`` and ``checkpoints``, which are None where nothing is kept.
        members: M, how many.
        seed: of the first; each later one is greater by one.
        checkpoints: where each fit is kept, in a folder of its own.
    """
    seed, kept = checked_seed(seed), checkpoints or CheckpointOptions(None)
    kept.check_new()
    return {
        f"seed {seed + number}": fit_one(
            seed=seed + number, checkpoints=None if kept.folder is None else kept.within(f"member {number}")
        )
        for number in range(members)
    }


def mean_of_members(fits: Mapping[str, Fitted]) -> Posterior:
    """Return the average of fits with equal weights; a warning says where their networks are all equal."""
    if _are_equal([fit.fixed for fit in fits.values()]):
        warn(
            f"members={len(fits)}: all networks are equal, since they start at the weights that the module has and "
            "nothing in their training is drawn, so that their spread of 0 does not say how sure they are; give a "
            "module with dropout, with method='em' a batch_size below the number of tasks, or fit modules that start "
            "elsewhere",
            ConvergenceWarning,
        )
    return Posterior(fits, equal_weights(fits))


def _are_equal(networks: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether weights by site are those of the first network up to rounding; False without any."""
    first, *others = networks
    return bool(first) and all(
        np.allclose(other[name], value, rtol=EQUAL, atol=EQUAL) for other in others for name, value in first.items()
    )
