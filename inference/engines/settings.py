"""The options of the engines, and the checks of what a user gives for them.

An option that a fit would not use is refused instead of ignored.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpyro.infer.autoguide import AutoGuide

from ...data import unknown_name
from ...data.errors import real_number, truth_value, whole_number

EPOCHS = 50  # where the user says nothing, at the least
PATIENCE = 10  # epochs, where held-out annotations end the training and the user says nothing
LARGEST_SEED = 2**63 - 1


class EMSettings(NamedTuple):
    r"""Options of ``method="em"``.

    A story without a network is fitted by iterations over all data. A network (``Classifier`` of any kind but
    ``"logistic"``), or a ``batch_size``, asks for epochs of minibatches instead. An option of the way that is not taken
    is refused.

    Args:
        max_iterations: iterations of one start at the most. Used without minibatches.
        tolerance: relative change of the log-posterior below which EM has converged. Used without minibatches.
        restarts: starts; after the first, the votes to start from are perturbed. The best solution is kept.
        learning_rate: of Adam. Used where the story has real-valued parameters that are no classifier's weights, and
            no scores of compared items: these take Newton's steps.
        halvings: times that a step is halved at the most, until the log-posterior does not fall. Used without
            minibatches, where the story has real-valued parameters or factors, so that its M-step is not exact.
        accelerate: go on in the direction of the last two iterations where the log-posterior does not fall there
            (SQUAREM), so that a fit that crawls takes a fraction of the iterations. Used without minibatches, where no
            parameter but a classifier's weights, or scores of compared items, is real-valued.
        epochs: passes over the data; None for 50, and with a network for as many more as make 800 steps of small
            data. Used with minibatches.
        batch_size: tasks in a minibatch, all of them where there are fewer; None for 64 with a network, and for all
            tasks in every iteration without.
        network_rate: Adam's learning rate of a network's weights. Used with a network.
        weight_decay: :math:`\lambda` of the penalty :math:`\frac{\lambda}{2} \|w\|^2` of a classifier's weights
            :math:`w`, beside the mean negative log-joint of the tasks, as in PyTorch's Adam. Used with minibatches,
            where the classifier has no ``prior``, whose standard deviation :math:`s` is :math:`\lambda = 1 / (N s^2)`.
        warmup: epochs at the start in which real-valued parameters, a network's weights among them, learn from the soft
            majority vote instead of the label posterior; None for one, and for a third of the epochs where a network
            that has learnt nothing would mislead: where it decides what workers annotate (as in ``difficulty`` and
            ``crowd_layer``), and where what it says at first has little to do with the votes, as of a module with
            random weights. Used with minibatches, where the story has such parameters.
        held_out: share of the tasks whose annotations are kept from training: it stops where the classifier has told no
            more of them (:func:`.minibatch_em.gain`) for ``patience`` epochs, and the best epoch's parameters are kept;
            ``epochs`` are then the most that are made, by default four times as many. 0 trains on all annotations for
            all epochs, which is better on a few hundred tasks (``benchmarks/held_out.py``). Used with minibatches.
        patience: epochs to wait for a better one; None for ten, or as many as take 160 steps of small data. Used with
            ``held_out``.
        sweeps: of data augmentation (:mod:`.sweeps`) from the mode and the votes, over whose later half label
            probabilities are averaged (:mod:`.averaged_labels`); 0 gives those at the mode. None takes fifteen where
            there are fewer than thirty annotations for each parameter and they take about a second at the most, or two
            or three where there are more parameters than annotations. The mode, its log-posterior and its intervals
            stay as they are. Used where all tasks are in memory of one device, without minibatches; None also of files
            of up to 131,072 rows.
    """

    max_iterations: int = 1000
    tolerance: float = 1e-6
    restarts: int = 1
    learning_rate: float = 0.05
    halvings: int = 10
    accelerate: bool = True
    epochs: int | None = None
    batch_size: int | None = None
    network_rate: float = 3e-4
    weight_decay: float = 0.0
    warmup: int | None = None
    held_out: float = 0.0
    patience: int | None = None
    sweeps: int | None = None

    @property
    def passes(self) -> int:
        """The epochs, or :data:`EPOCHS`."""
        return EPOCHS if self.epochs is None else self.epochs

    @property
    def waits(self) -> int:
        """The epochs to wait for a better one, or :data:`PATIENCE`."""
        return PATIENCE if self.patience is None else self.patience


class SVISettings(NamedTuple):
    """Options of ``method="svi"``.

    Args:
        max_iterations: steps of Adam.
        learning_rate: of the first half of the steps; it falls to a tenth of it in the second.
        network_rate: of a classifier's weights that have no prior: a network's in the EM before, where they stay, those
            of a logistic regression in SVI's own steps. Used where there are such weights.
        weight_decay: of the same weights, as of :class:`EMSettings`. Used where there are such weights.
        epochs: of the EM that finds where a story with a network starts. Used with a network.
        warmup: of the same EM: its epochs that learn from the soft majority vote. Used with a network.
        held_out: of the same EM, as of :class:`EMSettings`. Used with a network whose weights have no prior.
        patience: of the same EM. Used with ``held_out``.
        guide: ``"normal"`` (mean field), ``"low_rank"``, ``"multivariate_normal"`` or ``"delta"`` (a point, the
            posterior's mode in unconstrained space), or a class of NumPyro's automatic guides; with
            ``backend="pyro"`` of Pyro's.
        batch_size: tasks in a minibatch, all of them where there are fewer; None takes all of them in every step.
        particles: draws of the guide that a step averages over. Used where the guide is not a point.
        draws: draws of the fitted guide to keep. Used where the guide is not a point, of which one draw is kept.
        tolerance: share of the loss by which its last tenth may lie under the tenth before without a warning.
        sweeps: of data augmentation that lead the guide's draws to the posterior (:mod:`.sweeps`), of each chain of
            them; 0 leaves the draws as the guide has them. None takes up to a hundred, as many as compute no more than
            the steps of Adam did, or than two or three seconds take, and none where these would be under fifteen.
            The loss and what is optimised stay as they are. Used where all tasks are in memory of one device and each
            step takes all of them, by a guide that is not a point, with ``backend="numpyro"``; None, too, of files of
            up to 131,072 rows.
    """

    max_iterations: int = 2000
    learning_rate: float = 0.02
    network_rate: float = EMSettings().network_rate
    weight_decay: float = EMSettings().weight_decay
    epochs: int | None = None
    warmup: int | None = None
    held_out: float = EMSettings().held_out
    patience: int | None = None
    guide: str | Callable[..., AutoGuide] = "normal"
    batch_size: int | None = None
    particles: int = 1
    draws: int = 1000
    tolerance: float = 1e-4
    sweeps: int | None = None


class NUTSSettings(NamedTuple):
    """Options of ``method="nuts"``.

    Args:
        chains: number of chains: in threads on a CPU, vectorised on a GPU.
        warmup: adaptation steps of each chain, thrown away.
        draws: draws kept of each chain.
        target_accept: acceptance probability to adapt the step size to; raise it where transitions diverge.
        max_tree_depth: a draw costs at most two to this power gradients.
        max_iterations: of the EM that finds where the chains start. Used without a network.
        tolerance: of the same EM. Used without a network.
        epochs: of the same EM for a story with a network, whose weights stay as EM leaves them unless they have a
            prior. Used with a network.
        network_rate: learning rate of the network's weights there. Used with a network.
    """

    chains: int = 4
    warmup: int = 500
    draws: int = 500
    target_accept: float = 0.8
    max_tree_depth: int = 10
    max_iterations: int = 200
    tolerance: float = 1e-5
    epochs: int | None = None
    network_rate: float = EMSettings().network_rate


MAY_BE_ZERO = {"warmup", "sweeps"}  # of the options that are whole numbers
BOUNDS: dict[str, dict[str, Any]] = {
    "held_out": {"least": 0, "below": 1},
    "target_accept": {"above": 0, "below": 1},
}
"""Bounds of the options that are no whole numbers, by the names of :func:`.real_number`; others are numbers from 0."""


def checked_settings(kind: type, options: Mapping[str, Any], refused: Mapping[str, str] | None = None) -> Any:
    """Return settings of ``kind`` with these options, whose types and ranges are checked.

    Args:
        kind: a class of settings, such as :class:`EMSettings`.
        refused: options of the engine that this backend has not, with the reason.

    Raises:
        UnknownNameError: there is no such option.
        ValueError: an option is not of the type or in the range that it must be, or is refused.
    """
    for name, value in options.items():
        if refused and name in refused:
            raise ValueError(f"{name}={value!r}: {refused[name]}")
        if name not in kind._fields:  # type: ignore[attr-defined]  # a NamedTuple class
            raise unknown_name("option", name, kind._fields)  # type: ignore[attr-defined]
    defaults = kind._field_defaults  # type: ignore[attr-defined]
    return kind(**{name: _checked(name, value, defaults[name]) for name, value in options.items()})


def _checked(name: str, value: Any, default: Any) -> Any:
    if default is None and value is None:
        return None
    if isinstance(default, bool):
        return truth_value(name, value)
    if isinstance(default, int) or default is None:
        return whole_number(name, value, 0 if name in MAY_BE_ZERO else 1)
    if isinstance(default, float):
        return real_number(name, value, **BOUNDS.get(name, {"least": 0}))
    return value


def checked_seed(seed: object) -> int:
    """Return the seed as a Python int.

    >>> checked_seed(7)
    7

    Args:
        seed: what was given; Python's and NumPy's integers are accepted.

    Raises:
        ValueError: the seed is no whole number from 0 to 2**63 − 1.
    """
    if isinstance(seed, int | np.integer) and not isinstance(seed, bool) and 0 <= seed <= LARGEST_SEED:
        return int(seed)
    advice = ""
    if seed is None:
        advice = "; the default 0 gives the same result every time, np.random.SeedSequence().entropy % 2**63 another"
    elif isinstance(seed, np.random.Generator | np.random.RandomState):
        advice = "; draw one with int(generator.integers(2**63))" if isinstance(seed, np.random.Generator) else ""
    raise ValueError(f"seed={seed!r}: a whole number from 0 to 2**63 - 1 is needed{advice}")


def refuse_unused(settings: Any, unused: Mapping[str, str]) -> None:
    """Refuse options that were changed from their default and would be ignored.

    Args:
        unused: the names of the options that would be ignored, with the reason and the mend; those that the engine
            does not have do not matter.

    Raises:
        ValueError: one of them has another value than its default.
    """
    for name, reason in unused.items():
        if name not in settings._fields:
            continue
        value = getattr(settings, name)
        if value != settings._field_defaults[name]:
            raise ValueError(f"{name}={value!r} would be ignored: {reason}")


def refuse_of_source(refuses: Callable[[str], str | None], **given: Any) -> None:
    """Refuse arguments that a fit to a source does not take.

    Args:
        refuses: of the source, :meth:`.Source.refuses`.
        given: the arguments, by name; None and False for those that are not given.

    Raises:
        ValueError: the source does not take one of them.
    """
    for name, value in given.items():
        if value is not None and value is not False and (reason := refuses(name)) is not None:
            shown = repr(value) if isinstance(value, str | int) else "…"
            raise ValueError(f"{name}={shown}: {reason}")


SWEPT = "sweeps take all tasks at once, in memory and on one device; leave it out, or a batch_size, devices or a scan"
NOTHING_OUT = "nothing is held out; leave it out, or give held_out, such as held_out=0.1"
SHRUNK = "the classifier's weights have a prior, which shrinks them; leave it out, or the classifier's prior="


def unused_by_em(
    *, in_batches: bool, has_weights: bool, holds_out: bool, has_prior: bool = False, in_parts: bool = False
) -> dict[str, str]:
    """Options of EM that a fit does not use, with the reason.

    Args:
        in_batches: whether the story is trained in minibatches.
        has_weights: whether its truth prior is a classifier that has weights.
        holds_out: whether annotations are held out.
        has_prior: whether a classifier's weights have a prior.
        in_parts: whether tasks are on several devices or on the disk.
    """
    swept = {"sweeps": SWEPT} if in_parts or in_batches else {}
    if not in_batches:
        reason = (
            "it belongs to training in minibatches, and this story is fitted by iterations over all data; "
            "leave it out, or give a batch_size, or a network as classifier"
        )
        unused = dict.fromkeys(("epochs", "network_rate", "held_out", "patience"), reason)
        unused["weight_decay"] = (
            f"{reason}; a logistic regression has a prior instead, cp.Classifier('logistic', prior=1.0)"
        )
        return unused | swept | {"warmup": f"NUTS' warmup needs method='nuts'; of EM {reason}"}
    reason = "it belongs to iterations over all data, and this story is trained in minibatches; give epochs"
    unused = swept | dict.fromkeys(("max_iterations", "tolerance", "halvings", "accelerate"), reason)
    if not has_weights:
        reason = "the story has no classifier; leave it out, or give a classifier"
        unused |= dict.fromkeys(("network_rate", "weight_decay"), reason)
    elif has_prior:
        unused["weight_decay"] = SHRUNK
    if not holds_out:
        unused["patience"] = NOTHING_OUT
    return unused


def unused_at_the_start(*, has_network: bool) -> dict[str, str]:
    """Options of the EM that finds where NUTS starts which a fit does not use, with the reason."""
    if has_network:
        reason = "with a network the EM that finds where the chains start is trained in epochs; give epochs"
        return dict.fromkeys(("max_iterations", "tolerance"), reason)
    reason = "the story has no network; leave it out, or give a network as classifier"
    return dict.fromkeys(("epochs", "network_rate"), reason)


def unused_by_svi(
    *, has_network: bool, has_weights: bool, is_point: bool, holds_out: bool, in_parts: bool = False
) -> dict[str, str]:
    """Options of SVI that a fit does not use, with the reason.

    Args:
        has_network: whether the story has a network.
        has_weights: whether it has a classifier's weights without a prior.
        is_point: whether the guide is a point.
        holds_out: whether annotations are held out.
        in_parts: whether tasks are in minibatches, on several devices or on the disk.
    """
    unused: dict[str, str] = {}
    if in_parts:
        unused["sweeps"] = SWEPT
    if not has_network:
        reason = "the story has no network; leave it out, or give a network as classifier"
        unused |= dict.fromkeys(("epochs", "warmup"), reason)
    if not (has_network or has_weights):
        unused["network_rate"] = "no classifier's weights are without a prior; leave it out, or give a network"
    if not has_weights:
        unused["weight_decay"] = "no classifier's weights are without a prior; leave it out, or give a network"
    if not (has_network and has_weights):
        reason = "no network's weights are without a prior; leave it out, or give a network"
        unused |= dict.fromkeys(("held_out", "patience"), reason)
    elif not holds_out:
        unused["patience"] = NOTHING_OUT
    if is_point:
        reason = "the guide is a point, so all its draws are equal; leave it out, or give another guide"
        unused |= dict.fromkeys(("particles", "draws", "sweeps"), reason)
    return unused
