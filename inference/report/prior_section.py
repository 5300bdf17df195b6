"""The section on the prior, in numbers beside those of the annotations."""

import inspect
import re
from typing import Any

import numpy as np
import pandas as pd

from ..findings.of_prior import WorkerPrior, worker_prior
from ..findings.summary import groups_fact
from ..fitted.fitted import Fitted
from .sections import Section, section
from .subject import Subject


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
