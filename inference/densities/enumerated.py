r"""A story run with its true labels enumerated, and its density at given parameters.

The story is run with ``truth`` set to all classes at once, ``(K, 1)``; the sites in the plate ``task`` then score every
task under every class, :math:`\log p(z_i = k, y_i \mid \theta)`. Engines and views compute nothing else of a story.
"""

import math
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import reduce
from itertools import accumulate
from operator import attrgetter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import gammaln, logsumexp
from jax.sharding import PartitionSpec
from numpyro import handlers
from numpyro.distributions import Dirichlet, ExpandedDistribution, Independent
from numpyro.primitives import Messenger

from ...data import Annotations
from ...data.padding import PaddedAnnotations, real_tasks, task_copies
from ...data.sharding import SHARD, ShardedAnnotations
from ...models import AnnotationLikelihood, Emission, Story, StoryError
from ...models.parts.classifier import training
from ...models.parts.contract import dim_of_plate
from ...models.parts.correlated_questions import TruthsOfTasks
from ...models.parts.kernels import safe_log
from ...models.parts.truth import CorrelatedTruth, Truth
from .model import Model
from .padded_sites import PaddingIsProper, PaddingWeighsNothing, is_of_padding, is_table

UNROLLED = 32  # classes at the most for which sums over them are written out


Parameters = dict[str, Array]


Site = dict[str, Any]


class Latent(NamedTuple):
    """The quantities that a density sums out, as ones and zeros or as probabilities."""

    labels: Array  # (N, K), or of a task that stands for several alike how many of these have each class
    kinds: Array | None  # (T, M) of the tasks whose truths depend on each other


class Density(NamedTuple):
    """A story's density at some parameters, with every task scored under every class."""

    log_joint: Array  # (N, K) log p(z_i = k, y_i | θ)
    log_prior: Array  # () log p(θ) with regularisers, in the parameters' own space
    log_prior_in_log_odds: Array  # () the same with the probability tables in log-odds
    scale: Array  # () tasks in the population for each task here
    truth_prior: Array  # (K,) or (N, K) log-probabilities of the classes before any annotation
    likelihood: AnnotationLikelihood
    running: Parameters  # statistics that a classifier keeps while it is trained
    together: TruthsOfTasks | None = None  # where truths depend on each other: `log_joint` is given the other units'
    copies: Array | None = None  # (N,) how many tasks that look alike each stands for; None for one

    @property
    def log_likelihood(self) -> Array:
        r"""Of each task, the truth summed out: :math:`\log \sum_k p(z_i = k, y_i \mid \theta)`, ``(N,)``.

        Where truths of several units depend on each other, it is given the annotations of the others.
        """
        return log_sum_exp(self.log_joint)

    @property
    def total(self) -> Array:
        """The log-likelihood of all tasks, ``()``."""
        if self.together is not None:
            return self.together.log_likelihood.sum()
        return sum_over_tasks(self.log_likelihood, self.copies)

    @property
    def posterior(self) -> Array:
        r""":math:`P(z_i = k \mid y_i, \theta)`, ``(N, K)``."""
        return jax.nn.softmax(self.log_joint, axis=-1)

    @property
    def log_posterior(self) -> Array:
        """Log-posterior of the parameters up to a constant, ``()``."""
        return self.scale * self.total + self.log_prior

    @property
    def log_posterior_in_log_odds(self) -> Array:
        """Log-posterior of the parameters with the probability tables in log-odds, ``()``: EM finds its mode."""
        return self.scale * self.total + self.log_prior_in_log_odds

    @property
    def expected(self) -> "Latent":
        """The posterior of what is summed out."""
        if self.together is not None:
            return Latent(self.posterior, jax.nn.softmax(self.together.of_kinds, axis=-1))
        return Latent(self.posterior if self.copies is None else self.copies[:, None] * self.posterior, None)

    def latent(self, key: Array, truth: Array) -> "Latent":
        """Draw the quantities that are summed out from their posterior given the tasks' classes, ``(N,)``."""
        labels = jax.nn.one_hot(truth, self.log_joint.shape[-1])
        if self.together is None:
            return Latent(labels, None)
        kinds = self.together.kinds.kinds_given(key, truth)
        return Latent(labels, jax.nn.one_hot(kinds, len(self.together.kinds.log_share)))

    def latent_by(self, key: Array, scores: Array) -> "Latent":
        """Draw labels with probabilities in proportion to the exponentials of scores ``(N, K)``, by task."""
        if self.copies is None:
            return self.latent(key, drawn_classes(key, scores))
        return Latent(jax.random.multinomial(key, self.copies, jax.nn.softmax(scores, axis=-1)), None)

    def complete(self, latent: "Latent") -> Array:
        """The log-density of the annotations together with what is summed out, ``()``."""
        scores = self.log_joint if self.together is None else self.together.scores
        found = jnp.where(latent.labels > 0, latent.labels * scores, 0.0).sum()
        if self.together is None or latent.kinds is None:
            return found
        return found + self.together.kinds.log_prob(latent.labels, latent.kinds)

    def drawn(self, key: Array) -> Array:
        """Classes of the tasks, ``(N,)``, drawn from their posterior."""
        return drawn_classes(key, self.log_joint) if self.together is None else self.together.drawn(key)


def density(
    model: Model, parameters: Parameters, annotations: Annotations, key: Array | None = None, *, train: bool = False
) -> Density:
    """Run the story at ``parameters`` (by site) with the true labels enumerated.

    Args:
        parameters: by site; sites that are not among them are drawn, or start as the story says.
        key: for what is drawn, and for dropout.
        train: let classifiers run in training mode.
    """
    with training() if train else nullcontext():
        sites, by_task = run_enumerated(model, annotations, site_values(parameters), key)
    priors = [site for site in sites.values() if site["type"] == "sample"]
    zero = jnp.zeros(())
    scores = scores_of_tasks(model, annotations, sites, by_task)
    together = together_in(by_task, scores)
    return Density(
        scores if together is None else together.log_joint,
        sum((_log_prob(site).sum() for site in priors), start=zero),
        sum((_in_log_odds(site) if is_table(site) else _log_prob(site).sum() for site in priors), start=zero),
        jnp.asarray(scale_of(by_task)),
        by_task["truth"]["fn"].log_probs,
        by_task["annotation"]["fn"],
        {name: site["value"]["value"] for name, site in sites.items() if site["type"] == "mutable"},
        together,
        task_copies(annotations),
    )


def sum_over_tasks(by_task: Array, copies: Array | None) -> Array:
    """Sum values of tasks ``(N,)``, each as often as there are tasks that look like it."""
    return by_task.sum() if copies is None else (copies * by_task).sum()


def emission_at(model: Model, parameters: Parameters, annotations: Annotations) -> Emission:
    """Return the emission of the story at ``parameters`` (by site), without the probabilities of its annotations."""
    _, by_task = run_enumerated(model, annotations, site_values(parameters))
    emission: Emission = by_task["annotation"]["fn"].emission
    return emission


def site_values(parameters: Parameters) -> Callable[[Site], Any]:
    """The values of a run's sites, in the form that each kind of site has them."""

    def value(site: Site) -> Any:
        found = parameters.get(site["name"])
        return {"value": found} if site["type"] == "mutable" and found is not None else found

    return value


def run_enumerated(
    model: Model, annotations: Annotations, value: Callable[[Site], Any], key: Array | None = None
) -> tuple[dict[str, Site], dict[str, Site]]:
    """Sites of the parameters, and sites that score the tasks, of the story run with the ``value`` of each site."""
    given = handlers.substitute(substitute_fn=value)
    with handlers.trace() as sites, given, handlers.seed(rng_seed=jax.random.key(0) if key is None else key):
        by_task = task_sites(model, annotations)
    return sites, by_task


def task_sites(model: Model, annotations: Annotations, *, proper: bool = False) -> dict[str, Site]:
    """Run the story with ``truth`` at all classes; hide what it says of single tasks from outer handlers, return it.

    Args:
        proper: give parameters of padded tasks and workers a proper density, for samplers, instead of none.
    """
    weighing = PaddingIsProper if proper else PaddingWeighsNothing
    padding = weighing(annotations) if isinstance(annotations, PaddedAnnotations) else nullcontext()
    scored = ScoredTasks(annotations.n_classes)
    with padding, scored:
        model(annotations)
    check_contract(model.story, scored.sites)
    return scored.sites


class ScoredTasks(Messenger):
    """Sets ``truth`` to all classes at once, and keeps the sites that score the tasks from the handlers around it.

    Args:
        n_classes: K.

    Attributes:
        sites: that score the tasks, by name.
    """

    def __init__(self, n_classes: int) -> None:
        super().__init__(None)
        self.sites: dict[str, Site] = {}
        with jax.ensure_compile_time_eval():  # numbers that `select` sees while a program is compiled
            self._classes = jax.device_put(np.arange(n_classes, dtype=np.int32)[:, None])  # which compiles nothing

    def process_message(self, msg: Site) -> None:
        """Take a site that scores the tasks.

        Raises:
            StoryError: there are two of one name.
        """
        if msg["type"] != "sample" or not (msg["name"] == "truth" or msg["is_observed"]) or is_of_padding(msg):
            return
        if not is_of_tasks(msg):
            return
        if msg["name"] in self.sites:
            raise StoryError(f"the story has two sites {msg['name']!r} in the plate 'task'; give one another name")
        if msg["name"] == "truth":
            msg["value"] = self._classes
        msg["stop"] = True
        self.sites[msg["name"]] = msg


def check_contract(story: Story, sites: Mapping[str, Site]) -> None:
    """Check that a story's sites have what the engines need.

    Args:
        sites: of a run of it, in the plate ``task``.

    Raises:
        StoryError: there is no site ``truth`` or ``annotation`` in the plate ``task``, or it is of another
            distribution than that of the helper which makes it.
    """
    named = f"the story {getattr(story, '__name__', repr(story))!r}"
    reads = "a story reads: with cp.tasks(annotations, truth_prior) as truth: cp.observe(truth, emission, annotations)"
    for name, kind, helper in (
        ("truth", Truth, "cp.tasks(annotations, truth_prior) as truth"),
        ("annotation", AnnotationLikelihood, "cp.observe(…)"),
    ):
        if name not in sites:
            raise StoryError(
                f"{named} has no site {name!r} in the plate 'task', which the helper {helper} makes; {reads}"
            )
        if not isinstance(sites[name]["fn"], kind):
            raise StoryError(
                f"{named} samples the site {name!r} from a distribution of its own; the helper {helper} makes it, so "
                f"that engines sum the truth out, and gold labels, evidence and abstentions enter; {reads}"
            )


def is_of_tasks(site: Site) -> bool:
    """Return whether a site stands in the plate ``task``."""
    return any(frame.name == "task" for frame in site.get("cond_indep_stack", ()))


def is_latent(site: Site) -> bool:
    """Return whether the story samples the site, or has it as a parameter to optimise."""
    return site["type"] == "param" or (site["type"] == "sample" and not site["is_observed"])


def site_dims(site: Site) -> tuple[str, ...]:
    """Names of the dimensions of a site's value: its plates, then its ``event_dims`` where the story names them."""
    frames = sorted(site.get("cond_indep_stack", ()), key=attrgetter("dim"))
    plates = tuple(dim_of_plate(frame.name) for frame in frames)
    n_event = jnp.ndim(site["value"]) - len(plates)
    events = tuple(site.get("infer", {}).get("event_dims", ()))
    named = events if len(events) == n_event else tuple(f"{site['name']}_dim_{i}" for i in range(n_event))
    return plates + named


def scale_of(by_task: dict[str, Site]) -> Array | float:
    """Tasks in the population for each task here: what a batch's log-likelihood is multiplied by."""
    scale = by_task["truth"]["scale"]
    return 1.0 if scale is None else scale


def together_in(by_task: dict[str, Site], scores: Array) -> TruthsOfTasks | None:
    """Return the truths that depend on each other, given scores of the tasks' classes ``(N, K)``; None of others."""
    truth = by_task["truth"]["fn"]
    return truth.kinds.given(scores) if isinstance(truth, CorrelatedTruth) else None


def log_likelihood_of_tasks(by_task: dict[str, Site], scores: Array) -> Array:
    """Of each task, the truth summed out, ``(N,)``; of truths that depend on each other equal parts of their sum."""
    together = together_in(by_task, scores)
    return log_sum_exp(scores) if together is None else together.spread


def scores_of_tasks(
    model: Model, annotations: Annotations, sites: Mapping[str, Site], by_task: dict[str, Site]
) -> Array:
    """Log-joint of each task's annotations and each of its classes, ``(N, K)``, computed where the tasks are.

    Of truths that depend on each other it has the annotations' part alone, without the prior.

    Args:
        annotations: the data. Of those over several devices each device scores its own tasks, at the parameters that
            all of them have; what it has of a parameter by task is that of its own tasks. Gradients are summed over the
            devices by JAX.
        sites: of a run of the story on them, with the parameters' values.
        by_task: those of them that score the tasks.
    """
    if not isinstance(annotations, ShardedAnnotations):
        return sum_scores(by_task, annotations)
    values, specs = {}, {}
    for name, site in sites.items():
        if is_latent(site) or site["type"] == "mutable":
            values[name] = site["value"]["value"] if site["type"] == "mutable" else site["value"]
            specs[name] = PartitionSpec(*(SHARD if dim == "task" else None for dim in site_dims(site)))

    def of_block(model: Model, values: Parameters, annotations: ShardedAnnotations) -> Array:
        block = annotations.block(jax.lax.axis_index(SHARD))
        with handlers.block():  # samplers and guides around this have seen the sites
            _, by_task = run_enumerated(model, block, site_values(values))
        return sum_scores(by_task, block)

    over = jax.shard_map(
        of_block,
        mesh=annotations.mesh,
        in_specs=(PartitionSpec(), specs, annotations.specs),
        out_specs=PartitionSpec(SHARD),
    )
    return over(model, values, annotations)


def sum_scores(by_task: dict[str, Site], annotations: Annotations) -> Array:
    """Log-joint of each task's annotations and each of its classes, ``(N, K)``, summed over the sites.

    A padded task's classes are equally likely, and its likelihood is one.
    """
    scored = [site for site in by_task.values() if not isinstance(site["fn"], CorrelatedTruth)]
    total = sum(site["fn"].log_prob(site["value"]) for site in scored)
    is_real = real_tasks(annotations)
    if is_real is not None:
        total = jnp.where(is_real, total, -math.log(annotations.n_classes))
    return jnp.broadcast_to(total, (annotations.n_classes, annotations.n_tasks)).T


@jax.custom_jvp
def log_sum_exp(scores: Array) -> Array:
    """Over the classes, ``(N, K)`` to ``(N,)``: class by class, which XLA on CPU does faster than a reduce."""
    if scores.shape[-1] > UNROLLED:
        return logsumexp(scores, axis=-1)
    columns = [scores[:, k] for k in range(scores.shape[-1])]
    peak = jax.lax.stop_gradient(reduce(jnp.maximum, columns))
    return peak + jnp.log(reduce(jnp.add, [jnp.exp(column - peak) for column in columns]))


@log_sum_exp.defjvp
def _slope_of_log_sum_exp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    """The classes' shares as weights, which are one exponential each, class by class again.

    As one product and sum over the classes, XLA compiles the derivative of this wrongly.
    """
    (scores,), (tangent,) = primals, tangents
    total = log_sum_exp(scores)
    if scores.shape[-1] > UNROLLED:
        return total, (jax.nn.softmax(scores, axis=-1) * tangent).sum(-1)
    classes = range(scores.shape[-1])
    return total, reduce(jnp.add, [jnp.exp(scores[:, k] - total) * tangent[:, k] for k in classes])


def drawn_classes(key: Array, scores: Array) -> Array:
    """One class of each task, ``(N,)``, with probabilities in proportion to the exponentials of scores ``(N, K)``.

    It is the class at one uniform number a task, which takes half the time of one number a class. Sums grow class by
    class, so that those of a class of probability 0 are exactly those before it, and it is never drawn.
    """
    if scores.shape[-1] > UNROLLED:
        return jax.random.categorical(key, scores)
    total = log_sum_exp(scores)
    sums = list(accumulate(jnp.exp(scores[:, k] - total) for k in range(scores.shape[-1])))
    number = jax.random.uniform(key, total.shape) * sums[-1]
    return sum((number >= upto for upto in sums[:-1]), start=jnp.zeros(total.shape, int))


def _log_prob(site: Site) -> Array:
    log_prob = site["fn"].log_prob(site["value"])
    return log_prob if site["scale"] is None else site["scale"] * log_prob


def _in_log_odds(table: Site) -> Array:
    r"""Log-density of a table's rows in log-odds, :math:`\log p(\theta) + \sum_k \log \theta_k`.

    Of a Dirichlet it is written with :math:`\alpha` instead of :math:`\alpha - 1` and 1: exact near zero too.
    """
    value, rows = table["value"], table["fn"]
    logs = safe_log(value)
    while isinstance(rows, ExpandedDistribution | Independent):
        rows = rows.base_dist
    if not isinstance(rows, Dirichlet):  # a density of the story's own
        volume = logs.sum(tuple(range(-table["fn"].event_dim, 0)))
        return (_log_prob(table) + (volume if table["scale"] is None else table["scale"] * volume)).sum()
    concentration = rows.concentration
    norm = gammaln(concentration.sum(-1)) - gammaln(concentration).sum(-1)
    by_row = jnp.broadcast_to(norm + (concentration * logs).sum(-1), value.shape[:-1])
    by_draw = by_row.sum(tuple(range(1 - table["fn"].event_dim, 0)))
    return (by_draw if table["scale"] is None else table["scale"] * by_draw).sum()
