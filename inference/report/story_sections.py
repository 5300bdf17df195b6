"""The sections on the fit: the story's quantities, its prior, how to fit it again, and the computation."""

from __future__ import annotations

import inspect
import platform
import re
import textwrap
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from ...data.fingerprint import fingerprint
from ...models import KNOWN_STORIES, first_line
from ...models.parts.classifier import PREFIX
from ..findings.of_draws import ESS_LIMIT, FAR_APART, RHAT_LIMIT, WorstEntry, worst_entries
from ..findings.of_prior import WorkerPrior, worker_prior
from ..findings.summary import groups_fact
from ..fitted.counted_as_one import are_left_out
from ..fitted.fitted import Fitted
from ..fitted.intervals import INTERVAL, of_draws
from ..plots.confusion_matrices import plot_groups
from ..plots.history import plot_history
from ..plots.ranking import plot_switch
from ..plots.ranks import draw_chain_ranks
from .sections import Section, number, picture, section, text
from .subject import Subject

if TYPE_CHECKING:
    import xarray as xr

MOST_ROWS = 2_000  # of a table
MOST_COLUMNS = 12
MOST_PARAMETERS = 400  # entries of a parameter up to which it is listed
PACKAGES = ("crowdppl", "jax", "numpyro", "numpy", "pandas", "scipy", "xarray", "arviz", "matplotlib")
OF_TORCH = ("torch", "pyro-ppl")
MOST_PANELS = 9  # rank plots


def story_section(subject: Subject) -> Section:
    """Return the section on the story: quantities that it derives beside labels and workers, and its parameters."""
    name, fit = subject.lead
    pictures: list[Markup] = []
    with suppress(ValueError):  # the story has no groups
        pictures.append(picture(partial(plot_groups, fit), "Confusion matrices of groups of workers"))
    for by in ("worker", "task"):
        if any(values.dims[2:] == (by,) for values in fit.draws_of_role("switch")):
            shown = f"Probability of following the common confusion matrix, by {by}"
            pictures.append(picture(partial(plot_switch, fit, by=by), shown))
    few = [str(name) for name, values in fit.parameters.items() if values.size <= MOST_PARAMETERS]
    few = [name for name in few if not name.startswith(PREFIX)]
    return section(
        "story",
        "Story",
        of_lead=subject.of_lead,
        name=name,
        says=first_line(fit.model.story),
        pictures=pictures,
        derived=quantities(fit, list(map(str, fit.derived)), derived=True),
        parameters=quantities(fit, few, derived=False),
        others=[f"{p} ({_shape(values)})" for p, values in fit.parameters.items() if p not in few and values.size],
    )


def quantities(fit: Fitted, names: list[str], *, derived: bool) -> list[tuple[pd.DataFrame | None, str]]:
    """Tables of quantities, one for all with the same dimensions: means, and credible intervals where there are draws.

    Each comes with its caption; where there would be too many rows, there is a note and no table.

    Args:
        derived: whether they are derived quantities; else they are parameters.
    """
    gone = are_left_out(fit)
    means = _known(fit.derived if derived else fit.parameters, gone)
    where = "fit.derived" if derived else "fit.parameters"
    of_dims: dict[tuple[str, ...], list[str]] = {}
    for name in names:
        of_dims.setdefault(tuple(map(str, means[name].dims)), []).append(name)
    made: list[tuple[pd.DataFrame | None, str]] = []
    for dims, same in of_dims.items():
        of_others = "; of workers who were left out nothing is known" if "worker" in dims and gone.any() else ""
        what = f"{'Derived quantities' if derived else 'Parameters'}: {', '.join(same)}{of_others}"
        rows = int(np.prod([means[same[0]].sizes[dim] for dim in (dims if len(dims) < 2 else dims[:-1])]))
        if rows > MOST_ROWS:
            spread = "; ".join(
                f"{name} ({_shape(means[name])}), mean {number(float(means[name].mean()))}, from "
                f"{number(float(means[name].min()))} to {number(float(means[name].max()))}"
                for name in same
            )
            made.append((None, f"Only in {where}, as there are many: {spread}."))
            continue
        draws = None
        if fit.has_draws and len(dims) < 2:
            draws = _known(fit.derived_draws(*same) if derived else fit.named_draws[same], gone)
        if not dims:
            made.append((_single(means, draws, same), what))
        elif len(dims) == 1:
            made.append((_by_one(means, draws, same, dims[0]), what))
        else:
            for name in same:
                of_name = f"{what.split(':')[0]}: {name}, by {' × '.join(dims)}"
                made.append((_by_many(means[name], dims), of_name))
    return made


def _known(values: xr.Dataset, gone: np.ndarray) -> xr.Dataset:
    """The quantities without those of workers who were left out of the fit, whose values are the prior's."""
    if not gone.any():
        return values
    import xarray as xr

    kept = xr.DataArray(~gone, dims="worker")
    return values.assign({name: of.where(kept) for name, of in values.items() if "worker" in of.dims})


def reproduce_section(subject: Subject) -> Section:
    """Code, settings and versions that give the same fit again."""
    fits = subject.fits
    code = "\n".join(["import crowdppl as cp", "", *_code(subject)])
    by_story = None
    given = {name: _options(all_hyperparameters(fit)) or "none" for name, fit in fits.items()}
    pairs = [("data", f"SHA-256 {fingerprint(subject.annotations)}")]
    engines = {f"{fit.method.upper()}: {_options(fit.settings)}" for fit in fits.values()}
    if len(fits) == 1 or len(engines) == 1:
        pairs.append(("engine", engines.pop()))
    if len(fits) == 1:
        pairs.append(("hyperparameters", next(iter(given.values()))))
    else:
        by_story = pd.DataFrame({"hyperparameters": given}).rename_axis("name")
        if engines:
            by_story["engine"] = [f"{fit.method.upper()}: {_options(fit.settings)}" for fit in fits.values()]
    by_torch = any(fit.settings.get("backend") == "pyro" for fit in fits.values())
    packages = PACKAGES + (OF_TORCH if by_torch else ())
    versions = {"Python": platform.python_version(), **{name: _version(name) for name in packages}}
    pairs.append(("versions", ", ".join(f"{name} {version}" for name, version in versions.items())))
    evidence = subject.annotations.evidence
    return section(
        "reproduce",
        "Reproduce",
        code=code,
        by_story=by_story,
        facts=pairs,
        with_evidence=None if evidence is None else int((np.asarray(evidence) != 0).any(-1).sum()),
        models=list(map(str, subject.annotations.models)),
    )


def _code(subject: Subject) -> list[str]:
    """Lines of code that make the fits again; options that all have in common stand once."""
    fits = subject.fits if subject.stack is not None else dict([subject.lead])
    given = {name: _given(fit) for name, fit in fits.items()}
    first = next(iter(given.values()))
    shared = {key: value for key, value in first.items() if all(one.get(key) == value for one in given.values())}
    options = textwrap.wrap(", ".join(f"{key}={value}" for key, value in shared.items()), 84)
    code = ["options = dict(", *(f"    {line}" for line in options), ")"]
    calls = {}
    for name, fit in fits.items():
        own = "".join(f", {key}={value}" for key, value in given[name].items() if key not in shared)
        story = repr(fit.story) if fit.story in KNOWN_STORIES else fit.story
        calls[name] = f"cp.fit({story}, annotations{own}, **options)"
    if subject.stack is None:
        return [*code, f"fit = {calls[subject.lead[0]]}"]
    weights = ", ".join(f"{name!r}: {float(weight)!r}" for name, weight in subject.stack.weights.items())
    rows = (f"    {name!r}: {call}," for name, call in calls.items())
    more = f", votes={subject.stack.votes!r}" if subject.stack.votes else ""
    more += f", misled={subject.stack.misled!r}" if subject.stack.misled != 0 else ""
    more += f", power={subject.stack.power!r}" if subject.stack.power is not None else ""
    made = f"stack = cp.stack(fits, weights={{{weights}}}{more})"
    return [*code, "fits = {", *rows, "}", *textwrap.wrap(made, 84, subsequent_indent="    ", break_long_words=False)]


def _given(fit: Fitted) -> dict[str, str]:
    """The options of a fit, as code by name."""
    options = {"method": fit.method, **fit.model.hyperparameters, **fit.settings}
    return {name: plain(value) for name, value in options.items() if (name, value) != ("backend", "numpyro")}


def _options(options: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={plain(value)}" for name, value in options.items())


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _shape(values: xr.DataArray) -> str:
    return " × ".join(f"{size:,} {dim}" for dim, size in values.sizes.items()) or "one number"


def _single(means: xr.Dataset, draws: xr.Dataset | None, names: list[str]) -> pd.DataFrame:
    frame = pd.DataFrame({"value": [float(means[name]) for name in names]}, index=pd.Index(names, name="quantity"))
    if draws is not None:
        bounds = np.array([of_draws(draws[name].to_numpy(), INTERVAL) for name in names])
        frame["value_low"], frame["value_high"] = bounds.T
    return frame


def _by_one(means: xr.Dataset, draws: xr.Dataset | None, names: list[str], dim: str) -> pd.DataFrame:
    ids = means.indexes[dim] if dim in means.indexes else pd.RangeIndex(means.sizes[dim])
    frame = pd.DataFrame(index=pd.Index([text(one) for one in ids], name=dim))
    for name in names:
        frame[name] = means[name].to_numpy().astype(float)
        if draws is not None:
            frame[f"{name}_low"], frame[f"{name}_high"] = of_draws(draws[name].to_numpy(), INTERVAL)
    return frame


def _by_many(values: xr.DataArray, dims: tuple[str, ...]) -> pd.DataFrame:
    """A frame with the last dimension as columns and the others as rows; a row for each number if that is too wide."""
    series = values.to_series()
    index = series.index.set_names([str(dim) for dim in dims])
    series = pd.Series(series.to_numpy(dtype=float), index=index)
    if values.sizes[dims[-1]] > MOST_COLUMNS:
        frame = series.sort_values(ascending=False, kind="stable").head(MOST_ROWS).rename("value").to_frame()
    else:
        frame = series.unstack(sort=False)
    names = [str(name) for name in frame.index.names]
    rows = [key if isinstance(key, tuple) else (key,) for key in frame.index]
    columns = {name: [text(key[i]) for key in rows] for i, name in enumerate(names)}
    frame.index = pd.MultiIndex.from_frame(pd.DataFrame(columns)) if len(names) > 1 else pd.Index(columns[names[0]])
    frame.index.names = names
    frame.columns = pd.Index([text(column) for column in frame.columns])
    return frame


def convergence_section(subject: Subject) -> Section:
    """Return the section on trust in the computation; trust in the story is the subject of the checks."""
    _, fit = subject.lead
    chains, draws = fit.shape
    parameters = worst_entries(fit.named_draws) if chains > 1 else []
    worst = sorted(parameters, key=lambda one: -one.rhat)[:MOST_PANELS]
    return section(
        "convergence",
        "Appendix: the computation",
        warnings=[each.sentence for each in subject.findings.warnings],
        n_fits=len(subject.fits),
        of_lead=subject.of_lead,
        method=fit.method,
        n_draws=draws,
        by_parameter=_frame(parameters) if chains > 1 else None,
        rhat_limit=RHAT_LIMIT,
        far_apart=FAR_APART,
        ess_limit=ESS_LIMIT * chains,
        ranks=lambda: draw_chain_ranks({one.entry: one.draws for one in worst}),
        history=(lambda: plot_history(fit)) if fit.method != "nuts" and len(fit.history) > 1 else None,
    )


def _frame(found: list[WorstEntry]) -> pd.DataFrame:
    rows = {
        one.name: {
            "entries": one.entries,
            "largest R̂": one.rhat,
            "of": one.entry,
            "smallest bulk ESS": round(one.bulk_ess),
            "smallest tail ESS": round(one.tail_ess),
        }
        for one in found
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("parameter")


def prior_section(subject: Subject) -> Section:
    """For how many annotations the prior counts and what it expects, and the story's hyperparameters."""
    _, fit = subject.lead
    prior = worker_prior(fit)
    pairs = [(name.replace("_", " "), plain(value)) for name, value in all_hyperparameters(fit).items()]
    pairs += groups_fact(fit).items()
    return section(
        "prior",
        "Prior",
        of_lead=subject.of_lead,
        counts=None if prior is None else prior.text(fit.annotations),
        outweighed=[each.sentence for each in fit.findings if each.about == "prior"],
        numbers=None if prior is None else _numbers(fit, prior),
        estimated=prior is not None and not prior.is_exact,
        hyperparameters=pairs,
    )


def _numbers(fit: Fitted, prior: WorkerPrior) -> pd.DataFrame:
    """Least, median and most over the workers, of the prior and of the annotations."""
    given = fit.annotations.of_classes().n_by_worker().astype(float)
    rows = {
        "pseudo-annotations that the prior counts like": prior.weight,
        "annotations that a worker gave": given,
        "share of the prior in what is known of a worker": prior.weight / (prior.weight + given),
        "accuracy that the prior expects": prior.accuracy,
    }
    frame = pd.DataFrame({name: np.quantile(value, [0, 0.5, 1]) for name, value in rows.items()})
    return frame.set_axis(["least", "median", "most"], axis=0).rename_axis("over the workers")


def all_hyperparameters(fit: Fitted) -> dict[str, Any]:
    """The hyperparameters that were given, and the defaults of the others but None, which stands for what follows."""
    parameters = list(inspect.signature(fit.model.story).parameters.values())[1:]
    kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    defaults = {p.name: p.default for p in parameters if p.kind not in kinds and p.default is not p.empty}
    found = defaults | dict(fit.model.hyperparameters)
    return {name: value for name, value in found.items() if value is not None}


def plain(value: object) -> str:
    """A setting as text on one line, without memory addresses, which differ from run to run."""
    if isinstance(value, np.ndarray | pd.DataFrame) or hasattr(value, "shape"):
        return f"an array {tuple(np.shape(value))}"  # type: ignore[arg-type]
    shown = re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))
    return shown if len(shown) <= 200 else f"{shown[:199]}…"
