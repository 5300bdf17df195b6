r"""Several questions about each task that are not equally hard, where each worker has one quality over all of them.

Where errors go evenly to the other classes and a worker is right in :math:`a`, two workers agree on a task in
:math:`\tfrac1K + (1 - \tfrac1K) \rho^2` with :math:`\rho = (K a - 1) / (K - 1)`, however frequent the classes are. So
how often annotations of a question agree says how often they are right, before anything is fitted. Errors that are not
even make a difference of their own: so Dawid and Skene's story tells, too, whether the annotations ask for a confusion
matrix of each worker on each question, by the Bayesian information criterion (Schwarz 1978).
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ...data import Annotations
from ...data.questions import Units
from ...data.some_tasks import some_tasks
from ...models import find_story
from ..densities.model import Model
from ..densities.programs import key_of
from ..densities.sites import parameter_dims
from ..engines.registry import ENGINES, run_at_size
from ..engines.settings import EMSettings
from ..fitted.fitted import Fitted
from ..fitted.posterior import Posterior
from .of_crowd import crowd_of
from .register import Labels, Said, check, once

APART = 0.1  # of the accuracy that agreement on two questions speaks of, from which the story is asked
CLEARLY = 3.0  # standard errors of the difference
LOOKED_AT = 30_000  # annotations; of more a random sample of the tasks that has about so many


class Questions(NamedTuple):
    """Two questions, the easiest and the hardest by how often annotations of a task agree, and both rates."""

    easiest: object
    hardest: object
    agree: tuple[float, float]


@once
def unequal_questions(annotations: Annotations) -> Questions | None:
    """Return the easiest and the hardest question where one quality of a worker does not do for both.

    None where workers have a quality on each question already, where questions have classes of their own, their
    annotations are scores of another truth or comparisons, and where nothing tells.
    """
    if not len(annotations.questions) or not annotations.named or isinstance(annotations.workers, Units):
        return None
    if annotations.kind.own is not None or annotations.scored or annotations.sides is not None:
        return None
    votes, asked = annotations.of_classes().votes().astype(float), np.asarray(annotations.question)
    n = votes.sum(1)
    pairs = np.maximum(n - 1, 0)  # each annotation counts once beside the others of its task
    agree = np.where(pairs > 0, ((votes**2).sum(1) - n) / np.maximum(n, 1), 0.0)
    n_questions, even = len(annotations.questions), 1 / annotations.n_classes
    total = np.bincount(asked, pairs, n_questions)
    rate = np.bincount(asked, agree, n_questions) / np.maximum(total, 1)
    error = np.sqrt(np.bincount(asked, (agree - rate[asked] * pairs) ** 2, n_questions)) / np.maximum(total, 1)
    known = np.flatnonzero(np.bincount(asked, pairs > 0, n_questions) > 1)
    if len(known) < 2:
        return None
    easiest, hardest = known[rate[known].argmax()], known[rate[known].argmin()]
    right = even + (1 - even) * np.sqrt(np.maximum(rate - even, 0) / (1 - even))
    apart, of_chance = rate[easiest] - rate[hardest], float(np.hypot(error[easiest], error[hardest]))
    if right[easiest] - right[hardest] < APART or apart < CLEARLY * of_chance:
        return None
    if _gain_of_own_qualities(annotations.of_classes()) <= 0:
        return None
    names = annotations.questions
    return Questions(names[int(easiest)], names[int(hardest)], (float(rate[easiest]), float(rate[hardest])))


def _gain_of_own_qualities(annotations: Annotations) -> float:
    """Return by how much qualities on each question are better than one over all, in nats after what they cost.

    Each probability costs half the logarithm of the annotations that tell it.
    """
    chosen = np.random.default_rng(0).random(annotations.n_tasks) * annotations.n_rows < LOOKED_AT
    data = annotations.replace(gold=None, evidence=None, prior=None, seconds=None, when=None)
    model, k, gain = Model(find_story("dawid_skene")), data.n_classes, 0.0
    for sign, every in ((-1, data), (1, data.by_question())):
        seen = every if chosen.all() else some_tasks(every, chosen)
        dims = parameter_dims(model, seen)
        outcome = run_at_size(ENGINES["em"], model, seen, dims, key_of(0), EMSettings(), progress=False)
        n = np.maximum(seen.n_by_worker() / k, 1.0)
        cost = k * (k - 1) * np.log(n).sum() / 2
        gain += sign * (float(Fitted(model, seen, outcome, dims=dims).log_likelihood().sum()) - cost)
    return gain


@check("unequal_questions", "crowd", needs={"workers", "memory"})
def questions_apart(of: Labels) -> Iterator[Said]:
    """Questions of which some are much harder than others (:func:`unequal_questions`), for which a rule has no quality.

    A warning where a worker has one quality over all of them: labels of the easy ones may then be turned round with
    those of the hard ones. A note of an average that has a quality on each.
    """
    of_all = of.annotations.across_questions()
    if (isinstance(of, Posterior) and of.rule is not None) or crowd_of(of) is None:
        return
    if (found := unequal_questions(of_all)) is None:
        return
    values = {"easiest": found.easiest, "hardest": found.hardest, "agree": list(found.agree)}
    text = (
        f"the questions are not equally hard: two annotations agree in {found.agree[0]:.0%} on {found.easiest!r}, and "
        f"in {found.agree[1]:.0%} on {found.hardest!r}"
    )
    if of_all is of.annotations:
        yield Said(
            f"{text}. Each worker has one quality over all of them, by which labels of any question may be wrong",
            "cp.fit(…, quality='by_question') has one on each, as 'auto' has unless it is told otherwise",
            values,
        )
    elif isinstance(of, Posterior) and of.is_average:
        yield Said(
            f"{text}. So each worker has a quality on each question, and a row of fit.workers for each",
            "cp.fit(…, quality='shared') has one over all questions",
            values,
            severity="note",
        )
