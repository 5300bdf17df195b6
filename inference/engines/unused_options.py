"""Options that an engine has and a fit would not use: they are refused instead of ignored."""

from collections.abc import Callable, Mapping
from typing import Any

from ..densities.model import Model


def refuse_unused(settings: Any, unused: Mapping[str, str]) -> None:
    """Refuse options that were changed from their default and would be ignored.

    Args:
        settings: of an engine, a NamedTuple.
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


def unused_by_em(*, in_batches: bool, has_weights: bool, holds_out: bool) -> dict[str, str]:
    """Options of EM that a fit does not use, with the reason.

    Args:
        in_batches: whether the story is trained in minibatches.
        has_weights: whether its truth prior is a classifier that has weights.
        holds_out: whether annotations are held out.
    """
    if not in_batches:
        reason = (
            "it belongs to training in minibatches, and this story is fitted by iterations over all data; "
            "leave it out, or give a batch_size, or a network as classifier"
        )
        unused = dict.fromkeys(("epochs", "network_rate", "held_out", "patience"), reason)
        return unused | {"warmup": f"NUTS' warmup needs method='nuts'; of EM {reason}"}
    reason = "it belongs to iterations over all data, and this story is trained in minibatches; give epochs"
    unused = dict.fromkeys(("max_iterations", "tolerance", "halvings", "accelerate"), reason)
    if not has_weights:
        unused["network_rate"] = "the story has no classifier; leave it out, or give a classifier"
    if not holds_out:
        unused["patience"] = "nothing is held out; leave it out, or give held_out, such as held_out=0.1"
    return unused


def unused_at_the_start(*, has_network: bool) -> dict[str, str]:
    """Options of the EM that finds where NUTS starts which a fit does not use, with the reason."""
    if has_network:
        reason = "with a network the EM that finds where the chains start is trained in epochs; give epochs"
        return dict.fromkeys(("max_iterations", "tolerance"), reason)
    reason = "the story has no network; leave it out, or give a network as classifier"
    return dict.fromkeys(("epochs", "network_rate"), reason)


def unused_by_svi(*, has_network: bool, has_weights: bool, is_point: bool) -> dict[str, str]:
    """Options of SVI that a fit does not use, with the reason.

    Args:
        has_network: whether the story has a network.
        has_weights: whether it has a classifier's weights without a prior.
        is_point: whether the guide is a point.
    """
    unused: dict[str, str] = {}
    if not has_network:
        unused["epochs"] = "the story has no network; leave it out, or give a network as classifier"
    if not (has_network or has_weights):
        unused["network_rate"] = "no classifier's weights are without a prior; leave it out, or give a network"
    if is_point:
        reason = "the guide is a point, so all its draws are equal; leave it out, or give another guide"
        unused |= dict.fromkeys(("particles", "draws"), reason)
    return unused


def has_network(model: Model) -> bool:
    """Return whether the truth prior is a network, which is trained in minibatches."""
    return model.classifier is not None and model.classifier.is_network


def has_weights(model: Model) -> bool:
    """Return whether the truth prior is a classifier that has weights: a network or a logistic regression."""
    return model.classifier is not None and (model.classifier.is_network or model.classifier.is_linear)
