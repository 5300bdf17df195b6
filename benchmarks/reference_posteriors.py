"""Reference posteriors: every story on two tiny datasets, sampled until posteriordb's bar is met, and written down.

What is there already is left alone, so that an interrupted run goes on where it stopped.
"""

import platform
import warnings
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import typer

import crowdppl as cp
from crowdppl.benchmarks.support.posteriordb import by_scalar, rounded, write_json
from crowdppl.benchmarks.support.reference_bar import N_DRAWS, Diagnostics, diagnose, shortcomings
from crowdppl.inference.checks import posterior_database as database
from crowdppl.inference.checks.reference_posteriors import DATASETS, ROOT, reference_options
from crowdppl.models import KNOWN_STORIES, find_story

ADDED_BY = "The crowdppl authors"
PER_TASK = "task"  # the dimension of parameters that are sampled and looked at, and not kept
HOPELESS = 1.2  # an R̂ of the pilot beyond which longer chains are no help
PILOT = 250  # draws of each chain, from which thinning and step size follow
ACCEPT = (0.8, 0.95, 0.99)  # target probabilities of acceptance, of which the first without divergences is taken
LARGEST = 100  # scalar parameters of a posterior that are kept


def main(
    stories: str = "",
    datasets: str = ",".join(DATASETS),
    chains: int = 4,
    warmup: int = 1000,
    thin: int = 10,
    most: int = 40,
    minutes: float = 60.0,
    seed: int = 1,
    again: bool = False,
) -> None:
    """Sample what is missing, and print what was found.

    Args:
        stories: names, separated by commas; all by default.
        datasets: names, separated by commas.
        chains: of NUTS.
        warmup: steps of adaptation of each chain.
        thin: every which draw is kept at the least; fewer where a pilot or the bar asks for it.
        most: every which draw is kept at the most.
        minutes: what is expected to take longer is left for another run.
        seed: of the sampler.
        again: whether to sample again what is there.
    """
    for dataset in datasets.split(","):
        write_data(dataset)
        for story in stories.split(",") if stories else KNOWN_STORIES:
            write_model(story)
            name = f"{dataset}-{story}"
            if again or name not in database.posterior_names(ROOT):
                started = perf_counter()
                said = make(story, dataset, Run(chains, warmup, thin, most, 60 * minutes, seed))
                print(f"{name}, {perf_counter() - started:.0f} s: {said}", flush=True)
    print(cp.list_reference_posteriors().drop(columns="unmet").to_string())
    size = sum(path.stat().st_size for path in ROOT.rglob("*") if path.is_file())
    print(f"{size / 1e6:.1f} MB in all")


class Run(NamedTuple):
    """How long chains are, and how long they may take; the arguments of :func:`main`."""

    chains: int
    warmup: int
    thin: int
    most: int
    seconds: float
    seed: int


def make(story: str, dataset: str, run: Run) -> str:
    """Sample a posterior until it meets the bar or that is hopeless, and write what was found.

    Where transitions diverge the steps are made smaller, and else more draws are thinned.

    Returns:
        what to print.
    """
    try:
        started = perf_counter()
        accept, found = pilot(story, dataset, run)
        a_step = (perf_counter() - started) / (run.warmup + PILOT)
    except (cp.StoryError, cp.AnnotationError) as error:
        unmet = [f"the story does not fit these data: {error}"]
        write_posterior(story, dataset, {}, {}, None, None, unmet, None)
        return unmet[0]
    if not np.nanmax(found.rhat) < HOPELESS:
        unmet = [f"in a pilot of {found.n_draws:,} draws: {sentence}" for sentence in shortcomings(found)[1:]]
        write_posterior(story, dataset, {}, {}, found, 1, unmet, None)
        return "; ".join(unmet)
    needed = int(np.ceil(2 * found.n_draws / np.nanmin(np.minimum(found.bulk_ess, found.tail_ess))))
    thin = min(max(run.thin, needed), run.most)
    while True:
        steps = run.warmup + N_DRAWS // run.chains * thin
        if steps * a_step > run.seconds:
            return f"left for a longer run: thin={thin} takes {steps * a_step / 60:.0f} minutes or less, --minutes"
        fit = sample(story, dataset, run, N_DRAWS // run.chains * thin, accept)
        draws = rounded({name: values[:, ::thin] for name, values in arrays(fit).items()})
        found = diagnose(draws, fit.outcome.stats["energy"], fit.outcome.stats["diverging"])
        unmet = shortcomings(found)
        stricter = [target for target in ACCEPT if target > accept]
        if not unmet or (not stricter if found.divergent.any() else thin >= run.most):
            break
        print(f"  {dataset}-{story}, thin={thin}, target_accept={accept}: {'; '.join(unmet)}", flush=True)
        if found.divergent.any():
            accept = stricter[0]
        else:
            thin = min(2 * thin, run.most)
    kept = kept_sites(fit, draws)
    write_posterior(story, dataset, kept, dims_of(fit, kept), found, thin, unmet, fit.probabilities)
    if not unmet:
        arguments = {
            "chains": run.chains,
            "warmup": run.warmup,
            "draws": N_DRAWS // run.chains * thin,
            "thin": thin,
            "target_accept": accept,
            "seed": run.seed,
        }
        write_draws(f"{dataset}-{story}", kept, found, arguments, sorted(set(draws) - set(kept)))
    return "; ".join(unmet) or "met"


def pilot(story: str, dataset: str, run: Run) -> tuple[float, Diagnostics]:
    """The first target probability of acceptance without divergences, and the diagnostics of some draws with it."""
    for accept in ACCEPT:
        fit = sample(story, dataset, run, PILOT, accept)
        found = diagnose(arrays(fit), fit.outcome.stats["energy"], fit.outcome.stats["diverging"])
        if not found.divergent.any():
            break
    return accept, found


def sample(story: str, dataset: str, run: Run, draws: int, accept: float) -> cp.Fit:
    """The fit by NUTS with all its draws."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what they say is looked at by the bar
        return cp.fit(
            story,
            cp.load_dataset(dataset),
            method="nuts",
            chains=run.chains,
            warmup=run.warmup,
            draws=draws,
            target_accept=accept,
            seed=run.seed,
            progress=False,
            **reference_options(story),
        )


def arrays(fit: cp.Fit) -> dict[str, np.ndarray]:
    """Draws by site, ``(chain, draw, ...)``."""
    return {str(name): values.to_numpy() for name, values in fit.draws.items()}


def dims_of(fit: cp.Fit, sites: Sequence[str] | dict[str, Any]) -> dict[str, list[str]]:
    """The names of each site's dimensions after chain and draw."""
    return {name: [str(dim) for dim in fit.draws[name].dims[2:]] for name in sites}


def kept_sites(fit: cp.Fit, draws: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Draws of the sites that are written down: those without a dimension of tasks, the smallest first."""
    sites = [name for name in draws if PER_TASK not in fit.draws[name].dims]
    kept: dict[str, np.ndarray] = {}
    for name in sorted(sites, key=lambda name: draws[name][0, 0].size):
        if sum(values[0, 0].size for values in kept.values()) + draws[name][0, 0].size <= LARGEST:
            kept[name] = draws[name]
    return kept


def write_posterior(
    story: str,
    dataset: str,
    kept: dict[str, np.ndarray],
    dims: dict[str, list[str]],
    found: Diagnostics | None,
    thin: int | None,
    unmet: list[str],
    labels: Any,
) -> None:
    """Write the file that says what the posterior is, and whether it has reference draws."""
    name = f"{dataset}-{story}"
    worst = None
    if found is not None:
        at = int(np.argmax(np.abs(found.lag)))
        sizes = np.minimum(found.bulk_ess, found.tail_ess)
        worst = {
            "rhat": round(float(np.nanmax(found.rhat)), 4),
            "lag": round(float(found.lag[at]), 4),
            "ess": round(float(np.nanmin(sizes))),
            "efmi": round(float(found.efmi.min()), 3),
            "divergent": int(found.divergent.sum()),
        }
    content = {
        "name": name,
        "keywords": ["crowd annotation", "discrete latent variables summed out"],
        "model_name": story,
        "data_name": dataset,
        "reference_posterior_name": None if unmet else name,
        "dimensions": {site: list(values.shape[2:]) for site, values in kept.items()},
        "dims": dims,
        "options": {key: repr(value) for key, value in reference_options(story).items()},
        "thin": thin,
        "worst": worst,
        "unmet": unmet,
        "label_probabilities": None if labels is None or unmet else np.round(labels.to_numpy(float), 5).tolist(),
        "added_date": today(),
        "added_by": ADDED_BY,
    }
    write_json(ROOT, database.POSTERIORS, name, content)


def write_draws(
    name: str, kept: dict[str, np.ndarray], found: Diagnostics, arguments: dict[str, Any], left_out: list[str]
) -> None:
    """Write the draws, and how they were made and checked."""
    sites = {site: [scalar for scalar, _ in database.scalars(site, values.shape[2:])] for site, values in kept.items()}
    index = {scalar: i for i, scalar in enumerate(found.names)}
    names = [scalar for scalars in sites.values() for scalar in scalars]
    at = [index[scalar] for scalar in names]
    info = {
        "name": name,
        "inference": {"method": "crowdppl_nuts", "method_arguments": arguments},
        "diagnostics": {
            "diagnostic_information": {"names": names},
            "ndraws": found.n_draws,
            "nchains": found.n_chains,
            "effective_sample_size_bulk": np.round(found.bulk_ess[at]).tolist(),
            "effective_sample_size_tail": np.round(found.tail_ess[at]).tolist(),
            "r_hat": np.round(found.rhat[at], 5).tolist(),
            "lag_1_autocorrelation": np.round(found.lag[at], 4).tolist(),
            "divergent_transitions": found.divergent.tolist(),
            "expected_fraction_of_missing_information": np.round(found.efmi, 3).tolist(),
        },
        "checks_made": {
            "ndraws_is_10k": True,
            "nchains_is_gte_4": True,
            "ess_within_bounds": True,
            "r_hat_below_1_01": True,
            "lag_1_autocorrelation_below_0_05": True,
            "efmi_above_0_2": True,
        },
        "comments": "Checks are of all parameters, also of those whose draws are not kept: "
        + (", ".join(left_out) if left_out else "there are none of these"),
        "added_by": ADDED_BY,
        "added_date": today(),
        "versions": {package: version(package) for package in ("crowdppl", "jax", "numpyro", "numpy")}
        | {"python": platform.python_version()},
    }
    write_json(ROOT, database.DRAWS, name, by_scalar(kept))
    write_json(ROOT, database.DRAWS_INFO, name, info)


def write_data(dataset: str) -> None:
    """Write the annotations as arrays that Stan could read, counted from 1."""
    annotations = cp.load_dataset(dataset)
    data = {
        "N": annotations.n_tasks,
        "J": annotations.n_workers,
        "K": annotations.n_classes,
        "A": annotations.n_rows,
        "task": (np.asarray(annotations.task) + 1).tolist(),
        "worker": (np.asarray(annotations.worker) + 1).tolist(),
        "label": (np.asarray(annotations.label) + 1).tolist(),
    }
    if annotations.features is not None:
        data |= {"x": np.round(np.asarray(annotations.features, float), 4).tolist()}
    about = {
        "name": dataset,
        "title": f"The dataset {dataset} of crowdppl",
        "description": "Annotations of tasks by workers: row a says that worker[a] gave label[a] to task[a].",
        "data_file": f"{database.DATA}/{dataset}.json",
        "urls": None,
        "references": None,
        "keywords": ["crowd annotation"],
        "added_by": ADDED_BY,
        "added_date": "2026-11-22",
    }
    write_json(ROOT, database.DATA, dataset, data)
    write_json(ROOT, database.DATA_INFO, dataset, about)


def write_model(story: str) -> None:
    """Write what the story is, and where its program stands."""
    function = find_story(story)
    about = {
        "name": story,
        "title": (function.__doc__ or "").strip().splitlines()[0],
        "description": f"The generative story {story} of crowdppl, a NumPyro program; the true labels are summed out.",
        "model_implementations": {"numpyro": {"model_code": f"{function.__module__}.{function.__name__}"}},
        "urls": None,
        "references": None,
        "keywords": ["crowd annotation"],
        "added_by": ADDED_BY,
        "added_date": "2026-11-22",
    }
    write_json(ROOT, database.MODEL_INFO, story, about)


def today() -> str:
    """The date, as posteriordb writes it."""
    return datetime.now(UTC).date().isoformat()


if __name__ == "__main__":
    typer.run(main)
