r"""Posteriors that are known: draws that meet posteriordb's bar, for other samplers to be compared with.

The draws of :func:`reference_posterior` were made by ``python benchmarks/reference_posteriors.py``, which runs this
package's NUTS far longer than anyone would, keeps every tenth draw or fewer, and writes what meets the bar of
:func:`shortcomings`:

- 10,000 draws, of four chains or more, none of whose transitions diverged;
- :math:`\hat R < 1.01` (Vehtari et al. 2021) of every parameter;
- a correlation of each draw with the next one under 0.05 in absolute value, of every parameter;
- an energy whose fraction of missing information is over 0.2 in every chain (Betancourt 2016);
- effective sample sizes near the number of draws, in the bulk and in the tails.

Which posteriors there are, and which were left out for what, is in :func:`list_reference_posteriors`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from ...data import Annotations, UnknownNameError, load_dataset
from ...data.errors import look_up
from ...data.listing import Listing
from ...models import KNOWN_STORIES, WITH_CLASSIFIER, Classifier, Story, find_story
from ..engines.convergence import convergence
from ..fitted.named_draws import coords_of
from ..storage import posterior_database as database
from ..storage.arviz_data import make_idata

if TYPE_CHECKING:
    import xarray as xr

    from ..storage.arviz_data import IData

ROOT = Path(__file__).parents[2] / "data" / "reference_posteriors"
"""The folder of the database, which is a part of the package."""

DATASETS = ("anesthesia", "toy", "toy_sparse")
"""Data so small that every story can be sampled to the bar, if at all. Four classes without features, as the first has
them, do not fit some stories."""

N_DRAWS = 10_000
RHAT_LIMIT = 1.01
LAG_LIMIT = 0.05
EFMI_LIMIT = 0.2
LEAST_ESS = 0.8
"""Share of the draws that each effective size reaches. Of independent draws the estimate has its 0.1 % quantile at 0.84
of them, so that the least of a hundred parameters may well be near it."""
MEAN_ESS = (0.85, 1.15)
"""Bounds of the bulk's effective sizes in the mean over the parameters, as shares of the draws. Independent draws have
0.99, with a standard deviation of 0.03 for a single parameter."""


class Diagnostics(NamedTuple):
    """Diagnostics that the bar compares with its limits, by scalar parameter ``(P,)`` or by chain ``(C,)``."""

    names: list[str]
    rhat: np.ndarray
    bulk_ess: np.ndarray
    tail_ess: np.ndarray
    lag: np.ndarray  # correlation of a draw with the next one of its chain
    efmi: np.ndarray  # by chain
    divergent: np.ndarray  # by chain
    n_draws: int
    n_chains: int


def diagnose(draws: Mapping[str, np.ndarray], energy: np.ndarray, diverging: np.ndarray) -> Diagnostics:
    """Return the diagnostics of draws.

    Args:
        draws: by site, ``(chain, draw, ...)``.
        energy: of every draw of the sampler, kept or not, ``(chain, all draws)``.
        diverging: whether its transition diverged, in the same shape.
    """
    names = [name for site, values in draws.items() for name, _ in database.scalars(site, values.shape[2:])]
    flat = [np.asarray(values, float).reshape(*values.shape[:2], -1) for values in draws.values()]
    values = np.moveaxis(np.concatenate(flat, -1), -1, 0)  # (parameter, chain, draw)
    found = convergence(values)
    apart = values - values.mean((1, 2), keepdims=True)
    lag = (apart[..., 1:] * apart[..., :-1]).mean((1, 2)) / apart.var((1, 2))
    efmi = np.square(np.diff(energy, axis=1)).mean(1) / energy.var(1)
    n_chains, n_draws = values.shape[1:]
    return Diagnostics(names, *found, lag, efmi, diverging.sum(1), n_chains * n_draws, n_chains)


def shortcomings(found: Diagnostics) -> list[str]:
    """Return what keeps draws from being a reference, a sentence each; empty where they meet the bar."""
    said = []
    if found.n_draws < N_DRAWS or found.n_chains < 4:
        said.append(f"{found.n_draws:,} draws of {found.n_chains} chains; {N_DRAWS:,} of 4 are needed")
    if divergent := int(found.divergent.sum()):
        said.append(f"{divergent:,} transitions diverged")
    if not (found.rhat < RHAT_LIMIT).all():
        said.append(f"R̂ is {_worst(found, found.rhat)}; under {RHAT_LIMIT} is needed")
    if not (np.abs(found.lag) < LAG_LIMIT).all():
        said.append(
            f"the lag-1 autocorrelation is {_worst(found, found.lag, np.abs(found.lag))}; {LAG_LIMIT} is needed"
        )
    if not (found.efmi > EFMI_LIMIT).all():
        said.append(f"E-FMI is {found.efmi.min():.3f} in a chain; over {EFMI_LIMIT} is needed")
    for part, sizes in (("bulk", found.bulk_ess), ("tails", found.tail_ess)):
        if not (sizes >= LEAST_ESS * found.n_draws).all():
            worst = found.names[int(np.argmin(np.nan_to_num(sizes)))]
            said.append(f"the effective size of the {part} of {worst} is {np.nan_to_num(sizes).min():,.0f}")
    if not MEAN_ESS[0] <= (mean := found.bulk_ess.mean() / found.n_draws) <= MEAN_ESS[1]:
        said.append(f"the effective size of the bulk is {mean:.2f} of the draws in the mean over the parameters")
    return said


def reference_options(story: str | Story) -> dict[str, Any]:
    """Return the arguments of :func:`crowdppl.fit` beside story and data: none, but a classifier where one is needed.

    Its weights have a normal prior, so that they have a posterior.
    """
    needs = find_story(story).__name__ in WITH_CLASSIFIER
    return {"classifier": Classifier("logistic", prior=1.0)} if needs else {}


@dataclass(frozen=True, eq=False, repr=False)
class ReferencePosterior:
    """Draws of a posterior that met the bar. Made by :func:`reference_posterior`.

    Args:
        story: the story's name.
        dataset: the dataset's name.
        draws: the parameters that are kept, float32, with the dimensions chain, draw and others named as those of
            ``fit.draws``. Parameters of single tasks are left out.
        label_probabilities: P(true label), averaged over the draws: tasks × classes.
        info: the sampler's arguments, the diagnostics and the checks, as the file has them.
    """

    story: str
    dataset: str
    draws: xr.Dataset
    label_probabilities: pd.DataFrame
    info: dict[str, Any]

    def __repr__(self) -> str:
        """The name, and how many draws of what."""
        sizes = ", ".join(f"{name} {values.shape[2:]}" for name, values in self.draws.items())
        n_draws = self.info["diagnostics"]["ndraws"]
        return f"<ReferencePosterior of {self.story} on {self.dataset}: {n_draws:,} draws of {sizes}>"

    @property
    def annotations(self) -> Annotations:
        """The data."""
        return load_dataset(self.dataset)

    @property
    def options(self) -> dict[str, Any]:
        """Options of :func:`crowdppl.fit`, beside story and annotations, for the same posterior."""
        return reference_options(self.story)

    @property
    def idata(self) -> IData:
        """The draws as the posterior of ArviZ data."""
        return make_idata({"posterior": self.draws})

    @cached_property
    def diagnostics(self) -> Diagnostics:
        """The diagnostics of these draws; those of the sampler's energy are as the file has them."""
        arrays = {str(name): values.to_numpy() for name, values in self.draws.items()}
        n_chains = self.draws.sizes["chain"]
        energy = np.tile([0.0, 1.0], (n_chains, 1))  # which is not in the file
        found = diagnose(arrays, energy, np.zeros((n_chains, 2), bool))
        said = self.info["diagnostics"]
        efmi, divergent = said["expected_fraction_of_missing_information"], said["divergent_transitions"]
        return found._replace(efmi=np.array(efmi), divergent=np.array(divergent))

    def compare(self, draws: Any) -> pd.DataFrame:
        r"""Return how far another sampler's means are from these, by scalar parameter.

        - mean, sd: of the reference.
        - other_mean, other_sd: of the other draws.
        - difference: of the means, in standard deviations of the reference.
        - error: the standard error of that difference by both samplers' effective sizes,
          :math:`\sqrt{1 / n_\text{eff} + s^2 / n'_\text{eff}}`, with s the other standard deviation over this one.
        - z: difference / error, about standard normal where both sample the same posterior.

        Args:
            draws: a fit with draws, its ``draws`` or ``idata``, or arrays ``(chain, draw, ...)`` by site. Sites that
                the reference has not are left out.

        Raises:
            UnknownNameError: a site of the reference is missing.
            ValueError: a site's shape is another one, or the fit is a point.
        """
        if getattr(draws, "has_draws", True) is False:
            raise ValueError("a point has no draws to compare; fit with method='svi' or method='nuts'")
        given: Any = getattr(draws, "posterior", None)
        given = given if hasattr(given, "data_vars") else getattr(draws, "draws", draws)
        rows = []
        for site, reference in self.draws.items():
            if site not in given:
                raise UnknownNameError(
                    f"draws of {site} are missing; the reference has {', '.join(map(str, self.draws))}"
                )
            ours, others = reference.to_numpy(), np.asarray(given[site])
            if others.shape[2:] != ours.shape[2:] or others.ndim != ours.ndim:
                raise ValueError(f"{site} is of shape {others.shape}; (chain, draw, {ours.shape[2:]}) is needed")
            names = [name for name, _ in database.scalars(str(site), ours.shape[2:])]
            (mean, sd, size), (other_mean, other_sd, other_size) = _moments(ours), _moments(others)
            error = np.sqrt(1 / size + (other_sd / sd) ** 2 / other_size)
            columns = {"mean": mean, "sd": sd, "other_mean": other_mean, "other_sd": other_sd}
            columns |= {"difference": (other_mean - mean) / sd, "error": error, "z": (other_mean - mean) / sd / error}
            rows.append(pd.DataFrame(columns, index=pd.Index(names, name="parameter")))
        return pd.concat(rows)


def reference_posterior(story: str | Story, dataset: str = "anesthesia") -> ReferencePosterior:
    """Return 10,000 nearly independent draws of a story's posterior on a small dataset, with its default priors.

    >>> reference_posterior("dawid_skene", "toy").draws["confusion"].sizes["draw"]
    2500

    Args:
        story: a story's name, an alias of it, or the story.
        dataset: "anesthesia", "toy" or "toy_sparse".

    Raises:
        UnknownNameError: there is no such story, or no such dataset.
        ValueError: the posterior has no reference; the message says what it fell short of.
        StorageError: the files cannot be read.
    """
    story = find_story(story).__name__
    look_up("dataset with reference posteriors", dataset, dict.fromkeys(DATASETS))
    name = f"{dataset}-{story}"
    if name not in database.posterior_names(ROOT):
        raise ValueError(
            f"{story} on {dataset} has no reference posterior: {_not_sampled(story, dataset)}. "
            "cp.list_reference_posteriors() lists those there are"
        )
    posterior = database.read_json(ROOT, database.POSTERIORS, name)
    if posterior["reference_posterior_name"] is None:
        raise ValueError(
            f"{story} on {dataset} has no reference posterior: {'; '.join(posterior['unmet'])}. "
            "cp.list_reference_posteriors() lists those there are"
        )
    annotations = load_dataset(dataset)
    arrays = database.from_scalars(database.read_json(ROOT, database.DRAWS, name), posterior["dimensions"])  # type: ignore[arg-type]
    info = database.read_json(ROOT, database.DRAWS_INFO, name)
    labels = pd.DataFrame(
        posterior["label_probabilities"], index=annotations.tasks.to_index(), columns=annotations.classes.to_index()
    )
    return ReferencePosterior(story, dataset, _named(arrays, posterior["dims"], annotations), labels, info)


def list_reference_posteriors() -> pd.DataFrame:
    """Return the posteriors of all stories on the small datasets, and which of them have reference draws.

    The index is story and dataset. The columns are reference (whether the draws met the bar and are there), parameters
    (scalars that are kept), thin (every which draw was kept), rhat and lag (the worst ones), ess and efmi (the smallest
    ones), divergent (transitions), and unmet (why there are none).
    """
    rows = [_row(story, dataset) for dataset in DATASETS for story in KNOWN_STORIES]
    frame = pd.DataFrame(rows).set_index(["story", "dataset"])
    more = "`cp.reference_posterior(story, dataset)` has the draws, and benchmarks/reference_posteriors.py makes them"
    return Listing.of(frame, more)


def _not_sampled(story: str, dataset: str) -> str:
    command = f"python benchmarks/reference_posteriors.py --stories {story} --datasets {dataset}"
    return f"not sampled yet, which `{command}` does"


def _row(story: str, dataset: str) -> dict[str, Any]:
    name = f"{dataset}-{story}"
    if name not in database.posterior_names(ROOT):
        return {"story": story, "dataset": dataset, "reference": False, "unmet": "not sampled yet"}
    posterior = database.read_json(ROOT, database.POSTERIORS, name)
    worst = posterior["worst"] or {}
    return {
        "story": posterior["model_name"],
        "dataset": posterior["data_name"],
        "reference": posterior["reference_posterior_name"] is not None,
        "parameters": sum(int(np.prod(shape)) for shape in posterior["dimensions"].values()),
        "thin": posterior["thin"],
        **worst,
        "unmet": "; ".join(posterior["unmet"]),
    }


def _worst(found: Diagnostics, values: np.ndarray, by: np.ndarray | None = None) -> str:
    at = int(np.argmax(np.nan_to_num(values if by is None else by, nan=np.inf)))
    return f"{values[at]:.3f} of {found.names[at]}"


def _moments(draws: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The mean, standard deviation and effective size of each scalar of draws ``(chain, draw, ...)``, ``(P,)`` each."""
    values = np.moveaxis(draws.reshape(*draws.shape[:2], -1).astype(float), -1, 0)
    return values.mean((1, 2)), values.std((1, 2)), convergence(values).bulk_ess


def _named(arrays: Mapping[str, np.ndarray], dims: Mapping[str, list[str]], annotations: Annotations) -> xr.Dataset:
    """Draws with named dimensions, whose coordinates are the ids of the data where they have any."""
    import xarray as xr

    coords: dict[str, Any] = dict(coords_of(annotations, {dim for names in dims.values() for dim in names}))
    n_chains, n_draws = next(iter(arrays.values())).shape[:2]
    variables = {name: (("chain", "draw", *dims[name]), values) for name, values in arrays.items()}
    return xr.Dataset(variables, coords | {"chain": np.arange(n_chains), "draw": np.arange(n_draws)})
