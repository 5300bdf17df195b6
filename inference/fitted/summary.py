"""A fit in a few lines: what was fitted, whether to trust it, what was found."""

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ...data import Annotations
from ...models.parts.classifier import PREFIX, Classifier
from ..engines.diagnostics import smallest_ess, worst_rhat
from .workers import fitted_scores

if TYPE_CHECKING:
    from ..results import Fit
    from .labels import Labelled


@dataclass(frozen=True)
class Summary:
    """Sections of text and tables; prints as text, shows as HTML in notebooks."""

    title: str
    facts: dict[str, str]
    tables: dict[str, pd.DataFrame]
    warnings: tuple[str, ...]

    def __str__(self) -> str:
        width = max(map(len, self.facts))
        lines = [self.title, "", *(f"{name:<{width}}  {text}" for name, text in self.facts.items())]
        for name, table in self.tables.items():
            lines += ["", name, table.to_string(float_format="{:.3f}".format)]
        return "\n".join([*lines, *(f"\nWarning: {text}" for text in self.warnings)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><th style="text-align:left">{escape(name)}</th><td style="text-align:left">{escape(text)}</td></tr>'
            for name, text in self.facts.items()
        )
        tables = "".join(
            f"<p><b>{escape(name)}</b></p>{table.to_html(float_format='{:.3f}'.format)}"
            for name, table in self.tables.items()
        )
        warnings = "".join(f'<p style="color:#b04000">⚠ {escape(text)}</p>' for text in self.warnings)
        return f"<div><p><b>{escape(self.title)}</b></p><table>{rows}</table>{warnings}{tables}</div>"


def summarise(fit: "Fit", interval: float) -> Summary:
    """Put a fit into a few lines."""
    annotations = fit.annotations
    options = ", ".join(f"{name}={value!r}" for name, value in fit.model.hyperparameters.items()) or "defaults"
    facts = {
        "data": sizes(annotations),
        "hyperparameters": options,
        "engine": _engine(fit),
        "labels": certainty(fit),
    }
    if (classifier := fit.model.classifier) is not None:
        facts["classifier"] = _classifier(fit, classifier)
    if annotations.gold is not None:
        facts["gold"] = gold_accuracy(fit)
    tables = {"classes": _classes(fit, interval)}
    if annotations.named:
        scores = fitted_scores(fit, interval).sort_values("accuracy", ascending=False)
        if len(scores) <= 10:
            tables["workers"] = scores
        else:
            tables[f"the best five of {len(scores):,} workers"] = scores.head(5)
            tables["the worst five"] = scores.tail(5)
    return Summary(f"{fit.story} fitted by {fit.method.upper()}", facts, tables, fit.warnings)


def sizes(annotations: Annotations) -> str:
    """How many tasks, workers, classes and annotations there are."""
    return (
        f"{annotations.n_tasks:,} tasks, {annotations.n_workers:,} workers, {annotations.n_classes} classes, "
        f"{annotations.n_annotations:,} annotations"
    )


def _engine(fit: "Fit") -> str:
    seed = fit.settings["seed"]
    n_chains, n_draws = next(iter(fit.outcome.draws.values())).shape[:2]
    if fit.method == "em":
        return f"{len(fit.history) - 1} iterations, log-posterior {fit.history.iloc[-1]:,.3f}, seed {seed}"
    if fit.method == "svi":
        return f"{len(fit.history):,} steps, last loss {fit.history.iloc[-1]:,.2f}, {n_draws:,} draws, seed {seed}"
    rhat, ess = worst_rhat(fit.draws), smallest_ess(fit.draws)
    return (
        f"{n_chains} chains × {n_draws:,} draws, {int(fit.outcome.stats['diverging'].sum())} divergences, "
        f"R̂ up to {rhat[0]:.3f} ({rhat[1]}), effective sample size from {ess[0]:,.0f} ({ess[1]}), seed {seed}"
    )


def _classifier(fit: "Fit", classifier: Classifier) -> str:
    """What it is, and whether its weights have a posterior."""
    name = classifier.network if isinstance(classifier.network, str) else _name_of(classifier.network)
    sampled = {site: draws[0, 0].size for site, draws in fit.outcome.draws.items() if site.startswith(PREFIX)}
    if sampled:
        by = {"em": "at their mode", "svi": "with an approximate posterior", "nuts": "with draws of their posterior"}
        prior = f"normal prior of standard deviation {classifier.prior:g}"
        return f"{name}, Bayesian: {sum(sampled.values()):,} weights {by[fit.method]}, {prior}"
    if not fit.outcome.fixed:
        return f"{name}, without weights"
    by = {
        "em": "optimised",
        "svi": "optimised with the bound",
        "nuts": "frozen at EM's solution; a prior= samples them",
    }
    return f"{name}: weights {by[fit.method]}"


def _name_of(network: object) -> str:
    return getattr(network, "__name__", type(network).__name__)


def certainty(fit: "Labelled") -> str:
    """How many tasks have no sure label."""
    doubtful = int((fit.posterior.max(-1) < 0.9).sum())
    return f"{doubtful:,} of {len(fit.posterior):,} tasks have no label of probability 0.9"


def gold_accuracy(fit: "Labelled") -> str:
    """How many gold labels are found, and whether the fit was told them."""
    gold = np.asarray(fit.annotations.gold)
    known = gold >= 0
    used = fit.annotations.evidence is not None and np.isinf(fit.annotations.evidence[known]).any()
    right = float((fit.posterior.argmax(-1) == gold)[known].mean())
    return f"accuracy {right:.4f} on {known.sum():,} gold tasks, " + ("which the fit was told" if used else "unseen")


def _classes(fit: "Fit", interval: float) -> pd.DataFrame:
    index = fit.annotations.classes.to_index("class")
    frame = pd.DataFrame({"share_of_labels": fit.posterior.mean(0)}, index=index)
    if "prevalence" in fit.outcome.draws:
        draws = fit.outcome.draws["prevalence"]
        frame["prevalence"] = draws.mean((0, 1))
        if fit.has_draws:
            tail = (1 - interval) / 2
            frame["low"], frame["high"] = np.quantile(draws, [tail, 1 - tail], axis=(0, 1))
    return frame
