"""Comparisons in parts that nothing connects, or of preferences in place of true labels, and ties that few gave."""

from collections.abc import Iterator

import numpy as np

from ...data import Annotations
from ...data.arrays import counts
from ...data.comparisons import ALONE, FEWEST, PARTS_MEND, parts, told_parts
from ..fitted.fitted import Fitted
from ..fitted.item_ranking import item_scores, ranks_items, takes_as_given
from ..fitted.posterior import Posterior, posterior_of
from .of_crowd import crowd_of, open_question
from .register import Labels, Said, check

TIE = 2  # of the classes left, right and tie
LEAD = 6.0  # nats by which preferences explain the annotations better
MENDED = "preferences are fitted by cp.fit('auto', cp.read(…, preferences=True))"
SPREAD = 3.0  # standard deviation of the scores of preferences
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


@check("preferences", "crowd", needs={"memory"})
def preferences(of: Labels) -> Iterator[Said]:
    """Scores of true labels, where what workers gave is more like preferences of their own.

    Who errs about a true label does so whatever the pair; who draws a preference differs from others the more often,
    the nearer the items are. The latter says with a score for each item what a story of errors says with true labels
    and confusion matrices, too. It is said of 55 of 64 simulated crowds of preferences, which are all 32 with 1,008
    comparisons and 23 of 32 with 168, and of 1 of 64 crowds of errors (``benchmarks/comparisons.py``). Where
    nearly every comparison has one annotation nothing tells, which is said.
    """
    annotations = of.annotations
    if annotations.sides is None or not isinstance(of, Fitted | Posterior):
        return
    fit = posterior_of(of)
    if not ranks_items(fit) or takes_as_given(fit):
        return
    of_tasks = annotations.counts_by_kind().sum(-1)
    if of_tasks[of_tasks < 2].sum() >= ALONE * of_tasks.sum():
        if annotations.gold is None and annotations.n_annotations >= FEWEST:
            yield Said("nearly every comparison has one annotation: nothing tells preferences from errors", MENDED)
        return
    explained, score = _by_preferences(annotations)
    lead = explained - max(_explained(fitted) for fitted, _ in fit.weighty)
    if lead < LEAD:
        return
    larger = float(item_scores(fit).std() / max(score.std(), 1e-9))
    yield Said(
        "the comparisons are more like preferences, which each draws by the items' scores, than like errors about a "
        f"true label of each pair, by {lead:.0f} nats: scores and intervals of preferences are others, and these "
        f"{larger:.1f} times as large",
        MENDED,
        {"lead": lead, "larger": larger},
    )


def _explained(fitted: Fitted) -> float:
    """The log-likelihood of the annotations by a story; of several draws the mean, and half their parameters more."""
    by_draw = fitted.log_likelihood().sum(-1)
    return float(by_draw.mean()) + (len(fitted.annotations.items) / 2 if by_draw.size > 1 else 0.0)


def _by_preferences(annotations: Annotations) -> tuple[float, np.ndarray]:
    """The log-likelihood of the annotations where each is a draw by the items' scores (Davidson 1970), and these.

    Scores have a normal prior of :data:`SPREAD`, and sum to zero.
    """
    from scipy.optimize import minimize  # a third of a second to import

    n_items, n_classes = len(annotations.items), annotations.n_classes
    pairs, place = np.unique(np.asarray(annotations.sides), axis=0, return_inverse=True)
    votes = np.zeros((len(pairs), n_classes))
    np.add.at(votes, place.ravel(), annotations.votes())
    left, right = pairs.T
    of_gap = np.array([0.5, -0.5, 0.0])[:n_classes]
    of_tie = np.arange(n_classes) == TIE

    def log_probs(at: np.ndarray) -> np.ndarray:
        logs = (at[left] - at[right])[:, None] * of_gap + at[n_items] * of_tie
        found: np.ndarray = logs - np.logaddexp.reduce(logs, axis=1, keepdims=True)
        return found

    def loss(at: np.ndarray) -> tuple[float, np.ndarray]:
        logs = log_probs(at)
        excess = np.exp(logs) * votes.sum(1, keepdims=True) - votes
        slope = np.append(at[:n_items] / SPREAD**2, (excess @ of_tie).sum())
        np.add.at(slope, left, excess @ of_gap)
        np.add.at(slope, right, -excess @ of_gap)
        return float(-(votes * logs).sum() + (at[:n_items] ** 2).sum() / (2 * SPREAD**2)), slope

    at = minimize(loss, np.zeros(n_items + 1), jac=True, method="L-BFGS-B").x
    return float((votes * log_probs(at)).sum()), at[:n_items] - at[:n_items].mean()


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
