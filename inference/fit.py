"""The front door: fit a story to annotations with an engine."""

import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd

from ..data import Annotations, unknown_name
from ..data.errors import AnnotationError, UnknownNameError, check_name, truth_value
from ..data.exports.reading import read_if_needed
from ..data.partitions import partitions_of
from ..data.scan import Scan, scan
from ..models import ALIASES, KNOWN_STORIES, Classifier, Story, TruthPrior
from ..models.parts.classifier import Network
from .baselines.fit_baseline import BASELINES, fit_baseline
from .comparison.default_set import auto
from .comparison.gold_stories import OF_AN_AVERAGE, auto_with_gold
from .densities.evidence import Gold
from .densities.probabilities import Probabilities
from .engines.checkpoints import CheckpointOptions
from .engines.registry import ENGINES, MEANT
from .findings.look import findings
from .findings.of_questions import unequal_questions
from .fit_story import fit_story
from .fitted.item_ranking import OF_PREFERENCES
from .fitted.members import checked_members, from_seeds, mean_of_members
from .result import Fit
from .sources.on_disk import IN_MEMORY

QUALITIES = ("shared", "by_question", "pooled")
"""Values of `quality`, which says how a worker's quality differs between several questions about a task."""

CALLED_ELSEWHERE = {
    **dict.fromkeys(("mv", "vote", "votes", "mode"), "majority_vote"),
    **dict.fromkeys(("ds", "ibcc", "bcc"), "dawid_skene"),
    **dict.fromkeys(("irt", "rasch", "2pl"), "item_response"),
    **dict.fromkeys(("cbcc", "communities"), "worker_clusters"),
    **dict.fromkeys(("care", "factor_analysis"), "score_factor"),
}
"""Names of stories elsewhere."""

Readable = str | PathLike[str] | Mapping[str, Any] | Sequence[Mapping[str, Any]] | Any
"""Sources that :func:`crowdppl.read` takes: a path, a table in memory, records, or a dictionary."""


def fit(
    story: str | Story,
    annotations: Annotations | Scan | Readable,
    *,
    method: str = "em",
    classifier: Network | Classifier | Any | None = None,
    truth_prior: TruthPrior | pd.DataFrame | np.ndarray | None = None,
    gold: Gold = None,
    evidence: pd.DataFrame | np.ndarray | None = None,
    probabilities: Probabilities = None,
    abstentions: str | None = None,
    constant_workers: str = "leave_out",
    copies: str | None = None,
    quality: str | None = None,
    members: int = 1,
    seed: int = 0,
    backend: str = "numpyro",
    devices: int | str | Sequence[Any] | None = None,
    progress: bool = True,
    checkpoint: str | PathLike[str] | None = None,
    every: float | str | None = None,
    resume: bool = False,
    folder: str | PathLike[str] | None = None,
    **options: Any,
) -> Fit:
    """Fit a story to annotations: true labels, confusion matrices of the workers, and what else the story has.

    Args:
        story: a story's name (``"dawid_skene"``), or any function that keeps the contract of a story. ``"auto"`` fits
            Dawid and Skene's with and without errors that workers share, and ``"one_coin"``, and averages their labels
            with the votes: :func:`.auto`; of preferences (:meth:`.Annotations.from_comparisons`) it fits ``"one_coin"``
            with ``right=1000, wrong=1`` alone, by which each is right (``"annotator_groups"`` with ``groups=1,
            diagonal=1000`` where no worker is named). The name of a baseline, such as
            ``"majority_vote"`` (:func:`.list_baselines`), labels without a likelihood; a classifier is then trained on
            these labels, or with ``"doctor_net"``, ``"wdn"`` and ``"max_mig"`` instead of them.
        annotations: who labelled what; or a path, a table or records, which :func:`.read` reads, saying on standard
            error what it took for what, unless ``progress=False``; or a :func:`.scan` of files that are larger than
            memory, which EM or SVI reads chunk by chunk. A DataFrame of Spark or Dask and a Dataset of Ray, with
            columns task, worker and label, are fitted by EM where their partitions are: each pass sends them the
            parameters and gets back sums, and ``fit.labels`` is a frame of the engine.
        method: ``"em"`` (the mode, in a moment), ``"svi"`` (an approximate posterior, any size of data) or ``"nuts"``
            (draws from the posterior).
        classifier: a classifier of the tasks' features as prior of the true labels: ``"logistic"``, ``"mlp"``,
            ``"cnn"``, a Flax NNX module, a function from features to logits, or a :class:`.Classifier` with its
            options; or a ``torch.nn.Module`` (the extra ``pyro``), which is copied and trained in minibatches.
        truth_prior: another prior of the true labels: a :class:`.Prevalence`, which is estimated; ``"uniform"`` or
            the shares of the classes, ``(K,)`` or by class, which are not; or probabilities of the classes that are
            given, tasks × classes. The story's own by default, which of comparisons is a :class:`.BradleyTerry`.
        gold: labels that are known: True for those that the annotations carry, or label by task (mapping, series,
            frame). They are not used unless asked for here. ``"auto"`` weighs more stories by them, from the weights
            that annotations give on (:func:`.auto_with_gold`), unless weights, votes or misled are given.
        evidence: probabilities of the classes from another model, tasks × classes, which are believed as they are.
        probabilities: those of a classifier or a language model that may be wrong and too sure: each model is one more
            fallible worker, and what its probabilities are worth is learned. A frame with tasks as index and classes as
            columns, or several by the models' names; tasks that a model has not seen may be missing
            (:func:`.with_probabilities`). ``fit.models`` says what was learned (:mod:`.model_probabilities`).
        abstentions: where the annotations have abstentions, ``"informative"`` for rates of abstaining by worker and
            true class, so that an abstention says something of the label, as of labelling functions that abstain
            wherever their rule does not apply; ``"uninformative"`` for a rate of each worker alone, with which labels
            are as if the abstentions had been left out. None for what the annotations say, which is informative. The
            parameter is ``abstention``. A warning says where abstentions decide many labels.
        constant_workers: ``"leave_out"`` for a fit without the annotations of workers who give one class whatever the
            task, where they are :data:`.constant_workers.MUCH` of the annotations: with them the labels may follow
            them, under every story. ``"keep"`` for one with them. A warning names them either way. A baseline and a
            scan have all annotations.
        copies: ``"keep"`` counts the annotations of workers in full who agree with each other more than independent
            ones can, and a warning names them; ``"one"`` takes each group of them for one worker, who gives what most
            of them give: right where they copy, and a loss where they are much better than the rest, which annotations
            do not tell. Where no group is sure, it takes one that a note says may copy. The others of the group have
            the scores of that one, and ``fit.annotations`` none of their annotations; ``fit.given`` has them, and
            numbers of annotations and votes are of these. ``"auto"`` does so where half of the
            annotations are left, with a warning, and else keeps them. Both count once what a worker gave a task most
            often where repeats of workers agree more than independent ones would. None for ``"keep"``, and for
            ``"auto"`` with the story ``"auto"``, with gold labels as without.
        quality: where several questions are asked about a task, ``"shared"`` for one quality of a worker on all of
            them; ``"by_question"`` for parameters of each worker on each question
            (:meth:`.Annotations.by_question`), which frames by worker have as a level; ``"pooled"`` for these drawn
            towards parameters of the worker on all questions, by a strength that is learned, ``question_share``. Of
            annotations in memory on one device. None for ``"shared"``, and with the story ``"auto"`` for
            ``"by_question"`` where how often annotations agree says that some questions are much harder than others
            (:func:`.unequal_questions`), which a note then says.
        members: M fits of a story with a network, from the seeds ``seed`` to ``seed + M - 1``, whose labels and
            predictions are averaged with equal weights; ``fit.fits`` has them, and
            ``fit.predict_proba(x, by_member=True)`` their probabilities one by one, which lie as far apart as start,
            batches and dropout lead. A module of one's own starts each member at the weights that it has, so that
            they lie nearer to each other; a warning says where nothing at all lets them differ.
        seed: the same seed gives the same result, to the last bit on one machine.
        backend: ``"numpyro"``; or ``"pyro"`` (the extra ``pyro``), which a torch module as classifier chooses by
            itself: SVI then takes Pyro's guides, and NUTS is Pyro's, on the density of the same story.
        devices: spread the tasks over several devices: how many, ``"all"``, or the devices themselves; each step is
            one device's up to float rounding. With several processes (``jax.distributed``) each gives tasks of its own,
            that no other has, with ``devices="all"``, and gets the labels of those.
        progress: show progress bars on standard error.
        checkpoint: a folder where the fit keeps where it stands, every engine on both backends, so that it survives
            what ends its process: the same call with ``resume=True`` goes on from there, to the same bits. Other data,
            stories, options or versions are refused. Ctrl-C writes it once more; a full disk leaves the last one.
            ``"auto"`` keeps each story's fit in a folder within it, so that a finished one is not run again; a baseline
            keeps the training of its network.
        every: seconds between two writings, or a time such as ``"30s"``, ``"5min"`` or ``"1h"``; five minutes by
            default. Where an epoch of a network takes longer than that, after each epoch.
        resume: go on from the folder's checkpoint, or begin where it has none; without it a checkpoint in the folder
            is refused. A fit that had come to its end is there again at once.
        folder: where the fit of a scan keeps its state after each pass over the data, so that the same call goes on
            from there after an interruption; and what is prepared of the files, unless the scan names a folder. A
            scan has one more option of EM, ``step="stochastic"``: ``epochs`` passes with a step after each chunk.
        options: hyperparameters of the story (see its docstring), among them for every story ``shared_error=True``,
            ``worker_families`` and ``shared_weight`` (:func:`.with_shared_error`), ``task_difficulty=True`` and
            ``difficulty_weight`` (:func:`.with_task_difficulty`). A number of the prior of a story's tables, such as
            ``right`` of ``"one_coin"`` or ``diagonal``, may be ``"learned"`` (:func:`.learned_prior`). And options of
            the engine
            (:class:`~crowdppl.inference.engines.settings.EMSettings`,
            :class:`~crowdppl.inference.engines.settings.SVISettings`,
            :class:`~crowdppl.inference.engines.settings.NUTSSettings`), such as ``max_iterations``, ``tolerance``,
            ``draws``; with ``backend="pyro"`` also options of PyTorch
            (:class:`~crowdppl.inference.torch.torch_options.TorchOptions`).

    NUTS that is interrupted by Ctrl-C returns the draws so far, with a warning that says how many they are.

    Raises:
        KeyboardInterrupt: Ctrl-C in another fit, with a sentence that says how to go on.
        ImportError: ``backend="pyro"`` without the extra ``pyro``.
        UnknownNameError: for an unknown story, engine, backend or option, with the nearest name.
        FileNotFoundError: ``annotations`` is the path of no file.
        AnnotationError: for a file or table that cannot be read as annotations, and gold labels, evidence, models' or
            given probabilities that do not fit the annotations.
        ValueError: for an option of the engine that is not a number where one is needed, both a classifier and a
            truth_prior, members of what has no network, more devices than there are, or several devices for what runs
            on one only.
        StorageError: the folder holds another fit, or cannot be written when the fit begins; ``checkpoint`` has an
            earlier run, and ``resume`` is False.
        PartitionsError: Spark, Dask or Ray gave up on a pass over the partitions.
        StoryError: for annotations, hyperparameters or a classifier that the story cannot be told with.
        FloatingPointError: where the log-posterior, or a classifier's logits, stop being finite, with the step.
    """
    truth_value("progress", progress)
    shared: dict[str, Any] = {
        "method": method,
        "classifier": classifier,
        "truth_prior": truth_prior,
        "gold": gold,
        "evidence": evidence,
        "seed": seed,
        "backend": backend,
        "progress": progress,
    } | ({} if devices is None else {"devices": devices})
    shared |= {} if probabilities is None else {"probabilities": probabilities}
    shared |= {} if abstentions is None else {"abstentions": abstentions}
    shared |= {} if constant_workers == "leave_out" else {"constant_workers": constant_workers}
    shared |= {} if copies is None else {"copies": copies}
    known = [*KNOWN_STORIES, *ALIASES, *BASELINES, "auto"]
    if isinstance(annotations, str) and annotations in known and not (isinstance(story, str) and story in known):
        raise AnnotationError(f"the story comes first, and then the annotations: cp.fit({annotations!r}, annotations)")
    if isinstance(story, str) and story not in known:
        if (engine := MEANT.get(story.casefold(), story)) in ENGINES:
            raise UnknownNameError(f"{story!r} is an engine, and goes with any story: method={engine!r}")
        raise unknown_name("story", story, known, meant=CALLED_ELSEWHERE.get(story.casefold()))
    annotations = _annotations_of(annotations, tell=progress)
    if quality is None:
        is_auto = isinstance(story, str) and story == "auto" and isinstance(annotations, Annotations)
        quality = "by_question" if is_auto and unequal_questions(annotations) else "shared"
    annotations = _with_quality(annotations, quality)
    if quality == "pooled":
        if devices is not None:
            raise ValueError(f"devices={devices!r}: quality='pooled' is of annotations on one device; leave it out")
        options = options | {"pooled_questions": True}
    takes_one = isinstance(story, str) and story == "auto" and not {*OF_AN_AVERAGE, "stories"} & set(options)
    takes_one = takes_one and (gold is None or gold is False)
    if takes_one and isinstance(annotations, Annotations) and annotations.preferences:
        story = "one_coin" if annotations.named else "annotator_groups"
        options = OF_PREFERENCES[story] | options
        if progress:
            given = ", ".join(f"{name}={options[name]:g}" for name in OF_PREFERENCES[story])
            sys.stderr.write(f"each comparison is a preference of its own: the story is {story} with {given}\n")
    rules = [*BASELINES, "auto"]
    averages = isinstance(annotations, Scan) or (isinstance(story, str) and story in rules)
    members = checked_members(members, story, classifier, averages=averages)
    keeping = CheckpointOptions.of(checkpoint, every, resume, folder)
    in_memory = not isinstance(annotations, Scan)
    if not in_memory and isinstance(story, str) and story in BASELINES:
        raise ValueError(
            f"story={story!r} labels annotations in memory; fit a story with a likelihood to a scan, such as "
            f"'one_coin', or {IN_MEMORY}"
        )
    if in_memory and folder is not None:
        raise ValueError(
            f"folder={os.fspath(folder)!r} keeps the state of a fit of cp.scan(…); annotations in memory are fitted "
            "without one: leave it out, and save the fit by fit.save(folder)"
        )
    if in_memory and gold is not None and not isinstance(gold, bool):  # read once, and not for each story
        shared["gold"] = np.asarray(annotations.with_gold(gold).gold)
    if in_memory and isinstance(story, str) and story == "auto":
        chooses = gold is not None and gold is not False and not set(OF_AN_AVERAGE) & set(options)
        found = Fit.of((auto_with_gold if chooses else auto)(annotations, **shared, checkpoints=keeping, **options))
    elif in_memory and isinstance(story, str) and story in BASELINES:
        found = Fit.of(fit_baseline(story, annotations, **shared, checkpoints=keeping, **options))
    elif members > 1:
        fit_one = partial(fit_story, story, annotations, **shared, **options)
        found = Fit.of(mean_of_members(from_seeds(fit_one, members, seed, keeping)))
    else:
        found = Fit.of(fit_story(story, annotations, **shared, checkpoints=keeping, **options))
    findings(found).warn(stacklevel=2)
    return found


def _with_quality(annotations: Any, quality: str) -> Any:
    """Return the annotations with workers as the option ``quality`` has them."""
    if check_name("quality", quality, QUALITIES) == "shared":
        return annotations
    if not isinstance(annotations, Annotations):
        raise ValueError(f"quality={quality!r}: annotations in memory are needed, made with question=; {IN_MEMORY}")
    return annotations.by_question(shared=quality == "pooled")


def _annotations_of(data: Any, *, tell: bool) -> Any:
    """Return the annotations in a path, a table or records; anything else as it is."""
    if isinstance(data, Annotations | Scan):
        return data
    # What is no annotations in any form is refused where it is fitted.
    return read_if_needed(data, tell=tell) if partitions_of(data) is None else scan(data)
