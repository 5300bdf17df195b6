"""``cp.fit("auto", …)``: a default set of stories, fitted and averaged with the votes."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

import pandas as pd

from ...data import Annotations
from ...data.errors import real_number
from ...models import SmoothPrevalence, Story, StoryError
from ..baselines.fit_baseline import fit_baseline
from ..engines.checkpoints import CheckpointOptions
from ..engines.progress import progress_bar
from ..findings.of_comparisons import prefers_own
from ..findings.of_crowd import is_one_sided
from ..findings.of_labels import lost_class
from ..fit_story import fit_story
from ..fitted.dependence import dependence
from ..fitted.error_families import BY_FAMILY, error_families
from ..fitted.fitted import Fitted
from ..fitted.learned_prior import LEARNED
from ..fitted.misled import checked
from ..fitted.posterior import Posterior, equal_weights
from .comparing import compare
from .confused_neighbours import neighbours_are_confused
from .weights import LEAST, weights_by_likelihood, weights_by_probability

StorySet = Mapping[str, Mapping[str, Any]]
T = TypeVar("T")

SHARED = "dawid_skene with shared errors"
"""The story of the default set whose workers have one impression of a task in common."""

DEFAULT_SET: dict[str, dict[str, Any]] = {
    SHARED: {"story": "dawid_skene", "shared_error": True},
    "dawid_skene": {},
    "one_coin": {"right": LEARNED, "wrong": LEARNED},
}
"""The default set of stories: by name the options of :func:`crowdppl.fit`, with ``story``, by default the name.

Where workers share errors, the story that lets them does far better than any other; where they do not, it takes what
most workers get wrong for the truth, or a class for an error. Where workers err evenly over the classes, a story with
a confusion matrix for each takes chance for more than that; and where they are right about equally often, so does one
whose prior lets them differ, so that it is learned (:mod:`.learned_prior`). So what decides is how probable the
annotations are by each (:func:`.weights_by_probability`). ``benchmarks/auto.py`` prints what the set reaches on open
crowds, with which in view it was chosen.
"""

DEFAULT_SHARES = {SHARED: 0.1, "dawid_skene": 0.6, "one_coin": 0.3}
"""The weight of each story of :data:`DEFAULT_SET` without a look at the annotations.

Half of it is kept whatever these say (:data:`.BY_PROBABILITY`), but not between a story with and without shared errors:
there the shares are odds, of six to one against them, since of small crowds without any the annotations hardly tell. A
story with one parameter for each worker is a voice beside those with more, enough to decide where they are in doubt.
The shares and the half were chosen with simulated crowds and the open ones in view; of the ten, music alone would have
chosen less than half.
"""

ORDERED_STORY = "graded_response with a smooth prevalence"

ORDERED: dict[str, dict[str, Any]] = {
    ORDERED_STORY: {"story": "graded_response", "truth_prior": SmoothPrevalence(0.8)},
    "graded_response": {},
}
"""Stories beside :data:`DEFAULT_SET` where more than two classes are ordered: :func:`default_set`.

A middle class that has many annotations is frequent, or raters overuse it, and little in the annotations tells which:
to the first it is the latter, unless these are many, and the second has the prevalence that makes them likeliest.
"""

ORDERED_SHARES = {ORDERED_STORY: 0.7, "graded_response": 0.2}
"""The weight of each story of :data:`ORDERED` without a look at the annotations; of one alone it is their sum.

They and the prior's scale were chosen with gold labels in view (``benchmarks/ordered.py --shares``). Of fifteen real
and simulated crowds, by log-score, eleven choose them for the one left out, three the first story alone, one others.
"""

DEFAULT_SET_LEVELS: dict[str, dict[str, Any]] = {"score_factor": {}, "graded_response": {}}
"""The default set of stories where annotations are levels of another truth, in the form of :data:`DEFAULT_SET`.

By the first tasks differ by degrees, of which scores do not tell where the classes begin, so that all are as frequent;
by the second they are of as many kinds as there are classes, and scores tell how frequent each is. So what decides is
how likely the scores are by each (:func:`.weights_by_likelihood`). Of simulated panels of 300 tasks and 4 judges those
of two kinds, of which one has 90 %, are likelier by the second by 56 nats, with .99 of its labels right instead of
.70; those by degrees by the first by 46 nats, as are judges_asset's by 479.
"""

DEFAULT_SET_UNNAMED: dict[str, dict[str, Any]] = {
    f"annotator_groups ({groups})": {"story": "annotator_groups", "groups": groups} for groups in (1, 2, 3)
}
"""The default set of stories where no worker is named, in the form of :data:`DEFAULT_SET`."""


WEIGHTS = ("probability", "equal", "stacking")
OF_TRUTH = ("classifier", "truth_prior")  # options by which all stories have a prior of the truth
VOTES = 0.5
LEFT = 0.05  # probability of independent annotations that every story has beside what is found


def auto(
    annotations: Annotations,
    *,
    stories: Mapping[str, Mapping[str, Any] | str | Story] | Iterable[str | Story] | str | Story | None = None,
    method: str = "em",
    weights: str = "probability",
    votes: float | None = None,
    misled: float | None = None,
    folds: int | None = None,
    seed: int = 0,
    progress: bool = True,
    checkpoints: CheckpointOptions | None = None,
    **options: Any,
) -> Posterior:
    r"""Fit a set of stories, with and without errors that workers share, and average their labels with the votes.

    A story is sure of its labels as if it were true, and no story is. The votes know nothing of the story: of a task
    on which workers disagree they are as unsure as the workers, and of one with few annotations they count for most.
    The probabilities of the average are nearer to how often its labels are right (``benchmarks/auto.py``). Nor do
    annotations say which tasks mislead the whole crowd, so that the probabilities allow for a few of them
    (:mod:`.misled`). Of both there is less where the annotations are independent given the labels, as the stories say,
    as far as that can be told. Of a few hundred tasks it hardly can: labels of clean crowds of that size, with ordered
    classes or without, are right more often than they say, by 2 to 11 percentage points. With ``votes=0`` and
    ``misled=0`` they say what the stories do, which on fifteen of sixteen open crowds is more than is right.

    A story that has lost a class which the votes give to tasks has no weight, by any `weights`. Where all have, of
    workers who give one class each, as labelling functions do whose abstentions are not known, the labels are those of
    the rule ``"smoothed_votes"``. Where a judge of comparisons prefers its own item, stories with shared errors have no
    weight.

    Workers who may copy count as one, with a warning, unless `copies` says otherwise, or they are most of a crowd that
    errs together: stories take what a group says that agrees with itself for the truth (:mod:`.of_copies`). So do the
    repeats of a worker for a task count once where they agree more than independent ones would (:mod:`.repeated`).

    Where the annotations tell of families of workers who err together (:mod:`.error_families`), the story with shared
    errors is fitted with an impression for each of them, too, and both have half of its share.

    Args:
        annotations: who labelled what.
        stories: the stories to fit: a name, a function, several of them, or by name a story or
            ``{"story": …, hyperparameter: …}``, whose story is that of the name where none is given; those of
            :func:`default_set` by default.
        method: the engine of the fits whose labels are averaged; ``"svi"`` and ``"nuts"`` give the workers' scores
            intervals.
        weights: ``"probability"``, by how probable the annotations are by each story: all of the weight of stories of
            which one is another with a part over it, such as errors that workers share, and half of that of stories
            whose parameters are tables; the rest is by :data:`DEFAULT_SHARES`, or the same
            (:func:`.weights_by_probability`). Where annotations are levels of another truth it is by their likelihood
            (:func:`.weights_by_likelihood`). ``"equal"``; or ``"stacking"``, which compares the stories by how well
            they predict held-out annotations, over K folds refitted by EM whatever the fits' engine: the mixture that
            predicts best.
        votes: share of the label probabilities that are the votes' of a task with hardly any annotations, from 0 to
            below 1; of one with ten it is half of that (:class:`.Posterior`). By default 0.5 times the probability that
            annotations of a task depend on each other given its label (:mod:`.dependence`), and 0 where annotations
            are levels of another truth, which name no class.
        misled: the share of tasks that is expected to mislead the whole crowd, from 0 to below 1; what is usual by
            default (:mod:`.misled`).
        folds: K, of the comparison of ``weights="stacking"``; 5 by default.
        seed: of the engines and the folds.
        progress: whether to show a progress bar.
        checkpoints: where each story's fit is kept, in a folder of its own; the comparison of ``weights="stacking"`` is
            not.
        options: of :func:`crowdppl.fit`, for every story, such as ``gold``, ``evidence`` and ``classifier``;
            ``copies="auto"`` by default.

    Returns:
        the average, with its fits, weights and comparison, and the stories that do not fit these data.

    Raises:
        ValueError: none of the stories fits these data, with the reason of each; `weights`, `votes` or `misled` is
            none of these; or `folds` is given where nothing is compared.
    """
    if weights not in WEIGHTS:
        raise ValueError(f"weights={weights!r}: one of {', '.join(map(repr, WEIGHTS))} is needed")
    votes = None if votes is None else real_number("votes", votes, 0, below=1)
    misled = None if misled is None else checked(misled)
    chosen = story_set(stories, annotations, options)
    _check_folds(folds, weights, len(chosen))
    fit_one = partial(fit_story, method=method, seed=seed, progress=False)
    options = {"copies": "auto"} | options
    fits, left_out = fit_each(chosen, annotations, fit_one, options, checkpoints, progress=progress)
    comparison = None
    shares = _shares(chosen) if stories is None else dict.fromkeys(fits, 1.0)
    is_open = stories is None and weights == "probability" and options.get("worker_families") is None
    if is_open and SHARED in fits and (found := error_families(fits[SHARED].annotations)) is not None:
        added = {BY_FAMILY: DEFAULT_SET[SHARED] | {"worker_families": found}}
        fits |= fit_each(added, annotations, fit_one, options, checkpoints, progress=progress, first=len(chosen))[0]
        shares |= dict.fromkeys((SHARED, BY_FAMILY), shares[SHARED] / 2)
    kept, lost = kept_stories(fits)
    if stories is None and (without := without_shared_errors(kept)):
        kept = without
    if len(lost) == len(fits) and only_votes_tell(data := next(iter(fits.values())).annotations, options):
        return replace(Posterior.of(fit_baseline("smoothed_votes", data)), left_out=left_out | lost)
    if weights == "probability" and stories is None and annotations.scored:
        of_fits = weights_by_likelihood(kept, shares)
    elif weights == "probability":
        of_fits = weights_by_probability(kept, shares)
        of_fits = by_dependence(kept, of_fits) if stories is None else of_fits
    elif weights == "equal" or len(kept) == 1:
        of_fits = equal_weights(kept)
    else:
        folds = 5 if folds is None else folds
        comparison = compare(kept, method="kfold", folds=folds, refit_by="em", seed=seed, progress=progress)
        comparison.attrs["how"] = f"{folds} folds of the annotations, for each of which every story was refitted by EM"
        of_fits = comparison["weight"]
    of_fits = of_fits.reindex(pd.Index(list(fits), name="story"), fill_value=0.0)
    if votes is None:
        votes = 0.0 if annotations.scored else usual_votes(fits, of_fits)
    return Posterior(fits, of_fits, comparison, left_out, votes, misled)


def by_dependence(fits: Mapping[str, Fitted], weights: pd.Series) -> pd.Series:
    r"""Weights of stories where the heaviest leaves less dependence of annotations than others do.

    With the probability :math:`d_m` that annotations depend on each other given the labels of story m
    (:mod:`.dependence`), and :math:`d` that of the heaviest, the weight of m is multiplied by the lesser of 1 and
    :math:`(1 + \delta - d_m) / (1 + \delta - d)`, where :math:`\delta` is :data:`LEFT`: labels given which workers err
    together, where given others they do not, are not as good. On real crowds workers mostly err together whatever the
    story, and the weights stay what they were.
    """
    left = pd.Series({name: 1 + LEFT - dependence(one.annotations, one.posterior) for name, one in fits.items()})
    found = weights * (left / left[str(weights.idxmax())]).clip(upper=1.0).reindex(weights.index)
    found = found.where(found >= LEAST * found.sum(), 0.0)
    return (found / found.sum()).rename("weight")


def kept_stories(fits: Mapping[str, Fitted]) -> tuple[Mapping[str, Fitted], dict[str, str]]:
    """Return the fits that may have weight, and by name why others have none: their labels have lost a class.

    Where all have (:func:`.lost_class`), all may have weight.
    """
    lost = {name: "; ".join(said.text for said in found) for name, one in fits.items() if (found := [*lost_class(one)])}
    return {name: one for name, one in fits.items() if name not in lost} or fits, lost


def without_shared_errors(fits: Mapping[str, Fitted]) -> dict[str, Fitted]:
    """Return the stories of the default set that stay where a judge is compared itself and prefers its own item.

    Where two classes are left and right, errors in common and the truth may change places: the former are then what
    most judges say, and the latter what the one says by the items' scores. So the stories with shared errors have no
    weight there (:func:`.prefers_own`). None stays where nobody prefers the own item.
    """
    others = {name: one for name, one in fits.items() if not one.model.hyperparameters.get("shared_error")}
    return others if others and prefers_own(next(iter(others.values()))) else {}


def only_votes_tell(annotations: Annotations, options: Mapping[str, Any]) -> bool:
    """Return whether most workers give one class each, and nothing but annotations tells of the labels.

    Args:
        annotations: the data, with the evidence that was used.
    """
    told = [annotations.evidence, annotations.prior, annotations.model_scores]
    told += [options.get(option) for option in OF_TRUTH]
    return annotations.named and all(each is None for each in told) and is_one_sided(annotations)


def usual_votes(fits: Mapping[str, Fitted], weights: pd.Series) -> float:
    """Return the share of the votes of a task with hardly any annotations, by whether these depend on each other."""
    of_fits = {name: dependence(one.annotations, one.posterior) for name, one in fits.items() if weights[name] > 0}
    return VOTES * float(sum(weights[name] * found for name, found in of_fits.items()))


def default_set(
    annotations: Annotations, options: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, dict[str, Any]]:
    """Return the default set of stories of these annotations, in the form of :data:`DEFAULT_SET`.

    It is :data:`DEFAULT_SET`, with :data:`ORDERED` beside it of more than two classes that are said to be ordered, and
    of whole numbers alone, which may be codes, where neighbours are confused most (:mod:`.confused_neighbours`);
    :data:`DEFAULT_SET_LEVELS` where annotations are levels of another truth, and :data:`DEFAULT_SET_UNNAMED` where no
    worker is named. Where questions have classes of their own no prior is learned. Where all stories have a prior of
    the truth or a classifier by the options, the stories of :data:`ORDERED` are one.

    Args:
        annotations: the data.
        options: of :func:`crowdppl.fit`, for every story.
    """
    if not annotations.named:
        return DEFAULT_SET_UNNAMED
    if annotations.scored:
        return DEFAULT_SET_LEVELS
    kind = annotations.kind
    has_order = annotations.n_classes > 2 and kind.in_order
    has_order = has_order and (kind.order_is_stated or neighbours_are_confused(annotations))
    is_fixed: dict[str, dict[str, Any]] = {} if kind.own is None else {"one_coin": {}}
    if not has_order:
        return DEFAULT_SET | is_fixed
    has_prior = any(options.get(option) is not None for option in OF_TRUTH)
    return DEFAULT_SET | is_fixed | ({"graded_response": {}} if has_prior else ORDERED)


def _shares(stories: StorySet) -> dict[str, float]:
    """Return the weight of each story of a default set without a look at the annotations."""
    added = {name: share for name, share in ORDERED_SHARES.items() if name in stories}
    if len(added) == 1:
        added = dict.fromkeys(added, sum(ORDERED_SHARES.values()))
    known = {name: share * (1 - sum(added.values())) for name, share in DEFAULT_SHARES.items()} | added
    return {name: known.get(name, 1.0) for name in stories}


def fit_each(
    stories: StorySet,
    annotations: Annotations,
    fit_one: Callable[..., T],
    options: Mapping[str, Any],
    checkpoints: CheckpointOptions | None,
    *,
    progress: bool,
    first: int = 0,
) -> tuple[dict[str, T], dict[str, str]]:
    """Fit each story of a set.

    Args:
        stories: by name each one's options, with ``story``, by default the name.
        fit_one: called with a story, the annotations, its options and ``checkpoints``.
        checkpoints: where each story's fits are kept, in folders of their own.
        first: the number of the first, where others of the set are fitted already.

    Returns:
        what `fit_one` made of each story that fits these data, and why the others do not, by name.

    Raises:
        ValueError: none of the stories fits these data, with the reason of each.
    """
    kept = CheckpointOptions(None) if checkpoints is None else checkpoints
    if not first:
        kept.check_new()
    fits: dict[str, T] = {}
    left_out: dict[str, str] = {}
    with progress_bar("stories", len(stories), show=progress) as bar:
        for number, (name, about) in enumerate(stories.items(), first):
            bar(number - first, name)
            own: dict[str, Any] = {"story": name, **about}
            own |= {option: value for option, value in options.items() if value is not None or option not in own}
            own["checkpoints"] = None if kept.folder is None else kept.within(f"story {number}")
            try:
                fits[name] = fit_one(own.pop("story"), annotations, **own)
            except StoryError as error:
                left_out[name] = str(error)
    if not fits:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
        raise ValueError(f"none of {len(stories)} stories fits these data. {reasons}")
    return fits, left_out


def _check_folds(folds: int | None, weights: str, n_stories: int) -> None:
    if folds is None:
        return
    if weights != "stacking":
        raise ValueError(
            f"folds={folds!r}: stories with weights={weights!r} are not compared on held-out annotations; leave it "
            "out, or give weights='stacking'"
        )
    if n_stories == 1:
        raise ValueError(f"folds={folds!r}: one story is compared with none; leave it out, or give several stories=")


def story_set(
    stories: Mapping[str, Mapping[str, Any] | str | Story] | Iterable[str | Story] | str | Story | None,
    annotations: Annotations,
    options: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, dict[str, Any]]:
    """The stories to fit, by name, each with its options of :func:`crowdppl.fit`.

    Args:
        stories: as for :func:`auto`.
        annotations: the data; the default depends on whether workers are named.
        options: of :func:`crowdppl.fit`, for every story.

    Raises:
        ValueError: `stories` are none, or something else is among them.
    """
    if stories is None:
        return default_set(annotations, options)
    if isinstance(stories, Mapping):
        each = {str(name): about if isinstance(about, Mapping) else {"story": about} for name, about in stories.items()}
        found = {name: {"story": name} | dict(about) for name, about in each.items()}
    else:
        given: Any = stories
        is_one = isinstance(given, str) or callable(given) or not isinstance(given, Iterable)
        several = [given] if is_one else list(given)
        found = {getattr(story, "__name__", str(story)): {"story": story} for story in several}
    wrong = [
        about["story"] for about in found.values() if not (isinstance(about["story"], str) or callable(about["story"]))
    ]
    if wrong or not found:
        raise ValueError(
            f"stories={stories!r}: {f'{wrong[0]!r} is no story' if wrong else 'there is no story'}; a name or a "
            "function is needed, or several, such as ['dawid_skene', 'one_coin'], or by name, such as "
            "{'hard': {'story': 'dawid_skene', 'task_difficulty': True}}"
        )
    return found
