r"""Families of workers who err together, where each family has errors of its own.

One impression that is common to all workers takes what one family says against another for the truth. With
:math:`r_{jj'}` the share of the excess of agreement of two workers given the votes' shares in what it would be if they
gave the same, and :math:`\pi_{jj'}` its precision where annotations are independent (:mod:`.dependence`), pairs within
a family f have a mean :math:`\mu_f`, anything from 0 to 1, and pairs of different families one from -1 to 1. With
:math:`\Pi` and m the sum of the precisions of such a block of pairs and their mean, this block says for a partition

.. math:: \log \int \exp\Big(\Pi \Big(\mu m - \frac{\mu^2}{2}\Big)\Big) \, p(\mu) \, d\mu

Independent workers agree the more the abler both are, by :math:`u_j u_{j'}`, so that able workers look like a family
against the others, in most crowds. A partition is kept where it is more probable than none also of what lies beyond
these products. Each of both has the abilities u that explain its pairs best, of a normal distribution around their
mean, of standard deviation :data:`ABLE`, and how far pairs are from the products counts, too, by
:math:`-\tfrac12 \sum \pi_{jj'} (r_{jj'} - u_j u_{j'})^2`. A family beside lone workers looks much like workers who are
abler than these, and more tasks are needed to find it than to find two families.

The labels of a story would not do: a large family has decided them, and agrees no more given what it says. Of several
questions a worker's shares of annotations are of each question, and the excess and its precision are sums over them.

Partitions are the cuts of average linkage. They have the probability of a Chinese restaurant process with concentration
1 before the annotations are seen (Pitman 2006), :math:`P = \prod_f (n_f - 1)! / J!`: it costs what there is to choose
from.
"""

from collections.abc import Hashable

import numpy as np
from scipy.special import gammaln, log_ndtr

from ...data import Annotations
from ...data.id_text import name_text
from ...data.questions import Units
from .beyond_chance import FEWEST, of_each_question
from .dependence import given_labels
from .gold_mix import shares_of_votes

BY_FAMILY = "dawid_skene with shared errors by family"
"""The story of the default set whose families are found here."""

WORKERS = 40  # at the most; each family adds a sum over its impressions to each task
ABLE = 0.14  # standard deviation of the square roots of what workers of different abilities agree beyond the votes
STEPS = 200  # towards these, at the most
CLEAR = 3.0  # nats by which a partition is better than one family, as hardly any is of independent workers
CELLS = 2e7  # of tasks, families and pairs of classes at the most
ROWS = 2e5  # annotations that are looked at; of more a sample of the tasks


def error_families(annotations: Annotations, clear: float = CLEAR) -> dict[Hashable, str] | None:
    """Return the family of each worker, by name; None where one mean of all pairs or abilities explain it as well.

    None also where it cannot be told: of unnamed workers, more than :data:`WORKERS` of them, fewer than twenty tasks,
    comparisons, levels of another truth, and workers who are pairs with a question; and where a fit would be larger
    than :data:`CELLS`. Workers are of one family on all questions.

    Args:
        clear: nats by which the families have to be better than one.
    """
    if not annotations.named or annotations.scored or annotations.sides is not None:
        return None
    if annotations.n_tasks * 2 * annotations.n_classes**2 > CELLS:  # of two families, the fewest
        return None
    if isinstance(annotations.workers, Units):
        return None
    given = annotations.of_classes()
    active = np.unique(np.asarray(given.worker))
    if not 3 < len(active) <= WORKERS or (np.bincount(given.task) > 0).sum() < FEWEST:
        return None
    of_all = pair_excess(given, shares_of_votes(given))
    sums, variance, most = (of_pairs[np.ix_(active, active)] for of_pairs in of_all)
    excess = np.where(most > 0, sums / np.maximum(most, 1e-9), 0.0)
    precision = most**2 / np.maximum(variance, 1e-9)
    one, *cuts = _cuts(excess)
    score = [_evidence(cut, excess, precision) + _log_prior(cut) for cut in (one, *cuts)]
    best = (one, *cuts)[int(np.argmax(score))]
    if max(score) < score[0] + clear or annotations.n_tasks * (max(best) + 1) * annotations.n_classes**2 > CELLS:
        return None
    if _explained(best, excess, precision) <= _explained(one, excess, precision):
        return None
    names = list(annotations.workers)
    of_worker: dict[Hashable, str] = dict.fromkeys(names, "no annotations")
    for j, family in zip(active.tolist(), best.tolist(), strict=True):
        of_worker[names[j]] = f"family {family}" if (best == family).sum() > 1 else alone(names[j])
    return of_worker


def alone(worker: Hashable) -> str:
    """The name of a family of one worker."""
    return f"{name_text(worker)} alone"


def pair_excess(annotations: Annotations, posterior: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return by pair of workers the excess of agreement given the labels, ``(J, J)``, in annotations.

    Beside it its variance where they are independent, and what it would be if both gave the same: ``(J, J)`` each.

    Args:
        annotations: of named workers, without abstentions.
        posterior: label probabilities, ``(N, K)``.
    """
    asked, n_workers = of_each_question(annotations), annotations.n_workers
    owner, question = np.arange(n_workers), np.zeros(n_workers, int)
    if isinstance(pairs := asked.workers, Units):
        owner, question = annotations.workers.index_of(pairs.tasks)[pairs.task], pairs.question
    task, worker, label, rows = given_labels(asked, posterior, ROWS)
    found = np.zeros((3, n_workers, n_workers))
    for q in np.unique(question):
        of_q, at = question == q, question[worker] == q
        shares = np.zeros((n_workers, *rows.shape[1:]))
        shares[owner[of_q]] = rows[of_q]
        found += _of_a_question(task[at], owner[worker[at]], label[at], shares, posterior)
    excess, variance, most = found
    return excess, variance, most


def _of_a_question(
    task: np.ndarray, worker: np.ndarray, label: np.ndarray, rows: np.ndarray, posterior: np.ndarray
) -> np.ndarray:
    """Return what :func:`pair_excess` does, ``(3, J, J)``, of the annotations whose workers have these shares."""
    from scipy.sparse import csr_array

    of_these, task = np.unique(task, return_inverse=True)
    n_workers, n_classes = rows.shape[:2]
    cells = (n_workers, n_classes, n_workers, n_classes)
    given = csr_array((np.ones(len(task)), (task, worker * n_classes + label)), (len(of_these), n_workers * n_classes))
    excess, variance, most = found = np.zeros((3, n_workers, n_workers))
    for k in range(n_classes):
        share, weight = rows[:, k], np.asarray(posterior, float)[of_these, k]
        both = (given.T @ (given * weight[:, None])).tocoo()
        one, said, other, other_said = np.unravel_index(both.row.astype(np.int64) * both.shape[1] + both.col, cells)

        def sums(values: np.ndarray, pair: np.ndarray = one * n_workers + other) -> np.ndarray:
            return np.bincount(pair, values, n_workers**2).reshape(n_workers, n_workers)

        n, expected = sums(both.data), sums(both.data * share[one, other_said])
        excess += sums(both.data * (said == other_said)) - expected - expected.T + n * (share @ share.T)
        covariance = np.einsum("jx,xy->jxy", share, np.eye(n_classes)) - np.einsum("jx,jy->jxy", share, share)
        variance += n * (covariance.reshape(n_workers, -1) @ covariance.reshape(n_workers, -1).T)
        spread = np.sqrt(np.maximum(1 - (share**2).sum(-1), 0.0))
        most += n * np.outer(spread, spread)
    return found


def _cuts(excess: np.ndarray) -> list[np.ndarray]:
    """The cuts of average linkage as families of workers, ``(J,)`` each, from one family of all to each one alone."""
    from scipy.cluster.hierarchy import cut_tree, linkage
    from scipy.spatial.distance import squareform

    apart = excess.max() + 1 - excess
    np.fill_diagonal(apart, 0.0)
    return list(cut_tree(linkage(squareform((apart + apart.T) / 2, checks=False), "average")).T[::-1])


def _abilities(family: np.ndarray, excess: np.ndarray, precision: np.ndarray) -> np.ndarray:
    """Return the abilities ``(J,)`` whose products, and the means of families, explain the pairs' excesses best."""
    precision = precision * ~np.eye(len(family), dtype=bool)
    is_of = np.eye(family.max() + 1)[family]
    within = precision * (family[:, None] == family) * (family.max() > 0)  # of one family the products are all
    total = (is_of * (within @ is_of)).sum(0)
    ability = np.full(len(family), np.sqrt(max((precision * excess).sum() / max(precision.sum(), 1e-9), 0.0)))
    for _ in range(STEPS):
        beyond = within * (excess - np.outer(ability, ability))
        mean = np.clip((is_of * (beyond @ is_of)).sum(0) / np.maximum(total, 1e-9), 0.0, 1.0)[family]
        explained = precision * excess - within * mean
        best = (explained @ ability + ability.mean() / ABLE**2) / (precision @ ability**2 + 1 / ABLE**2)
        moved, ability = np.abs(best - ability).max(), (ability + best) / 2
        if moved < 1e-4:
            break
    return ability


def _explained(family: np.ndarray, excess: np.ndarray, precision: np.ndarray) -> float:
    """The log-probability of the pairs' excesses and a partition, at the abilities that explain them best."""
    ability = _abilities(family, excess, precision)
    beyond = excess - np.outer(ability, ability)
    apart = np.triu(precision * beyond**2, 1).sum() + ((ability - ability.mean()) ** 2).sum() / ABLE**2
    return float(_evidence(family, beyond, precision) - apart / 2) + _log_prior(family)


def _evidence(family: np.ndarray, excess: np.ndarray, precision: np.ndarray) -> float:
    """The log-probability of the pairs' excesses given a partition, without what is the same for all partitions."""
    one, other = np.triu_indices(len(family), 1)
    block = np.where(family[one] == family[other], family[one] + 1, 0)
    total = np.bincount(block, precision[one, other])
    mean = np.bincount(block, (precision * excess)[one, other])[total > 0] / total[total > 0]
    root, low = np.sqrt(total[total > 0]), np.where(np.flatnonzero(total > 0) == 0, -1.0, 0.0)
    above, below = log_ndtr((mean - low) * root), log_ndtr((mean - 1) * root)
    mass = above + np.log1p(-np.exp(below - above)) - np.log(1 - low)
    return float(((mean * root) ** 2 / 2 + np.log(2 * np.pi) / 2 - np.log(root) + mass).sum())


def _log_prior(family: np.ndarray) -> float:
    sizes = np.bincount(family)
    return float(gammaln(sizes[sizes > 0]).sum() - gammaln(len(family) + 1))
