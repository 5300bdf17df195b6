"""Training by the loop of the stories: a program of the same contract, whose score need be no likelihood."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...data import AnnotationError, Annotations
from ...data.padding import anonymous
from ...models import Classifier, StoryError
from ...models.parts.classifier import Network
from ...models.parts.truth import needed_features
from ..densities.model import Model
from ..densities.ready_programs import use_program_cache
from ..engines import same_fit
from ..engines.checkpoints import NO_CHECKPOINTS, NOT_KEPT, CheckpointOptions, opened
from ..engines.em import trained_in_batches
from ..engines.finding import Finding
from ..engines.registry import ENGINES
from ..engines.settings import checked_seed
from ..findings.look import look_at
from ..findings.register import Run


class Trained(NamedTuple):
    """Result of training, by the names that :class:`.ByRule` has for it."""

    weights: dict[str, np.ndarray]  # all parameters by site, weights and running statistics of a network among them
    history: np.ndarray
    findings: tuple[Finding, ...]  # on the training


def train(
    program: Callable[..., None],
    annotations: Annotations,
    hyperparameters: Mapping[str, Any],
    *,
    seed: int = 0,
    progress: bool = True,
    checkpoints: CheckpointOptions = NOT_KEPT,
    **options: Any,
) -> Trained:
    """Maximise what a program scores, in minibatches where its ``truth_prior`` is a network.

    Args:
        program: of the contract of a story; of module level, so that its compiled steps serve again.
        annotations: the data; names and gold labels are not looked at.
        seed: of the start and the batches.
        options: of EM, such as ``epochs``, ``batch_size``, ``network_rate``.

    Raises:
        ValueError: an option that cannot be.
        StorageError: as of :func:`.checkpoints.opened`.
    """
    engine = ENGINES["em"]
    model, settings = Model(program, dict(hyperparameters)), engine.checked(options)
    if settings.warmup is None and trained_in_batches(model, settings):
        settings = settings._replace(warmup=1)  # what is learnt from is given, so that votes need not lead
    use_program_cache()
    data = anonymous(annotations.as_fitted())
    seed, keep = checked_seed(seed), NO_CHECKPOINTS
    if checkpoints.folder is not None:
        about = same_fit.about_fit(
            model,
            data=same_fit.about_data(data),
            method=engine.name,
            options={name: same_fit.described(value) for name, value in settings._asdict().items()},
            seed=seed,
        )
        keep = opened(checkpoints, about)
    with keep.guarded():
        outcome = engine.run(
            model, jax.tree.map(jnp.asarray, data), jax.random.key(seed), settings, progress=progress, keep=keep
        )
        keep.write()
    found = {site: value[0, 0] for site, value in outcome.draws.items()} | dict(outcome.fixed)
    findings = look_at(Run(outcome, engine.name, settings._asdict()))
    return Trained({name: np.asarray(value) for name, value in found.items()}, outcome.history, findings)


def refuse_nameless(why: str, annotations: Annotations) -> None:
    """Refuse annotations without workers' names, and abstentions.

    Args:
        why: what is done for the workers, for the message.

    Raises:
        AnnotationError: no worker is named, or there are abstentions.
    """
    if annotations.worker is None or annotations.abstains:
        raise AnnotationError(
            f"{why}, and needs their names and no abstentions; leave these out by annotations.of_classes()"
        )


def checked_network(name: str, annotations: Annotations, classifier: Network | Classifier | None) -> Classifier:
    """The classifier, where there is one and the tasks have the features that it needs.

    Raises:
        StoryError: there is none, the tasks have no features, or it gives no logits.
    """
    if classifier is None:
        raise StoryError(f"{name} learns a classifier of the tasks and labels by it: give classifier=, such as 'mlp'")
    needed_features(annotations, "the classifier")
    made = classifier if isinstance(classifier, Classifier) else Classifier(classifier)
    made.check(annotations)
    return made
