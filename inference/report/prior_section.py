"""The section on the prior, in numbers beside those of the annotations."""

from __future__ import annotations

import inspect
import re
from typing import Any

import numpy as np
import pandas as pd

from ..fitted.fitted import Fitted
from ..fitted.summary import groups_fact
from ..fitted.worker_prior import WorkerPrior, outweighed, worker_prior
from .html import Section, facts, paragraph, section, tag, warning
from .subject import Subject
from .tables import table


def prior_section(subject: Subject) -> Section:
    """For how many annotations the prior counts and what it expects, and the story's hyperparameters."""
    _, fit = subject.lead
    prior = worker_prior(fit)
    pairs = [(name.replace("_", " "), plain(value)) for name, value in all_hyperparameters(fit).items()]
    pairs += groups_fact(fit).items()
    about = (
        "A prior that counts like as many annotations as a worker gave has as much say as these; where it counts like "
        "more, it rules."
    )
    if prior is None:
        said = "What the story was given."
    else:
        said = f"The prior counts like {prior.text(fit.annotations.of_classes().n_by_worker())}."
    return section(
        "prior",
        "Prior",
        paragraph(subject.of_lead, said),
        None if prior is None else paragraph(about, class_="note"),
        *(warning(f"{text[:1].upper()}{text[1:]}.") for text in outweighed(fit)),
        None if prior is None else table(_numbers(fit, prior), "Prior and annotations of a worker"),
        None
        if prior is None or prior.is_exact
        else paragraph("What the prior counts like is estimated from draws of it.", class_="note"),
        tag("h3", "Hyperparameters, defaults included") if pairs else None,
        facts(pairs, wide=True) if pairs else None,
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
