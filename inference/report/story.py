"""The sections of the story: what it says of itself, how it was fitted, and how to fit it again."""

from __future__ import annotations

import hashlib
import inspect
import platform
import re
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from ...data import Annotations
from ...models import STORIES
from ...models.classifier import PREFIX
from ..intervals import INTERVAL, of_draws
from ..plots import plot_groups, plot_history, plot_switch
from ..results import Fit
from .html import Html, facts, paragraph, section, tag
from .pictures import picture
from .subject import Subject
from .tables import number, table, text

MOST_ROWS = 2_000  # of a table
MOST_COLUMNS = 12
MOST_PARAMETERS = 400  # numbers of a parameter up to which it is listed
PACKAGES = ("crowdppl", "jax", "numpyro", "numpy", "pandas", "scipy", "xarray", "arviz", "matplotlib")
OF_TORCH = ("torch", "pyro-ppl")


def story_section(subject: Subject) -> Html:
    """What the story reports beside labels and workers, its parameters, and how the engine went."""
    name, fit = subject.lead
    parts: list[object] = [paragraph(subject.of_lead, tag("strong", name), ": ", says(fit))]
    try:
        parts.append(picture(lambda: plot_groups(fit), "Confusion tables of groups of workers"))
    except ValueError:
        pass  # it has no groups
    for by in ("worker", "task"):
        if f"switch_by_{by}" in fit.reported and (by == "task" or fit.annotations.named):
            parts.append(picture(lambda by=by: plot_switch(fit, by=by), f"How far answers follow the common table, by {by}"))
    parts += quantities(fit, list(map(str, fit.reported)), reported=True)
    listed = [str(p) for p, values in fit.parameters.items() if values.size <= MOST_PARAMETERS and not _is_weight(p)]
    parts += quantities(fit, listed, reported=False)
    others = [
        f"{parameter} ({_shape(values)})"
        for parameter, values in fit.parameters.items()
        if parameter not in listed and values.size
    ]
    if others:
        parts.append(paragraph(f"Larger parameters are in fit.parameters: {', '.join(others)}.", class_="note"))
    if fit.method != "nuts" and len(fit.history) > 1:
        parts.append(picture(lambda: plot_history(fit), "How the engine went"))
    return section("story", "The story", *parts)


def quantities(fit: Fit, names: list[str], *, reported: bool) -> list[Html]:
    """Tables of quantities, those with the same dimensions together: means, and intervals where there are draws.

    Args:
        fit: of any story.
        names: of the quantities.
        reported: whether they are in ``fit.reported``; else they are parameters.
    """
    means = fit.reported if reported else fit.parameters
    where = "fit.reported" if reported else "fit.parameters"
    of_dims: dict[tuple[str, ...], list[str]] = {}
    for name in names:
        of_dims.setdefault(tuple(map(str, means[name].dims)), []).append(name)
    made = []
    for dims, same in of_dims.items():
        what = f"{'Reported' if reported else 'Parameters'}: {', '.join(same)}"
        rows = int(np.prod([means[same[0]].sizes[dim] for dim in (dims if len(dims) < 2 else dims[:-1])]))
        if rows > MOST_ROWS:
            spread = "; ".join(
                f"{name} ({_shape(means[name])}), mean {number(float(means[name].mean()))}, from "
                f"{number(float(means[name].min()))} to {number(float(means[name].max()))}"
                for name in same
            )
            made.append(paragraph(f"In {where}: {spread}.", class_="note"))
            continue
        draws = None
        if fit.has_draws and len(dims) < 2:
            draws = fit.reported_draws(*same) if reported else fit.draws[same]
        if not dims:
            made.append(table(_single(means, draws, same), what))
        elif len(dims) == 1:
            made.append(table(_by_one(means, draws, same, dims[0]), what))
        else:
            made += [table(_by_many(means[name], dims), f"{what.split(':')[0]}: {name}, by {' × '.join(dims)}") for name in same]
    return made


def reproduce_section(subject: Subject) -> Html:
    """What it takes to get the same fit again."""
    code = ["import crowdppl as cp", "", *_code(subject)]
    parts: list[object] = [tag("pre", tag("code", "\n".join(code)), class_="scroll", tabindex="0")]
    for name, fit in subject.fits.items():
        pairs = [
            ("story", fit.story + ("" if fit.story in STORIES else ", which is none of crowdppl’s own")),
            ("hyperparameters", _options(_all_hyperparameters(fit)) or "none"),
            ("engine", f"{fit.method.upper()}: {_options(fit.settings)}"),
        ]
        parts += [tag("h3", name) if len(subject.fits) > 1 else None, facts(pairs)]
    packages = PACKAGES + (OF_TORCH if any(fit.settings.get("backend") == "pyro" for fit in subject.fits.values()) else ())
    versions = {"Python": platform.python_version(), **{name: _version(name) for name in packages}}
    pairs = [("data", f"SHA-256 {fingerprint(subject.annotations)}"), ("versions", _listed(versions))]
    parts.append(facts(pairs))
    parts.append(paragraph("The same seed gives the same result, to the last bit on one machine.", class_="note"))
    return section("reproduce", "How to reproduce", *parts)


def says(fit: Fit) -> str:
    """The first line of the story's docstring, without its markup."""
    line = (inspect.getdoc(fit.model.story) or "a story without a docstring.").split("\n", 1)[0]
    return re.sub(r"(:\w+:)?`+([^`]*)`+", r"\2", line)


def fingerprint(annotations: Annotations) -> str:
    """A hash of who answered what, in ids: the same for the same answers in the same order."""
    digest = hashlib.sha256(repr([list(ids) for ids in (annotations.tasks, annotations.classes)]).encode())
    if annotations.named:
        digest.update(repr(list(annotations.workers)).encode())
    for column in (annotations.task, annotations.worker, annotations.label, annotations.count):
        digest.update(b"-" if column is None else np.asarray(column).astype("<i8").tobytes())
    return digest.hexdigest()[:16]


def plain(value: object) -> str:
    """A setting in a line, without what differs from run to run."""
    if isinstance(value, np.ndarray | pd.DataFrame) or hasattr(value, "shape"):
        return f"an array {tuple(np.shape(value))}"  # type: ignore[arg-type]
    shown = re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))
    return shown if len(shown) <= 200 else f"{shown[:199]}…"


def _all_hyperparameters(fit: Fit) -> dict[str, Any]:
    """Those that were given, and the story's defaults."""
    parameters = list(inspect.signature(fit.model.story).parameters.values())[1:]
    kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    defaults = {p.name: p.default for p in parameters if p.kind not in kinds and p.default is not p.empty}
    found = defaults | dict(fit.model.hyperparameters)
    return {name: value for name, value in found.items() if not (name == "truth_prior" and value is None)}


def _code(subject: Subject) -> list[str]:
    calls = {name: _call(fit) for name, fit in subject.fits.items()}
    if subject.stack is None:
        return [f"fit = {calls[subject.lead[0]]}", "fit.report('report.html')"]
    rows = [f"    {name!r}: {call}," for name, call in calls.items()]
    weights = ", ".join(f"{name!r}: {weight:.6g}" for name, weight in subject.stack.weights.items())
    return ["fits = {", *rows, "}", f"stack = cp.stack(fits, weights={{{weights}}})", "stack.report('report.html')"]


def _call(fit: Fit) -> str:
    given = {name: value for name, value in fit.model.hyperparameters.items()}
    options = {"method": fit.method, **given, **fit.settings}
    if options.get("backend") == "numpyro":
        del options["backend"]
    return f"cp.fit({fit.story if fit.story not in STORIES else repr(fit.story)}, annotations, {_options(options)})"


def _options(options: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={plain(value)}" for name, value in options.items())


def _listed(values: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _is_weight(name: object) -> bool:
    return str(name).startswith(PREFIX)


def _shape(values: xr.DataArray) -> str:
    return " × ".join(f"{size:,} {dim}" for dim, size in values.sizes.items()) or "one number"


def _single(means: xr.Dataset, draws: xr.Dataset | None, names: list[str]) -> pd.DataFrame:
    frame = pd.DataFrame({"value": [float(means[name]) for name in names]}, index=pd.Index(names, name="quantity"))
    if draws is not None:
        bounds = np.array([of_draws(draws[name].to_numpy(), INTERVAL) for name in names])
        frame["value_low"], frame["value_high"] = bounds.T
    return frame


def _by_one(means: xr.Dataset, draws: xr.Dataset | None, names: list[str], dim: str) -> pd.DataFrame:
    ids = means[names[0]].to_index() if dim in means.coords else pd.RangeIndex(means.sizes[dim])
    frame = pd.DataFrame(index=pd.Index([text(one) for one in ids], name=dim))
    for name in names:
        frame[name] = means[name].to_numpy().astype(float)
        if draws is not None:
            frame[f"{name}_low"], frame[f"{name}_high"] = of_draws(draws[name].to_numpy(), INTERVAL)
    return frame


def _by_many(values: xr.DataArray, dims: tuple[str, ...]) -> pd.DataFrame:
    """Rows by all dimensions but the last, whose values are the columns; a row a number where these are too many."""
    series = values.to_series()
    index = series.index.set_names([str(dim) for dim in dims])
    series = pd.Series(series.to_numpy(dtype=float), index=index)
    if values.sizes[dims[-1]] > MOST_COLUMNS:
        frame = series.sort_values(ascending=False, kind="stable").head(MOST_ROWS).rename("value").to_frame()
    else:
        frame = series.unstack(sort=False)
    names = [str(name) for name in frame.index.names]
    rows = [key if isinstance(key, tuple) else (key,) for key in frame.index]
    frame.index = pd.MultiIndex.from_tuples([tuple(map(text, key)) for key in rows], names=names)
    frame.columns = pd.Index([text(column) for column in frame.columns])
    return frame


