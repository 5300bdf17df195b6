"""The appendix on the computation: R-hat, effective sample sizes and rank plots, or the course of the engine."""

import pandas as pd

from ..findings.of_draws import ESS_LIMIT, FAR_APART, RHAT_LIMIT, WorstEntry, worst_entries
from ..plots.history import plot_history
from ..plots.ranks import draw_chain_ranks
from .sections import Section, section
from .subject import Subject

MOST_PANELS = 9  # rank plots


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
