r"""Posteriors that are known: draws that meet posteriordb's bar, for other samplers to be compared with.

The draws of :func:`reference_posterior` were made by ``python benchmarks/reference_posteriors.py``, which runs this
package's NUTS far longer than anyone would, keeps every tenth draw or fewer, and writes what meets the bar: 10,000
draws of four chains or more without divergences, :math:`\hat R < 1.01`, an autocorrelation under 0.05, effective sample
sizes near the number of draws, and an energy whose fraction of missing information is over 0.2 in every chain.

Which posteriors there are, and which were left out for what, is in :func:`list_reference_posteriors`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ...data import Annotations, UnknownNameError, load_dataset
from ...data.cards import Listing
from ...data.errors import look_up
from ...models import KNOWN_STORIES, WITH_CLASSIFIER, Classifier, Story, find_story
from ..findings.convergence import convergence
from ..fitted.named_draws import parameter_arrays
from ..storage.arviz_groups import make_idata
from . import posterior_database as database

if TYPE_CHECKING:
    import xarray as xr

    from ..storage.arviz_groups import IData

ROOT = Path(__file__).parents[2] / "data" / "reference_posteriors"
"""The folder of the database, which is a part of the package."""

DATASETS = ("anesthesia", "toy", "toy_sparse")
"""Data so small that every story can be sampled to the bar, if at all. Four classes without features, as the first has
them, do not fit some stories."""


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
        command = f"python benchmarks/reference_posteriors.py --stories {story} --datasets {dataset}"
        raise ValueError(
            f"{story} on {dataset} has no reference posterior: not sampled yet, which `{command}` does. "
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
    draws = parameter_arrays(arrays, posterior["dims"], annotations, {}).dataset()
    return ReferencePosterior(story, dataset, draws, labels, info)


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


def _moments(draws: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The mean, standard deviation and effective size of each scalar of draws ``(chain, draw, ...)``, ``(P,)`` each."""
    values = np.moveaxis(draws.reshape(*draws.shape[:2], -1).astype(float), -1, 0)
    return values.mean((1, 2)), values.std((1, 2)), convergence(values).bulk_ess
