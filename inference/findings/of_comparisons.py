"""Comparisons in parts that nothing connects, or of preferences in place of true labels, and ties that few gave.

And judges who are compared themselves, and prefer what is their own.
"""

from collections.abc import Iterator

import numpy as np

from ...data import Annotations
from ...data.arrays import counts
from ...data.comparisons import ALONE, FEWEST, PARTS_MEND, parts, told_parts
from ..fitted.fitted import Fitted
from ..fitted.item_ranking import item_scores, ranks_items, takes_as_given
from ..fitted.posterior import Posterior, posterior_of
from .model_names import same_models, short_name
from .of_crowd import crowd_of, open_question
from .register import Labels, Said, check

TIE = 2  # of the classes left, right and tie
LEAD = 6.0  # nats by which preferences explain the annotations better
MENDED = "preferences are fitted by cp.fit('auto', cp.read(…, preferences=True))"
SPREAD = 3.0  # standard deviation of the scores of preferences
MORE = 0.1  # of the label probabilities than twice the share of the annotations
FEWEST_OWN = 20  # comparisons of a judge's own item
FAVOUR, ERRORS = 0.1, 2.0  # of the comparisons, and standard errors of it, above what others' judgments let expect


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


@check("prefers_own", "crowd", needs={"workers"})
def prefers_own(of: Labels) -> Iterator[Said]:
    """Judges who are compared themselves, as language models are, and name their own item more often than expected.

    Expected is what the other judges name of the same two items, stretched from even, or towards it, as the judge's own
    judgments of the other items are: an accurate judge among less accurate ones, or a guesser, favours nothing by that.
    Where the others agree neither on which items are better nor on single tasks more than by chance, nothing tells, and
    nothing is said.
    """
    annotations = of.annotations.across_questions()
    if annotations.sides is None:
        return
    own_item = same_models(annotations.workers, annotations.items)
    for worker in np.flatnonzero(own_item >= 0).tolist():
        name, found = annotations.workers[worker], _favour(annotations, worker, own_item)
        if found is None:
            continue
        item, (n, share, expected, error) = annotations.items[int(own_item[worker])], found
        as_item = "" if short_name(name) == short_name(item) else f", {item!r}"
        if n >= FEWEST_OWN and share - expected > max(FAVOUR, ERRORS * error):
            yield Said(
                f"worker {name!r} is one of the items{as_item}, and prefers it: of {n:,.0f} comparisons of it "
                f"{share:.0%} name it the better one, and {expected:.0%} would by what others say, and the worker of "
                "other items",
                "leave out the rows in which it compares itself: table = annotations.to_frame(); table = "
                f"table[(table['worker'] != {name!r}) | (table[['left', 'right']] != {item!r}).all(axis=1)]; "
                "and fit the table",
                {"worker": name, "item": item, "n": n, "share": share, "expected": expected},
            )


def _favour(annotations: Annotations, worker: int, own_item: np.ndarray) -> tuple[float, float, float, float] | None:
    """The number of a worker's comparisons of its own item, the share that names it, the one expected, and its error.

    What others say of items of their own is left out. Of each pair of items shares are means over tasks, a tie counts
    half, and the variance is that of yes and no with one more of each. Where items are so even that the others' shares
    tell no stretch, it is that of a judge who is always right (:func:`_clarity`). None where the worker, or nobody
    else, compared the item, or the others agree neither on pairs nor on tasks.
    """
    label, task = np.asarray(annotations.label), np.asarray(annotations.task)
    given = label < annotations.n_classes
    who, sides, item = np.asarray(annotations.worker), np.asarray(annotations.sides), own_item[worker]
    is_own, of_itself = who == worker, (sides[task] == own_item[who][:, None]).any(1)
    pairs = np.sort(sides, axis=1)
    _, place = np.unique(pairs, axis=0, return_inverse=True)
    n_pairs, place = int(place.max()) + 1, place.ravel()
    one = np.where(pairs[:, 1] == item, pairs[:, 1], pairs[:, 0])  # of a pair with the item it is the one
    credit = np.array([1.0, 0.0, 0.5])[label[given]]
    credit = np.where((sides[:, 0] == one)[task[given]], credit, 1 - credit)
    n, share, variance = np.zeros((3, 2, n_pairs))
    for by, rows in enumerate((is_own[given], ~(is_own | of_itself)[given])):
        weights = counts(annotations)[given][rows]
        total = np.bincount(task[given][rows], weights, annotations.n_tasks)
        of_task = np.bincount(task[given][rows], weights * credit[rows], annotations.n_tasks) / np.maximum(total, 1e-9)
        n[by] = np.bincount(place, total > 0, n_pairs)
        share[by] = np.bincount(place, of_task * (total > 0), n_pairs) / np.maximum(n[by], 1)
        smooth = (share[by] * n[by] + 1) / (n[by] + 2)
        variance[by] = smooth * (1 - smooth) / np.maximum(n[by], 1)
    known = (n > 0).all(0)
    is_of_item = np.zeros(n_pairs, bool)
    is_of_item[place[(sides == item).any(1)]] = True
    own, others = known & is_of_item, known & ~is_of_item
    if not own.any():
        return None
    weight = n[0] * n[1] / np.maximum(n.sum(0), 1)
    gap = share - 0.5
    w = weight[own] / weight[own].sum()
    signal, chance = weight * (gap[1] ** 2 - variance[1]), weight * variance[1]  # of what the others say
    if signal[known].sum() < chance[known].sum():
        clear = _clarity(annotations, given & ~is_own & ~of_itself)
        if clear is None:
            return None
        expected = np.clip(0.5 + gap[1] / clear, 0.0, 1.0)
        error = np.sqrt(float((w**2 * (variance[0] + variance[1] / clear**2)[own]).sum()))
        return float(n[0][own].sum()), float(w @ share[0][own]), float(w @ expected[own]), error
    spread = max(float(signal[others].sum()), 1e-9)
    found = float((weight * gap[0] * gap[1])[others].sum()) / spread
    of_found = float((weight**2 * gap[1] ** 2 * (variance[0] + found**2 * variance[1]))[others].sum()) / spread**2
    of_slope = 1 / (1 + 1 / max(of_found, 1e-9))  # with a slope of 1, give or take 1, before
    slope = max(of_slope * (1 + found / max(of_found, 1e-9)), 0.0)
    expected = np.clip(0.5 + slope * gap[1], 0.0, 1.0)
    of_shares = float((w**2 * (variance[0] + slope**2 * variance[1])[own]).sum())
    error = np.sqrt(of_shares + float(w @ gap[1][own]) ** 2 * of_slope)
    return float(n[0][own].sum()), float(w @ share[0][own]), float(w @ expected[own]), error


def _clarity(annotations: Annotations, rows: np.ndarray) -> float | None:
    """By how much more often right than wrong the workers of some rows are: 2 a - 1, with a how often they are right.

    Two who err independently of each other agree on a task by :math:`(2 a - 1)^2` more than they differ; what all of
    them say whatever the task, as of the side that stands first, is taken from it. None where they agree by less than
    three standard errors.

    Args:
        rows: which, ``(A,)`` of bool; ties among them are left out.
    """
    label, n_workers = np.asarray(annotations.label), annotations.n_workers
    rows = rows & (label < TIE)
    visit = np.asarray(annotations.task, np.int64)[rows] * n_workers + np.asarray(annotations.worker)[rows]
    visits, place = np.unique(visit, return_inverse=True)
    side = np.bincount(place, np.where(label[rows] == 0, 1.0, -1.0)) / np.bincount(place)
    task = visits // n_workers
    n, sums, squares = (np.bincount(task, each) for each in (None, side, side**2))
    n_pairs = float((n * (n - 1)).sum() / 2)
    if n_pairs == 0:
        return None
    agree = float((sums**2 - squares).sum() / 2) / n_pairs - float(side.mean()) ** 2
    return None if agree < 3 / np.sqrt(n_pairs) else float(np.sqrt(agree))
