"""Notebook view of a source of labels: results that it already holds, and counts of annotations, without fitting."""

from collections.abc import Mapping, Sequence

import numpy as np
from markupsafe import Markup

from ...data.cards import BLUE, ORANGE, bar, card, facts, histogram, short, table
from ...data.id_text import n_shown
from ..engines.finding import sentences
from ..fitted.fitted import Fitted
from ..fitted.posterior import Posterior
from ..fitted.realised import realised_accuracy
from ..sources.on_disk import Files
from .facts import beside_votes
from .gold_share import gold_accuracy
from .look import findings
from .summary import certainty, course, in_brief, options_text, sizes

CLASSES, WORKERS = 8, 6  # shown
BINS = 20  # of the labels' probabilities, which lie above 1/K


def card_of(fit: Posterior) -> str:
    """The card of a story's fit, of an average, or of labels without a likelihood."""
    if fit.rule is not None:
        known = {} if fit.rule.classifier is None else {"classifier": repr(fit.rule.classifier)}
        then = ("fit.labels", "fit.workers", "fit.summary()")
        return result_card(fit, f"{fit.story}, without a likelihood", known, then=then)
    if fit.only is None:
        return _of_average(fit)
    return _of_story(fit, fit.only) if fit.only.files is None else _of_files(fit.only, fit.only.files)


def _of_files(fitted: Fitted, files: Files) -> str:
    brief = in_brief(fitted, files)
    data, then = brief.facts.pop("data"), ("fit.workers", "fit.parameters", "fit.summary()")
    return card(brief.title, data, facts(brief.facts), warnings=sentences(brief.findings), then=then)


def _of_average(fit: Posterior) -> str:
    known = {"left out": ", ".join(fit.left_out)} if fit.left_out else {}
    if fit.votes:
        known["share of the votes"] = f"{fit.mean_votes:.0%}"
    weights = fit.weights.sort_values(ascending=False)
    rows = ([short(name), bar(float(weight))] for name, weight in weights.items())
    return result_card(
        fit,
        "Average of stories",
        known,
        table("stories", ["story", "weight"], rows),
        then=("fit.labels", "fit.workers", "fit.comparison", "fit.summary()"),
    )


def _of_story(fit: Posterior, fitted: Fitted) -> str:
    chains, draws = fitted.shape
    if fitted.method == "nuts":
        stats = fitted.outcome.stats
        diverging = f", {int(np.sum(stats['diverging'])):,} divergences" if "diverging" in stats else ""
        engine = f"{chains} chains × {draws:,} draws{diverging}, seed {fitted.settings.get('seed')}"
    else:
        engine = course(fitted.method, fitted.outcome.history, draws, fitted.settings.get("seed", 0))
    known = {"hyperparameters": options_text(fitted.model), "engine": engine}
    then = ["fit.labels", "fit.workers", "fit.summary()", "fit.report(path)", "cp.check(fit)", "fit.idata"]
    return result_card(
        fit,
        f"{fitted.story} by {fitted.method.upper()}",
        known,
        then=then,
    )


def result_card(
    source: Posterior,
    title: str,
    known: Mapping[str, object],
    *parts: Markup | None,
    then: Sequence[str] = (),
) -> str:
    """A card with what is known, the certainty of the labels, the classes and the workers.

    Args:
        source: whose label probabilities are there already.
        title: what made them.
        known: facts by name.
        parts: others of the card.
        then: calls that show more.
    """
    annotations, posterior = source.annotations, np.asarray(source.posterior, dtype=float)
    sure = posterior.max(-1, initial=0.0)
    differ = int(beside_votes(source).differs.sum())
    labels = {"labels": certainty(source), "other than the majority vote": f"{differ:,}"}
    if annotations.gold is not None:
        labels["gold"] = gold_accuracy(source)
    return card(
        title,
        sizes(source.given),
        facts({**known, **labels}),
        *parts,
        certainty_histogram(sure, annotations.n_classes),
        _classes(source, posterior),
        _workers(source),
        warnings=sentences(findings(source)),
        then=then,
    )


def certainty_histogram(sure: np.ndarray, n_classes: int) -> Markup | None:
    """Return the histogram of label probabilities, from 1/K to 1; None without labels."""
    if not len(sure):
        return None
    counts, _ = np.histogram(sure, BINS, (1 / n_classes, 1.0))
    return histogram("labels by probability", counts, f"{1 / n_classes:.2f}", "1")


def _classes(source: Posterior, posterior: np.ndarray) -> Markup:
    """The classes' mean probabilities over the tasks, the largest first where there are many."""
    shares, names = posterior.mean(0), list(source.annotations.classes)
    n = n_shown(len(names), CLASSES)
    order = np.arange(n) if n == len(names) else source.annotations.kind.shown(shares, n)
    left = len(names) - len(order)
    more = f"and {left:,} more classes" if left else ""
    return table("classes", ["class", "mean probability"], ([short(names[k]), bar(shares[k])] for k in order), more)


def _workers(source: Posterior) -> Markup | None:
    """The workers, or those who agree with the labels most and least, with their annotations."""
    annotations = source.annotations
    if not annotations.named or not annotations.n_workers:
        return None
    right, given = realised_accuracy(source.posterior_of_workers, annotations), source.given.n_by_worker()
    active = np.flatnonzero(np.isfinite(right))
    order = active[np.argsort(-right[active], kind="stable")]
    left = len(order) - WORKERS
    if left > 0:
        order = np.concatenate([order[: WORKERS // 2], order[-(WORKERS // 2) :]])
    names = annotations.workers
    rows = ([short(names[j]), f"{given[j]:,}", bar(right[j], color=ORANGE if right[j] < 0.5 else BLUE)] for j in order)
    more = f"and {left:,} between these" if left > 0 else ""
    return table("workers", ["worker", "annotations", "realised accuracy"], rows, more)
