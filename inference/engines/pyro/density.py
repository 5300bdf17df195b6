r"""A Pyro story's densities with the true labels summed out, written once for all engines.

The story is run with ``truth`` set to all classes at once, ``(K, 1)``, which is what enumeration means; the sites in
the plate ``task`` then score every task under every class, :math:`\log p(z_i = k, y_i \mid \theta)`.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from pyro.distributions import Dirichlet
from pyro.poutine.messenger import Messenger
from pyro.poutine.util import site_is_subsample
from torch import Tensor
from torch.distributions import Transform, biject_to

from ....data import Annotations
from ....models.parts.emissions import SMALLEST
from ....models.pyro import running
from ....models.pyro.derived import without_derived
from ...densities.model import Model

Parameters = dict[str, Tensor]
Site = dict[str, Any]


class Density(NamedTuple):
    """A story's density at some parameters, with every task scored under every class."""

    log_joint: Tensor  # (N, K) log p(z_i = k, y_i | θ)
    log_prior: Tensor  # () log p(θ) with regularisers, in the parameters' own space
    log_prior_in_log_odds: Tensor  # () the same with the probability tables in log-odds
    scale: float  # tasks in the population for each task here
    truth_prior: Tensor  # (K,) or (N, K) log-probabilities of the classes before any annotation

    @property
    def log_likelihood(self) -> Tensor:
        r"""Of each task, the truth summed out: :math:`\log \sum_k p(z_i = k, y_i \mid \theta)`, ``(N,)``."""
        return torch.logsumexp(self.log_joint, dim=-1)

    @property
    def posterior(self) -> Tensor:
        r""":math:`P(z_i = k \mid y_i, \theta)`, ``(N, K)``."""
        return torch.softmax(self.log_joint, dim=-1)

    @property
    def log_posterior(self) -> Tensor:
        """Log-posterior of the parameters up to a constant, ``()``."""
        return self.scale * self.log_likelihood.sum() + self.log_prior

    @property
    def log_posterior_in_log_odds(self) -> Tensor:
        """Log-posterior of the parameters with the probability tables in log-odds, ``()``: EM finds its mode."""
        return self.scale * self.log_likelihood.sum() + self.log_prior_in_log_odds


def density(
    model: Model, parameters: Mapping[str, Tensor], annotations: Annotations, inputs: Any = None, *, train: bool = False
) -> Density:
    """Run the story at ``parameters`` (by site) with the true labels enumerated.

    Args:
        model: a Pyro story.
        parameters: by site; all that the story samples but ``truth``.
        annotations: the data, as tensors.
        inputs: of a classifier, where they are not the annotations' features.
        train: let classifiers run in training mode.
    """
    with running(inputs, train=train), without_derived(), _Enumerated(parameters, annotations) as run:
        model(annotations)
    by_task = {name: site for name, site in run.sites.items() if _scores_tasks(site)}
    log_joint = sum(site["fn"].log_prob(site["value"]) for site in by_task.values())
    priors = [site for name, site in run.sites.items() if name not in by_task]
    zero = log_joint.new_zeros(())
    return Density(
        log_joint.reshape(annotations.n_classes, annotations.n_tasks).T,
        sum((_log_prob(site).sum() for site in priors), start=zero),
        sum((_in_log_odds(site) if _is_table(site) else _log_prob(site).sum() for site in priors), start=zero),
        float(by_task["truth"]["scale"]),
        run.truth_prior,
    )


class Anatomy(NamedTuple):
    """What a story's parameters are, and how engines may move them."""

    tables: tuple[str, ...]  # Dirichlet sites, whose M-step is exact
    bijections: dict[str, Transform]  # from the reals, for every other parameter
    all_bijections: dict[str, Transform]  # from the reals, for every parameter
    has_factors: bool  # something besides the priors touches the parameters

    def to_reals(self, parameters: Mapping[str, Tensor]) -> Parameters:
        """Return the parameters that are no probability tables, unconstrained."""
        return {name: bijection.inv(parameters[name]) for name, bijection in self.bijections.items()}

    def from_reals(self, reals: Mapping[str, Tensor]) -> Parameters:
        """Return unconstrained parameters in their own space."""
        return {name: self.bijections[name](real) for name, real in reals.items()}


def anatomy(model: Model, parameters: Mapping[str, Tensor], annotations: Annotations, inputs: Any = None) -> Anatomy:
    """Run the story once, at any parameters, and look at its sites."""
    with torch.no_grad(), running(inputs), without_derived(), _Enumerated(parameters, annotations) as run:
        model(annotations)
    latents = {name: site for name, site in run.sites.items() if not site["is_observed"] and name != "truth"}
    tables = tuple(name for name, site in latents.items() if _is_table(site))
    bijections = {name: biject_to(site["fn"].support) for name, site in latents.items()}
    return Anatomy(
        tables,
        {name: bijection for name, bijection in bijections.items() if name not in tables},
        bijections,
        any(site["is_observed"] and not _scores_tasks(site) for site in run.sites.values()),
    )


class _Enumerated(Messenger):
    """Give every sample statement the parameter of its name, and ``truth`` all classes, and keep the sites.

    A parameter statement (a module's weight) gets its own tensor, so that nothing reaches Pyro's store.
    """

    def __init__(self, parameters: Mapping[str, Tensor], annotations: Annotations) -> None:
        super().__init__()
        self.parameters, self.sites = parameters, dict[str, Site]()
        self.classes = torch.arange(annotations.n_classes, device=annotations.task.device)[:, None]
        self.truth_prior = torch.empty(0)

    def _pyro_sample(self, msg: Any) -> None:
        if site_is_subsample(msg) or msg["infer"].get("_deterministic"):
            return
        name = msg["name"]
        if name == "truth":
            msg["value"] = self.classes
            self.truth_prior = msg["fn"].log_probs
        elif not msg["is_observed"]:
            msg["value"] = self.parameters[name]
        self.sites[name] = msg
        msg["stop"] = True

    def _pyro_param(self, msg: Any) -> None:
        msg["value"], msg["done"], msg["stop"] = msg["args"][1], True, True


class LocalParameters(Messenger):
    """Give every parameter statement the tensor that it starts from, which is the module's own weight.

    Without it the weights would stay in Pyro's global store, where another fit would find them.
    """

    def _pyro_param(self, msg: Any) -> None:
        msg["value"], msg["done"], msg["stop"] = msg["args"][1], True, True


def _scores_tasks(site: Site) -> bool:
    """Whether a site is in the plate of the tasks, and no parameter that each task has of its own."""
    in_plate = any(frame.name == "task" for frame in site["cond_indep_stack"])
    return in_plate and (site["name"] == "truth" or site["is_observed"])


def _base(fn: Any) -> Any:
    """Return the distribution beneath declarations of independence."""
    while hasattr(fn, "base_dist"):
        fn = fn.base_dist
    return fn


def _rows_of(fn: Any) -> Any:
    """Return the distribution beneath torch's and Pyro's own declarations of independence."""
    while isinstance(fn, torch.distributions.Independent):
        fn = fn.base_dist
    return fn


def _is_table(site: Site) -> bool:
    return isinstance(_base(site["fn"]), Dirichlet)


def _in_log_odds(table: Site) -> Tensor:
    r"""Return the log-density of a table's rows in log-odds, :math:`\log p(\theta) + \sum_k \log \theta_k`.

    It is written with :math:`\alpha` instead of :math:`\alpha - 1` and 1: exact near zero too.
    """
    value, concentration = table["value"], _base(table["fn"]).concentration
    if not isinstance(_rows_of(table["fn"]), Dirichlet):  # a density of the story's own
        volume = value.clamp_min(SMALLEST).log().sum(tuple(range(-table["fn"].event_dim, 0)))
        return (_log_prob(table) + table["scale"] * volume).sum()
    norm = torch.lgamma(concentration.sum(-1)) - torch.lgamma(concentration).sum(-1)
    by_row = norm + (concentration * value.clamp_min(SMALLEST).log()).sum(-1)
    return table["scale"] * by_row.expand(value.shape[:-1]).sum()


def _log_prob(site: Site) -> Tensor:
    log_prob = site["fn"].log_prob(site["value"])
    return log_prob if site["scale"] == 1.0 else site["scale"] * log_prob
