"""The appendix on the computation: R-hat, effective sample sizes and rank plots, or the course of the engine."""

from __future__ import annotations

import pandas as pd

from ..engines.diagnostics import ESS_LIMIT, FAR_APART, RHAT_LIMIT, WorstEntry, worst_entries
from ..fitted.fitted import Fitted
from ..plots import plot_history
from ..plots.chain_ranks import draw_chain_ranks
from .html import Section, paragraph, section, warning
from .pictures import picture
from .subject import Subject
from .tables import table

MOST_PANELS = 9  # rank plots
NO_POSTERIOR = "em"  # the engine whose result is a point


def convergence_section(subject: Subject) -> Section:
    """Return the section on trust in the computation; trust in the story is the subject of the checks."""
    _, fit = subject.lead
    said = subject.warnings
    none = paragraph(
        "The engine gave no warnings." if len(subject.fits) == 1 else "The engines gave no warnings.",
        " This is about the computation alone: it says nothing of whether the story describes the annotations.",
    )
    parts: list[object] = [*(warning(text) for text in said)] if said else [none]
    if subject.stack is not None:
        parts.append(paragraph(subject.of_lead))
    parts += _sampled(fit) if fit.shape[0] > 1 else _without_chains(fit)
    if fit.method != "nuts" and len(fit.history) > 1:
        parts.append(picture(lambda: plot_history(fit), "Convergence of the engine"))
    return section("convergence", "Appendix: the computation", *parts)


def _sampled(fit: Fitted) -> list[object]:
    """R-hat and effective sample sizes of each parameter's worst entry, and rank plots of the worst ones."""
    found = worst_entries(fit.named_draws)
    limit = ESS_LIMIT * fit.shape[0]
    meant = (
        "Of each parameter the entry with the largest R̂, and the smallest effective sample sizes of any entry. R̂ "
        f"compares the chains: above {RHAT_LIMIT} they agree only roughly, above {FAR_APART} they do not agree. The "
        "effective sample sizes say how many independent draws are worth as much, for means (bulk) and for the bounds "
        f"of intervals (tail); below {limit:,} they are too small (Vehtari et al. 2021)."
    )
    worst = sorted(found, key=lambda one: -one.rhat)[:MOST_PANELS]
    ranks = (
        "Ranks of the draws in each chain, of each parameter’s entry with the largest R̂. Where chains agree each has "
        "about as many draws of every rank; a chain with many low or many high ranks is elsewhere than the others."
    )
    return [
        table(_frame(found), "R̂ and effective sample sizes by parameter"),
        paragraph(meant, class_="note"),
        picture(lambda: draw_chain_ranks({one.entry: one.draws for one in worst}), "Rank plots"),
        paragraph(ranks, class_="note"),
    ]


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


def _without_chains(fit: Fitted) -> list[object]:
    """Why there is no R-hat."""
    if fit.method == NO_POSTERIOR:
        said = (
            "EM ends at one point, the mode of the posterior, so that there are no chains whose R̂ could be compared; "
            "intervals are of draws around it. NUTS (method='nuts') samples the posterior, in several chains."
        )
    else:
        said = (
            f"The {fit.shape[1]:,} draws by {fit.method.upper()} are independent draws of one approximation of the "
            "posterior, so that there are no chains whose R̂ could be compared. NUTS (method='nuts') samples the "
            "posterior itself, in several chains."
        )
    return [paragraph(said)]
