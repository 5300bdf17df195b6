"""The true labels and the annotations: the plate ``task``, and in it the sites ``truth`` and ``annotation``."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpyro
from jax import Array
from numpyro.distributions import Distribution, constraints

from ...data import Annotations
from ...data.id_text import listing
from .abstaining import sample_rates, with_abstentions, with_rates
from .contract import StoryError
from .correlated_questions import KindsOfTasks
from .emissions import AnnotationLikelihood, Emission, select
from .mirrored import in_order
from .model_probabilities import model_evidence
from .of_levels import of_levels
from .own_classes import of_question
from .truth_prior import TruthPrior, log_probs_of


class Truth(Distribution):
    r"""True classes :math:`z_i \sim \text{Categorical}(e^{\text{log_probs}_i})` of the tasks, ready to be enumerated.

    Args:
        log_probs: ``(K,)`` for one prevalence, ``(N, K)`` for a prior by task; not normalised again, so that
            gradients with respect to tables are expected counts.
    """

    arg_constraints: ClassVar[dict] = {"log_probs": constraints.independent(constraints.real, 1)}
    has_enumerate_support = True
    pytree_data_fields = ("log_probs",)

    def __init__(self, log_probs: Array, n_tasks: int, *, validate_args: bool | None = None) -> None:
        self.log_probs = jnp.atleast_2d(log_probs)  # one row for all tasks stays one: it is scored once
        super().__init__((n_tasks,), (), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        """The classes, 0 to K − 1."""
        return constraints.integer_interval(0, self.log_probs.shape[-1] - 1)

    def enumerate_support(self, expand: bool = True) -> Array:
        """All classes, ``(K, 1)``, or ``(K, N)`` where expanded."""
        classes = jnp.arange(self.log_probs.shape[-1])[:, None]
        return jnp.broadcast_to(classes, (len(classes), *self.batch_shape)) if expand else classes

    def log_prob(self, value: Array) -> Array:
        """Log-probability of the classes ``value (..., N)``, or ``(..., 1)`` where enumerated."""
        value = jnp.asarray(value)
        by_task = select(self.log_probs, value)
        return jnp.broadcast_to(by_task, jnp.broadcast_shapes(by_task.shape, self.batch_shape))

    def sample(self, key: Array, sample_shape: tuple[int, ...] = ()) -> Array:
        """Classes of all tasks: ``sample_shape + (N,)``.

        Raises:
            StoryError: there is no random key, as where a log-likelihood is asked for and no value of the site given.
        """
        if key is None:
            raise StoryError(
                "the site 'truth' has no value here and no random key to draw one: give its draws, as those of "
                "Predictive(story, samples, infer_discrete=True), or take the program of cp.marginal(…), in which the "
                "truth is summed out; az.from_numpyro(mcmc, log_likelihood=False) leaves the likelihood out"
            )
        return jax.random.categorical(key, self.log_probs, shape=sample_shape + self.batch_shape)


class CorrelatedTruth(Truth):
    """True classes of units of which those of one task depend on each other.

    Densities sum them out together (:class:`.TruthsOfTasks`), unit by unit it has none.

    Args:
        kinds: of the tasks.
    """

    pytree_data_fields = ("kinds",)

    def __init__(self, kinds: KindsOfTasks, *, validate_args: bool | None = None) -> None:
        self.kinds = kinds
        super().__init__(kinds.marginal, len(kinds.task), validate_args=validate_args)

    def log_prob(self, value: Array) -> Array:
        """Refuse to say how probable single classes are.

        Raises:
            StoryError: always, with what to take instead.
        """
        raise StoryError(
            "truths of a task's questions that depend on each other have no density one by one: take the program of "
            "cp.marginal(…), in which they are summed out together, or crowdppl's own engines"
        )

    def sample(self, key: Array, sample_shape: tuple[int, ...] = ()) -> Array:
        """Classes of all units, drawn together by task: ``sample_shape + (N,)``."""
        nothing = self.kinds.given(jnp.zeros_like(self.log_probs))
        draw = nothing.drawn
        keys = jax.random.split(key, sample_shape) if sample_shape else key
        for _ in sample_shape:
            draw = jax.vmap(draw)
        return draw(keys)


@contextmanager
def tasks(annotations: Annotations, truth_prior: TruthPrior | Array | None = None) -> Iterator[Array]:
    """The plate ``task``, and in it the site ``truth``: the true class of each task, which engines enumerate.

    Evidence about single tasks (gold labels, another model's probabilities: ``annotations.evidence``, log-weights
    ``(N, K)``) is added as the factor ``evidence``. A batch that stands for a larger population is scaled up to it.
    Where there are abstentions the site ``abstention`` has their rates: :func:`.sample_rates`. Where models'
    probabilities of the classes are given, the sites ``model_slope`` and ``model_bias`` say how far each is believed,
    and the factor ``probabilities`` has what they tell: :func:`.model_evidence`.

    Args:
        truth_prior: a prior, or the log-probabilities that :func:`class_log_probs` returned, where the
            story needs them elsewhere too; a :class:`Prevalence` by default.

    Raises:
        StoryError: it stands within another plate that takes the last dimension, such as that of the workers.
    """
    log_probs = log_probs_of(annotations, truth_prior)
    n_tasks = annotations.n_tasks
    rates = with_rates(sample_rates(annotations)) if annotations.abstains else nullcontext()
    told = None if annotations.model_scores is None else model_evidence(annotations)
    try:
        plate = numpyro.plate("task", annotations.population or n_tasks, subsample_size=n_tasks, dim=-1)
    except AssertionError:  # another has the dimension
        raise StoryError(
            "cp.tasks(…) stands within another plate, such as that of the workers: close that plate before, so that "
            "tasks are no dimension of it"
        ) from None
    with rates, plate:
        truths = CorrelatedTruth(log_probs) if isinstance(log_probs, KindsOfTasks) else Truth(log_probs, n_tasks)
        truth = numpyro.sample("truth", truths, infer={"enumerate": "parallel"})
        if annotations.evidence is not None:
            numpyro.factor("evidence", select(annotations.evidence, truth))
        if told is not None:
            numpyro.factor("probabilities", select(told, truth))
        yield truth


def observe(truth: Array, emission: Emission, annotations: Annotations) -> Array:
    """The site ``annotation``: the annotations, observed, or drawn where ``annotations.label`` is None.

    Args:
        truth: what :func:`tasks` yields.
        emission: of the K classes; the orders of comparisons and rates of abstention are put over it where there are
            any.
        annotations: who annotated what.

    Raises:
        StoryError: the emission is none, or its arrays are not of these workers, tasks and classes.
    """
    if not isinstance(emission, Emission):
        raise StoryError(
            f"observe() was given {'an array' if isinstance(emission, Array) else repr(emission)} as emission; an "
            "Emission is needed, such as cp.Confusion(table) of a table (workers, classes, classes)"
        )
    if "check" in vars(type(emission)):  # a class that inherits it may read its arrays in another way
        emission.check(annotations)
    if annotations.kind.own is not None:
        emission = of_question(emission, annotations)
    if annotations.mirrored is not None:
        emission = in_order(emission, annotations)
    if annotations.abstains:
        emission = with_abstentions(emission)
    if annotations.scored:
        emission = of_levels(emission, annotations)
    return numpyro.sample("annotation", AnnotationLikelihood(truth, emission, annotations), obs=annotations.label)


def named_workers(annotations: Annotations) -> int:
    """The number of workers J.

    Raises:
        StoryError: no worker is named, as in counts by task.
    """
    if annotations.worker is None:
        raise StoryError(
            "this story follows each worker, and the annotations name none; bring them with a worker column, or fit "
            "annotator_groups with membership='answer', which needs no names"
            + "; cp.fit('auto', cp.read(…, preferences=True)) ranks the items"
            * (annotations.sides is not None)
        )
    return annotations.n_workers


def needed_features(annotations: Annotations, what: str, instead: str = "") -> Any:
    """The tasks' features, ``(N, ...)``, as the annotations have them.

    Args:
        what: what needs them, for the message.
        instead: what else would do, after a comma.

    Raises:
        StoryError: the tasks have none.
    """
    if annotations.features is None:
        of, made = "tasks", "from_frame(frame, features={task: vector, …})"
        if annotations.sides is not None:
            of, made = "prompts", "from_comparisons(frame, prompt=column, features={prompt: vector, …})"
        raise StoryError(
            f"{what} needs features of the {of}, and the annotations have none; give them with "
            f"Annotations.{made}{instead}"
        )
    return annotations.features


def ordered_classes(annotations: Annotations, what: str = "this story") -> int:
    """The number of classes K, of a story that uses their order; two classes have one either way.

    Args:
        what: uses the order.

    Raises:
        StoryError: there are more, and they have no order.
    """
    if annotations.kind.own is not None:
        raise StoryError(
            f"{what} uses the order of the classes, and questions have classes of their own: "
            f"{_questions_in_order(annotations)}"
        )
    if annotations.n_classes > 2 and not annotations.kind.in_order:
        listed = listing(annotations.classes, 4)
        raise StoryError(
            f"{what} uses the order of the classes, and {listed} have none; make the annotations with "
            "ordered=[...], all classes from the least to the greatest, or with ordered=True where they are whole "
            "numbers; dawid_skene needs no order"
        )
    return annotations.n_classes


def _questions_in_order(annotations: Annotations) -> str:
    """Advice on what can be fitted: questions of ordered or two classes alone, and by which story all together."""
    each = [(name, *annotations.question_classes(name)) for name in annotations.questions]
    in_order = [name for name, _, kind in each if kind.in_order]
    suiting = in_order + [name for name, classes, kind in each if len(classes) == 2 and not kind.in_order]
    ordinal = "graded_response, ordinal_dawid_skene or " if len(suiting) == len(each) else ""
    together = f"fit all together by {ordinal}dawid_skene, which needs no order"
    if not suiting:
        return together
    others = f", and likewise {', '.join(map(repr, suiting[1:]))}" if len(suiting) > 1 else ""
    return f"fit the question {suiting[0]!r} alone, annotations.of_question({suiting[0]!r}){others}; or {together}"


def two_classes(annotations: Annotations) -> None:
    """Check that there are two classes.

    Raises:
        StoryError: there are more.
    """
    if annotations.n_classes != 2:
        raise StoryError(
            f"this story is of two classes, the annotations have {annotations.n_classes}: "
            f"{listing(annotations.classes, 5)}; fit dawid_skene or one_coin"
        )
