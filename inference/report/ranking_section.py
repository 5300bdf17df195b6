"""The section on the items that were compared, by their scores."""

from ..fitted.intervals import INTERVAL
from ..fitted.item_ranking import beats, item_ranking, ranks_items
from ..plots.ranking import plot_ranking
from ..plots.style import every
from .sections import Section, section
from .subject import Subject

MOST_ITEMS = 100  # that are listed
MOST_PAIRS = 12  # items whose probabilities of being better than each other are shown


def ranking_section(subject: Subject) -> Section | None:
    """Scores and ranks of what was compared, and who beats whom; None where the fit gives no scores."""
    source = subject.source
    if not ranks_items(source):
        return None
    items, pairs = item_ranking(source), beats(source)
    items.index, pairs.index = items.index.map(str), pairs.index.map(str)
    n = len(items)
    return section(
        "ranking",
        "Ranking",
        n=n,
        interval=f"{INTERVAL:.0%}",
        n_parts=int(items["part"].max()) if "part" in items else 1,
        items=items.head(MOST_ITEMS),
        pairs=pairs.set_axis(pairs.columns.map(str), axis=1) if n <= MOST_PAIRS else None,
        files=[(every(n, "item"), items), ("Probability of being better than another", pairs)],
        drawn=lambda: plot_ranking(source),  # type: ignore[arg-type]
    )
