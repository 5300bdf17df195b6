"""Comparisons of items that nothing connects, and those of which a fit takes many for ties that hardly anybody gave."""

from collections.abc import Iterator

import numpy as np

from ...data.arrays import counts
from ...data.comparisons import PARTS_MEND, parts, told_parts
from .of_crowd import crowd_of, open_question
from .register import Labels, Said, check

TIE = 2  # of the classes left, right and tie
MORE = 0.1  # of the label probabilities than twice the share of the annotations


@check("items_apart", "crowd", needs={"memory"})
def items_apart(of: Labels) -> Iterator[Said]:
    """Items that no chain of comparisons connects, as a note, since reading them warns."""
    annotations = of.annotations
    if annotations.sides is None or annotations.item_features is not None:  # which connect them
        return
    if apart := told_parts(np.asarray(annotations.sides), annotations.items):
        n_joins = int(parts(np.asarray(annotations.sides), len(annotations.items)).max())
        which = f"of a fit that ranks the items cp.next_comparisons(fit, {n_joins}) names such"
        yield Said(apart, f"{PARTS_MEND}; {which}", severity="note")


@check("ties_that_few_gave", "crowd", needs={"workers"})
def ties_that_few_gave(of: Labels) -> Iterator[Said]:
    """Ties among the label probabilities of comparisons that workers gave far less often.

    A tie on which workers name either side, and a side about which they often err, look alike.
    """
    crowd = crowd_of(of)
    if crowd is None or crowd.knows_names or of.annotations.sides is None or of.annotations.n_classes <= TIE:
        return
    is_tie = np.asarray(crowd.given.label) == TIE
    given = float(np.average(is_tie, weights=counts(crowd.given)))
    share = float(crowd.posterior[:, TIE].mean())
    if share < 2 * given + MORE:
        return
    yield open_question(
        f"which comparisons are ties: {share:.0%} of the label probabilities are, and {given:.0%} of the annotations. "
        "Items' scores are log-odds of these true labels, larger than those by which a worker prefers an item",
        "for scores of the annotations themselves make each row a task of its own, and fit one_coin with right=1000 "
        "and wrong=1",
        share=share,
        given=given,
    )
