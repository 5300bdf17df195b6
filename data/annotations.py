"""`Annotations`: what each worker gave for each task, with what else is known of tasks and workers."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import numpy as np
import pandas as pd

from . import description
from .agreement import krippendorff_alpha
from .arrays import BY_ROW, BY_TASK, changed, cross_counts, read_only
from .build import build
from .cards import never_raising
from .column_names import own_or_known_column
from .comparisons import pairs_frame, shown_columns
from .constructors import Constructors
from .errors import AnnotationError
from .features import FEATURES_OF, features_fields
from .frames import as_frame, is_frame
from .gold import resolve_gold
from .id_text import listing
from .ids import NO_IDS, Ids
from .joining import joined, refuse_new_classes
from .kinds import NOMINAL, Kind, Ordered
from .later_comparisons import gold_by_task, more_comparisons, refuse_questions
from .levels import verdicts
from .long import LongColumns, frame_rows
from .pseudonyms import Key, check_workers, pseudonyms, read_key
from .question_classes import refuse_not_own
from .questions import QUESTION, SHARED, Units, by_question, fields_of, tasks_of
from .repeats import Repeats, n_repeated, repeated_tasks

Array = Any  # NumPy where people hold it, JAX inside compiled functions

COLUMNS = ("task", "worker", "label")
LARGE = 2_000_000  # rows that are not counted for a card
STATIC = (
    "tasks", "workers", "classes", "population", "abstentions", "informative", "repeats", "models",
    "feature_names", "worker_feature_names", "item_feature_names", "kind", "items", "questions", "scored",
    "preferences", "columns",
)  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Annotations(Constructors):
    """The annotations that J workers gave for N tasks with K classes: A rows, sorted by task.

    An annotation is one of L categories: a class, or an abstention where values that are no class were named
    (``abstain=``).

    `from_frame`, `from_csv` and the other class methods make them and check everything; the plain constructor checks
    nothing, `replace` features alone. They are a JAX pytree: the arrays are leaves, identifiers and population are
    static, so that they can be an argument of compiled functions.

    >>> annotations = Annotations.from_dict({"t1": {"ann": "cat", "bob": "cat"}, "t2": {"ann": "dog", "bob": "cat"}})
    >>> annotations.votes().tolist()
    [[2, 0], [1, 1]]

    Attributes:
        task: (A,) int32, ascending; rows of one task are in the order of the input.
        worker: (A,) int32, or None where no worker is named.
        label: (A,) int32, the annotations as indices into `categories`: below K a class, from K on an abstention.
        count: (A,) float32, how many equal annotations a row stands for; None for one each.
        gold: (N,) int32, the true label where it is known, −1 where not; None where no gold was given.
        features: (N, ...) float32 or None.
        worker_features: (J, D) float32 or None.
        tasks: the N original identifiers; where several questions are asked about a task, pairs (task, question).
        workers: the J original identifiers, none where no worker is named.
        classes: the K classes in their order.
        population: how many tasks these stand for where they are a minibatch; None for their own number.
        evidence: (N, K) float32, log-weights of the classes that are added to the prior of the true labels; None for
            none. `crowdppl.fit` puts gold labels and other models' probabilities here.
        prior: (N, K) float32, given probabilities of the classes as prior of the true labels; None for none.
        seconds: (A,) float32, how long each annotation took, in seconds, NaN where that is unknown; None where no
            times were given. No story uses it.
        when: (A,) float64, when each annotation was given, as seconds since 1970 or in another unit, NaN where that is
            unknown; None where it was not said. No story uses it; a finding looks for workers who changed.
        abstentions: the L − K categories of annotations that are no class, such as "can't tell"; none where L = K.
        informative: whether how often a worker abstains may depend on the true class, so that abstentions say
            something of it; False for a rate of each worker alone, under which labels are as without abstentions.
        repeats: what was done where a worker annotated a task more than once, as for `from_frame`; `joined` does the
            same. A fit on the disk has it; a table of the annotations does not.
        model_scores: (N, M, K) float32, centred log-probabilities that models give the classes, NaN where a model has
            none of a task; None for none. `crowdppl.fit` puts them here.
        model_reference: (M, R, K) float32, those of the tasks over which a model's shares of the classes are taken.
        models: the names of these M models.
        category_counts: (J, L) float32, how often each worker gave each category in the annotations of which these are
            some of the tasks; None where these are all. The prior of the rates of abstention is made of them.
        feature_names: the names of the features, where a table gave them; else none.
        worker_feature_names: those of the workers' features.
        kind: the kind of the labels: nominal, ordered or pairwise (:mod:`.kinds`).
        sides: (N, 2) int32, of comparisons the positions in `items` of what is left and right in each task; None where
            nothing is compared. `pairs` has their names.
        items: what is compared, sorted, and what else has features as an item; none where nothing is compared.
        item_features: (I, D) float32 of the items, or None.
        item_feature_names: those of the items' features.
        mirrored: (A,) bool, whether a row showed its pair the other way round than `sides` has it; `label` is of
            `sides` all the same, and confusion matrices are of what was shown. None where no row did.
        question: (N,) int32, where several questions are asked the position in `questions` of each task's; else None.
        scored: whether the L − K categories after the classes are no abstentions, but the ordered levels of annotations
            whose truth has these other classes (``truth_classes=``), such as scores of a truth that is no or yes. No
            annotation is then a class; :meth:`verdicts` are those that the levels lie in.
        preferences: whether each annotation of comparisons was said to be a preference of its own, so that no truth
            is asked for.
        questions: the questions that are asked about tasks, where there are several: each task is then a pair with one.
        columns: pairs of a role, such as "task", and the column that had it in the table of which these were made,
            where it has another name; of several columns of questions a tuple. Tables that are added, joined or have
            gold labels are read by them where they have such columns.
    """

    task: Array
    worker: Array | None
    label: Array
    count: Array | None
    gold: Array | None
    features: Array | None
    worker_features: Array | None
    tasks: Ids
    workers: Ids
    classes: Ids
    population: int | None = None
    evidence: Array | None = None
    prior: Array | None = None
    seconds: Array | None = None
    when: Array | None = None
    abstentions: Ids = NO_IDS
    informative: bool = True
    repeats: Repeats = "keep"
    model_scores: Array | None = None
    model_reference: Array | None = None
    models: Ids = NO_IDS
    category_counts: Array | None = None
    feature_names: Ids = NO_IDS
    worker_feature_names: Ids = NO_IDS
    kind: Kind = NOMINAL
    sides: Array | None = None
    items: Ids = NO_IDS
    mirrored: Array | None = None
    question: Array | None = None
    questions: Ids = NO_IDS
    scored: bool = False
    preferences: bool = False
    columns: tuple[tuple[str, Any], ...] = ()
    item_features: Array | None = None
    item_feature_names: Ids = NO_IDS

    @cached_property
    def n_tasks(self) -> int:
        """N, the number of tasks, also of those without an annotation."""
        return len(self.tasks)

    def of_question(self, question: Hashable) -> Annotations:
        """Return the annotations of one question, whose tasks are those that it is asked about; workers are all.

        Its classes are those that it has, in their order.

        Raises:
            AnnotationError: there is no such question.
        """
        units, (classes, kind) = self.tasks, self.question_classes(question)
        assert isinstance(units, Units)
        chosen = units.question == units.questions.index_of([question])[0]
        place = np.cumsum(chosen, dtype=np.int32) - 1
        own = self.rows(chosen[np.asarray(self.task)])
        kept = changed(self, BY_TASK, lambda values: read_only(np.asarray(values)[chosen]))
        tasks = Ids([units.tasks[int(task)] for task in units.task[chosen]], what="tasks")
        own = own.replace(task=read_only(place[np.asarray(own.task)]), tasks=tasks, **kept | fields_of(tasks))
        return own.with_classes(classes, kind)

    def question_classes(self, question: Hashable) -> tuple[np.ndarray, Kind]:
        """Return the classes of one question in their order, as class indices, shape (K',), and the kind of its labels.

        Raises:
            AnnotationError: there is no such question.
        """
        if question not in self.questions:
            known = ", ".join(map(repr, self.questions)) or "none"
            raise AnnotationError(f"there is no question {question!r}; the questions are: {known}")
        place = int(self.questions.index_of([question])[0])
        return self.kind.classes_of(place, self.n_classes), self.kind.of_question(place)

    def with_classes(self, chosen: np.ndarray, kind: Kind) -> Annotations:
        """Return the same annotations with some of the classes alone, which no annotation and no gold label lacks.

        Args:
            chosen: the classes in their new order, as class indices, shape (K',).
            kind: of the labels.
        """
        if np.array_equal(chosen, np.arange(self.n_classes)):
            return self.replace(kind=kind)
        place = np.full(self.n_classes, -1, np.int32)
        place[chosen] = np.arange(len(chosen))
        beyond = len(chosen) + np.arange(len(self.abstentions), dtype=np.int32)
        by_class: dict[str, Any] = {
            name: None if values is None else read_only(np.asarray(values)[..., chosen])
            for name, values in vars(self).items()
            if name in ("evidence", "prior", "model_scores", "model_reference")
        }
        gold = None if self.gold is None else np.append(place, -1).astype(np.int32)[np.asarray(self.gold)]
        return self.replace(
            label=read_only(np.concatenate([place, beyond])[np.asarray(self.label)]),
            gold=read_only(gold),
            classes=Ids([self.classes[int(k)] for k in chosen]),
            kind=kind,
            **by_class | {"category_counts": None},
        )

    def by_question(self, *, shared: bool = False) -> Annotations:
        """Return the same annotations with a worker for each worker and question: `workers` are pairs.

        A story then has parameters of each worker on each question, and frames by worker a level "question". Pairs
        without an annotation are none.

        >>> asked = {"task": [1, 1, 2], "question": ["tone", "style", "tone"]}
        >>> table = pd.DataFrame(asked | {"worker": "ann", "label": ["a", "a", "b"]})
        >>> list(Annotations.from_frame(table, question="question").by_question().workers)
        [('ann', 'tone'), ('ann', 'style')]

        Args:
            shared: whether there are also pairs (worker, "all questions") without annotations, for what
                ``pooled_questions`` of a story draws a worker's questions towards.

        Raises:
            AnnotationError: there is one question only, no worker is named, or workers are pairs already.
        """
        if not len(self.questions) or self.worker is None:
            what = "workers are named" if len(self.questions) else "several questions are asked about each task"
            raise AnnotationError(
                f"quality by question: these annotations do not say that {what}; bring a column of "
                f"{'workers' if len(self.questions) else 'questions, question='}"
            )
        if isinstance(self.workers, Units):
            raise AnnotationError("the workers of these annotations are pairs (worker, question) already")
        if shared and SHARED in self.questions:
            raise AnnotationError(f"the question {SHARED!r} has the name of what is shared by all; give it another")
        pairs, worker = by_question(self.tasks, np.asarray(self.task), self.workers, np.asarray(self.worker))
        of_pair = self.workers.index_of(pairs.tasks)[pairs.task]
        if shared:
            of_all = np.arange(len(pairs.tasks))
            pairs = Units([*pairs, *((name, SHARED) for name in pairs.tasks)], what="workers")
            of_pair = np.concatenate([of_pair, self.workers.index_of(pairs.tasks)[of_all]])
        features = None if self.worker_features is None else read_only(np.asarray(self.worker_features)[of_pair])
        return self.replace(worker=read_only(worker), workers=pairs, worker_features=features, category_counts=None)

    def across_questions(self) -> Annotations:
        """Return the annotations from before :meth:`by_question`: a worker is one, whatever the question."""
        return self._across_questions

    @cached_property
    def _across_questions(self) -> Annotations:
        pairs = self.workers
        if not isinstance(pairs, Units) or self.worker is None:
            return self
        first = np.unique(pairs.task, return_index=True)[1]
        features = None if self.worker_features is None else read_only(np.asarray(self.worker_features)[first])
        worker = read_only(pairs.task[np.asarray(self.worker)])
        return self.replace(worker=worker, workers=pairs.tasks, worker_features=features, category_counts=None)

    @cached_property
    def n_workers(self) -> int:
        """J, the number of workers; 0 where none is named. After :meth:`by_question` they are pairs."""
        return len(self.workers)

    @cached_property
    def n_classes(self) -> int:
        """K, the number of classes, also of those that nobody used."""
        return len(self.classes)

    @property
    def categories(self) -> Ids:
        """The L categories of annotations: the classes, and then the abstentions, or the levels."""
        if self.scored:
            return Ids([*(f"truth {name}" for name in self.classes), *self.abstentions])
        return Ids([*self.classes, *self.abstentions]) if len(self.abstentions) else self.classes

    @property
    def n_categories(self) -> int:
        """L, the number of categories of annotations: K classes, and the abstentions, or the levels."""
        return len(self.classes) + len(self.abstentions)

    @property
    def abstains(self) -> bool:
        """True where there are abstentions: categories of annotations that say no class."""
        return len(self.abstentions) > 0 and not self.scored

    @property
    def levels(self) -> Ids:
        """The values that workers may annotate: the levels where the truth has other classes, else the classes."""
        return self.abstentions if self.scored else self.classes

    @property
    def n_levels(self) -> int:
        """The number of levels: of classes where annotations are classes."""
        return len(self.levels)

    @property
    def own(self) -> np.ndarray | None:
        """The classes that each task may have, shape (N, K) bool, by its question; None where all may have all."""
        own = self.kind.own
        return None if own is None else own[np.asarray(self.question)]

    @cached_property
    def n_rows(self) -> int:
        """A, the number of rows."""
        return int(self.task.shape[0])

    @property
    def n_annotations(self) -> int:
        """The number of annotations, which is the sum of the counts where rows have counts."""
        return self.n_rows if self.count is None else int(np.sum(np.asarray(self.count), dtype=np.float64))

    @property
    def row_counts(self) -> np.ndarray:
        """The number of annotations that each row stands for, shape (A,), in double precision."""
        return np.ones(self.n_rows) if self.count is None else np.asarray(self.count, dtype=np.float64)

    @cached_property
    def annotated_again(self) -> np.ndarray:
        """The tasks that a worker annotated more than once, in several rows or one that counts for several: (N,).

        Nobody did where workers are not named.
        """
        found = np.zeros(self.n_tasks, bool)
        if self.worker is None:
            return found
        found[repeated_tasks(np.asarray(self.task), np.asarray(self.worker))] = True
        if self.count is not None:
            found[np.asarray(self.task)[np.asarray(self.count) > 1]] = True
        return read_only(found)

    @property
    def named(self) -> bool:
        """True where it is known which worker gave which annotation."""
        return self.worker is not None

    @property
    def pairs(self) -> pd.DataFrame:
        """The two items that each task compares: a frame by task with the columns left and right.

        A true label "left" says that the item in the column left is the better one.

        Raises:
            AnnotationError: nothing is compared.
        """
        if self.sides is None:
            raise AnnotationError(
                "these annotations are no comparisons, and have no pairs of items; cp.Annotations.from_comparisons "
                "makes annotations of a table with the columns left, right, worker and label"
            )
        return pairs_frame(self.tasks, np.asarray(self.sides), self.items)

    def as_shown(self, of_row: np.ndarray) -> np.ndarray:
        """Return values of each row by class, of the sides as the row showed them.

        Args:
            of_row: values, such as probabilities of the true labels, shape (A, K).
        """
        if self.mirrored is None:
            return of_row
        exchanged = of_row[:, self.kind.mirror(self.n_classes)]
        return np.where(np.asarray(self.mirrored)[:, None], exchanged, of_row)

    def by_sides(self) -> Annotations:
        """Return the same annotations as if each row of a comparison had shown the sides that its task has."""
        return self.replace(mirrored=None)

    @property
    def label_as_shown(self) -> np.ndarray:
        """The label of each row, of the sides as the row showed them, shape (A,)."""
        label = np.asarray(self.label)
        if self.mirrored is None:
            return label
        mirror = np.append(self.kind.mirror(self.n_classes), np.arange(self.n_classes, self.n_categories))
        return np.where(np.asarray(self.mirrored), mirror[label], label)

    def replace(self, **changes: Any) -> Annotations:
        """Return the same annotations with some attributes changed; but for features, these are not checked.

        Where each of those that are given is the own one, they are themselves, of which all is known that was found.

        Args:
            **changes: attributes by name. Features of tasks, workers and items may have each form that `from_frame`
                takes; the rows of an array are in the order of `tasks`, `workers` or `items`.

        Raises:
            AnnotationError: there is not one row for each task, worker or item, or a number is not finite.
        """
        for name, (noun, plural) in FEATURES_OF.items():
            given = changes.get(name)
            if given is not None and not isinstance(given, jax.core.Tracer):  # whose numbers are not known yet
                changes |= features_fields(name, given, changes.get(plural, getattr(self, plural)), noun)
        own = vars(self)
        if changes and all(name in own and own[name] is value for name, value in changes.items()):
            return self
        return dataclasses.replace(self, **changes)

    def with_gold(self, gold: Any) -> Annotations:
        """Return the same annotations with other gold labels.

        Args:
            gold: as for `from_frame`: labels by task, a table, or the path of a file with one, of comparisons also one
                with the two items, in either order, and the better one; or positions of the
                classes in the order of the tasks, −1 where unknown, as the attribute `gold` has them; None for none.

        Raises:
            AnnotationError: gold for an unknown task, or of an unknown class.
        """
        if gold is None:
            return self.without_gold()
        if self._are_positions(gold):
            return self.replace(gold=read_only(gold.astype(np.int32)))
        pairs = None if self.sides is None else (np.asarray(self.sides), self.items)
        gold, option = gold_by_task(self, gold), "truth_classes" if self.scored else "classes"
        about: dict[str, Any] = {"abstentions": self.abstentions, "pairs": pairs, "kind": self.kind, "option": option}
        about |= {role: name for role, name in self.columns if role in (*COLUMNS, QUESTION) and isinstance(name, str)}
        about.pop("worker", None)
        found = resolve_gold(gold, self.tasks, self.classes, **about)
        return self.replace(gold=read_only(found))

    def _are_positions(self, gold: Any) -> bool:
        """Return whether these are positions of classes in the order of the tasks, −1 where unknown."""
        whole = isinstance(gold, np.ndarray) and gold.dtype.kind == "i" and gold.shape == (self.n_tasks,)
        return whole and gold.min(initial=0) >= -1 and gold.max(initial=-1) < self.n_classes

    def as_fitted(self) -> Annotations:
        """Return the annotations as a story has them: without gold labels, times, and how they were made."""
        return self.replace(gold=None, seconds=None, when=None, repeats="keep", columns=())

    def known_columns(self, names: Iterable[object]) -> dict[str, Any]:
        """Return by role the columns, among these names, that had it in the table of which these were made."""
        there = set(names)
        return {
            role: list(name) if isinstance(name, tuple) else name
            for role, name in self.columns
            if there.issuperset(name if isinstance(name, tuple) else (name,))
        }

    def without_gold(self) -> Annotations:
        """Return the same annotations without gold labels."""
        return self.replace(gold=None)

    def joined(self, more: Annotations | pd.DataFrame | None) -> Annotations:
        """Return these annotations and others, as if they had come together.

        Tasks and workers that are new come after those that are known. Gold labels of both count, of a task that has
        two the newer one. Evidence about the tasks that are known stays. Of a worker who annotates a task again, these
        annotations' rule `repeats` takes all, the first (a warning counts the others), or none.

        >>> first = Annotations.from_dict({"t1": {"ann": "cat", "bob": "dog"}})
        >>> first.joined(Annotations.from_dict({"t2": {"cy": "dog"}, "t1": {"cy": "cat"}})).votes().tolist()
        [[2, 1], [0, 1]]

        Args:
            more: annotations of the same classes and abstentions, or some of them, with features where these have
                them; or a table with the columns task, worker and label, or what they are often called, which may have
                no row; None for none. The kind of labels, and with it the order of classes, is that of these.

        Raises:
            AnnotationError: a class is not among these, both have an order of classes and not the same, a new task or
                worker lacks features that the others have, only one side names workers, or a worker annotates a task
                again and the rule is ``"error"``.
        """
        if more is None or (is_frame(more) and not len(as_frame(more))):
            return self
        if not isinstance(more, Annotations) and self.sides is not None:
            more = Annotations(**more_comparisons(self, as_frame(more).to_pandas()))
        elif not isinstance(more, Annotations) and "tags" in (known := self.known_columns(as_frame(more).columns)):
            roles: Any = {
                role: known.get(role) or own_or_known_column(role, as_frame(more).columns, "the table")
                for role in ("task", "worker")
            }
            more = Annotations.from_tags(more, tags=known["tags"], known=list(self.questions), **roles)
        elif not isinstance(more, Annotations):
            columns = as_frame(more).columns
            known = self.known_columns(columns)
            refuse_questions(self, more, known)
            asked = known.get(QUESTION, QUESTION) if len(self.questions) else None
            several = asked if isinstance(asked, list) else []
            free = [name for name in columns if name != asked and name not in several] + ["label"] * bool(several)
            task, worker, label = (known.get(role) or own_or_known_column(role, free, "the table") for role in COLUMNS)
            named = self.levels if self.scored else self.categories
            rows = frame_rows(more, LongColumns(task, worker, asked, label), classes=named)
            refuse_new_classes(self, rows.label)
            refuse_not_own(
                self.kind,
                self.classes,
                self.questions,
                rows.task.ids,
                rows.task.codes,
                self.classes.index_of(rows.label.ids)[rows.label.codes],
                lambda row: f"{rows.label.title}, {rows.label.where(row)}",
            )
            if self.scored:
                fields = build(rows, ordered=self.levels, truth_classes=self.classes, tell=False)
            else:
                fields = build(rows, classes=self.classes, abstain=self.abstentions, kind=self.kind, tell=False)
            more = Annotations(**fields)
        return joined(self, more)

    def expanded(self) -> Annotations:
        """Return the same annotations with one row for each: a row with a count of n becomes n rows without counts."""
        if self.count is None:
            return self
        times = np.asarray(self.count).astype(np.int64)
        rows = changed(self, ("task", *BY_ROW), lambda values: read_only(np.repeat(values, times)))
        return self.replace(**rows | {"count": None})

    def n_by_worker(self) -> np.ndarray:
        """Return how many annotations each worker gave, shape (J,) int64.

        Raises:
            AnnotationError: no worker is named.
        """
        if self.worker is None:
            raise AnnotationError(
                "the annotations do not say which worker gave which, so that they cannot be counted by worker"
            )
        weights = None if self.count is None else np.asarray(self.count)
        return np.bincount(np.asarray(self.worker), weights, self.n_workers).astype(np.int64)

    def of_classes(self) -> Annotations:
        """Return the same tasks, workers and classes without the abstentions, as if nobody had given them.

        Levels of another truth are the classes that they lie in: :meth:`verdicts`.
        """
        if not self.abstains:
            return self.verdicts()
        return self.rows(np.asarray(self.label) < self.n_classes).replace(abstentions=Ids())

    def verdicts(self) -> Annotations:
        """Return the annotations with each level as the class it lies in; themselves where they are no levels.

        Levels and classes cut the same line evenly, so that of two classes the upper half of the levels is the second;
        a level in the middle is no verdict, and left out.
        """
        if not self.scored:
            return self
        label = verdicts(self.n_levels, self.n_classes)[np.asarray(self.label) - self.n_classes]
        kept = label >= 0
        return self.rows(kept).replace(label=read_only(label[kept]), abstentions=NO_IDS, scored=False)

    def by_level(self) -> Annotations:
        """Return the annotations with the levels as their classes, without gold labels; themselves without levels."""
        if not self.scored:
            return self
        label = read_only(np.asarray(self.label) - self.n_classes)
        own = self.replace(label=label, classes=self.levels, abstentions=NO_IDS, scored=False)
        return own.replace(gold=None, evidence=None, prior=None, kind=Ordered())

    def rows(self, kept: np.ndarray) -> Annotations:
        """Return the same tasks, workers and classes with some of the rows alone, as if nobody had given the others.

        Args:
            kept: which rows, (A,) bool.
        """
        return self.replace(**changed(self, ("task", *BY_ROW), lambda values: read_only(np.asarray(values)[kept])))

    def votes(self) -> np.ndarray:
        """Return how many annotations of each class each task has, shape (N, K) int64; abstentions are none."""
        return self.verdicts().counts_by_kind()[:, : self.n_classes]

    def counts_by_kind(self) -> np.ndarray:
        """Return how many annotations of each kind each task has, shape (N, L) int64: votes, and abstentions."""
        shape, weight = (self.n_tasks, self.n_categories), None if self.count is None else np.asarray(self.count)
        return cross_counts(shape, self.task, self.label, weight=weight).astype(np.int64, copy=False)

    def krippendorff_alpha(self) -> float:
        """Return Krippendorff's alpha: 1 where all agree, 0 where they agree as often as by chance.

        Two classes disagree by the distance of the labels' kind. Abstentions are missing values. Where there are
        several questions it is the mean of their alphas by their tasks with two annotations or more: shares of the
        classes that differ from question to question are no agreement.
        """
        if len(self.questions):
            own = [self.of_question(name) for name in self.questions]
            alphas = np.array([each.krippendorff_alpha() for each in own])
            n = np.array([(each.votes().sum(-1) > 1).sum() for each in own])
            known = np.isfinite(alphas) & (n > 0)
            return float(np.average(alphas[known], weights=n[known])) if known.any() else float("nan")
        return krippendorff_alpha(self.votes(), self.kind)

    def describe(self) -> pd.Series:
        """Return sizes, annotations per task and worker, repeats, gold, alpha and class shares, by name.

        "repeated annotations" are those beyond the first of each worker for each task; "repeated annotations with
        the same label" are those of them whose label the worker had already given for that task.
        """
        counts = self.counts_by_kind()
        return description.facts(
            counts[:, self.n_classes :] if self.scored else counts,
            self.levels,
            NO_IDS if self.scored else self.abstentions,
            by_worker=self.across_questions().n_by_worker() if self.named else None,
            repeated=self._n_repeated() if self.named else None,
            gold=self.gold,
            seconds=None if self.seconds is None else np.asarray(self.expanded().seconds),
            kind=Ordered() if self.scored else self.kind,
            alpha=self.krippendorff_alpha() if len(self.questions) and not self.scored else None,
        )

    def _n_repeated(self) -> tuple[int, int]:
        """Return the number of repeated annotations, and of those among them with the same label."""
        pair = np.asarray(self.task, np.int64) * self.n_workers + np.asarray(self.worker)
        same = pair * self.n_categories + np.asarray(self.label)
        repeated = n_repeated(np.asarray(self.task), np.asarray(self.worker), self.n_annotations)
        return repeated, self.n_annotations - pd.unique(same).size

    def pseudonymised(self, key: Key) -> Annotations:
        """Return the same annotations with a pseudonym in the place of each worker's name (:mod:`.pseudonyms`).

        Args:
            key: 16 to 64 random bytes, or a file that holds them, which you keep: who has it can find a name's
                pseudonym. The same key gives the same pseudonyms, in other data too.

        Raises:
            AnnotationError: the key is shorter or longer, or its file cannot be read.
        """
        return self.with_worker_names(pseudonyms(self.workers, key))

    def with_worker_names(self, names: Mapping[Hashable, Hashable]) -> Annotations:
        """Return the same annotations with other names of the workers, all of which `names` has."""
        named = [names[name] for name in self.workers]
        pairs = isinstance(self.workers, Units) and all(isinstance(name, tuple) for name in named)
        return self.replace(workers=(Units if pairs else Ids)(named, what="workers"))

    def without_workers(self) -> Annotations:
        """Return the annotations as counts by task and class, of which nothing says who gave them, nor when."""
        votes = self.counts_by_kind()
        task, label = np.nonzero(votes)
        return self.replace(
            task=task.astype(np.int32),
            worker=None,
            label=label.astype(np.int32),
            count=votes[task, label].astype(np.float32),
            workers=NO_IDS,
            worker_features=None,
            worker_feature_names=NO_IDS,
            seconds=None,
            when=None,
            mirrored=None,
            repeats="keep",
        )

    def to_frame(self, *, workers: str = "keep", key: Key | None = None) -> pd.DataFrame:
        """Return the annotations with their original identifiers, A rows.

        The columns are task, question (where there are several), worker (where workers are named), label, count (where
        rows have counts), seconds and when (where times were given). Of comparisons they are those that
        :meth:`from_comparisons` takes: left and right, and label, are as the row showed them, and in the place of task
        is a column prompt where tasks are of a prompt and a pair, and none where they are pairs.

        Args:
            workers: ``"keep"`` for their names, ``"hash"`` for pseudonyms, ``"drop"`` for counts by task and label.
            key: of the pseudonyms: :meth:`pseudonymised`.

        Raises:
            UnknownNameError: `workers` is something else.
            AnnotationError: the key is missing, is none, or is given for something else.
        """
        check_workers(workers, key)
        if workers != "keep":
            found = self.without_workers() if workers == "drop" else self.pseudonymised(read_key(key))
            return found.to_frame()
        columns = self.tasks.to_columns("task", np.asarray(self.task)) if self.sides is None else shown_columns(self)
        if self.worker is not None:
            columns |= self.workers.to_columns("worker", np.asarray(self.worker))
        names, code = self.categories, self.label_as_shown
        if self.scored:
            names, code = self.levels, code - self.n_classes
        frame = pd.DataFrame(columns | names.to_columns("label", code))
        if self.count is not None:
            count = np.asarray(self.count)
            is_whole = (count == np.round(count)).all()  # weights may be fractions
            frame["count"] = count.astype(np.int64) if is_whole else count.astype(np.float64)
        return frame.assign(**changed(self, ("seconds", "when"), np.asarray))

    def __repr__(self) -> str:
        # Inside compiled functions the arrays have shapes but no values.
        counted = self.count is None or isinstance(self.count, np.ndarray)
        return description.text(
            self.n_annotations if counted else self.n_rows,
            self.n_tasks,
            len(tasks_of(self.workers)) if self.named else None,
            self.classes,
            self._extras(),
            unit="annotation" if counted else "row",
        )

    def _extras(self) -> list[str]:
        """Return what is known beside the annotations, such as "gold labels of 3 tasks"."""
        arrays = {"features": self.features, "worker features": self.worker_features}
        arrays |= {"item features": self.item_features, "given prior": self.prior}
        known = [self.kind.remark] if self.kind.remark else []
        known += [f"{name} {tuple(np.shape(array))}" for name, array in arrays.items() if array is not None]
        if len(self.questions):
            of = description.count_text(len(tasks_of(self.tasks)), "task")
            known.insert(0, f"questions {listing(self.questions, 10)} about {of}, each a task of its own")
        if self.scored:
            known.insert(0, f"annotations in {self.n_levels} levels from {self.levels[0]!r} to {self.levels[-1]!r}")
        if self.abstains:
            known.append(f"abstentions {listing(self.abstentions, 10)}")
        if isinstance(self.gold, np.ndarray):
            known.append(f"gold labels of {description.count_text(int((self.gold >= 0).sum()), 'task')}")
        if isinstance(self.evidence, np.ndarray):
            known.append(f"evidence about {description.count_text(int((self.evidence != 0).any(-1).sum()), 'task')}")
        if isinstance(self.model_scores, np.ndarray):
            known.append(f"probabilities by {listing(self.models, 5)}")
        if isinstance(self.seconds, np.ndarray):
            known.append(f"seconds of {description.count_text(int((~np.isnan(self.seconds)).sum()), 'row')}")
        if isinstance(self.when, np.ndarray):
            known.append(f"times of {description.count_text(int((~np.isnan(self.when)).sum()), 'row')}")
        return known

    @never_raising
    def _repr_html_(self) -> str:
        if self.n_rows > LARGE:
            return description.sizes_card(repr(self))
        by_worker = self.n_by_worker() if self.named else None
        return description.annotations_card(self.describe(), self.counts_by_kind().sum(-1), by_worker)


def as_pytree(kind: type[Annotations], *static: str) -> None:
    """Make a class of annotations a JAX pytree, whose static fields are those of all annotations and these."""
    meta = [*STATIC, *static]
    leaves = [field.name for field in dataclasses.fields(kind) if field.name not in meta]
    jax.tree_util.register_dataclass(kind, data_fields=leaves, meta_fields=meta)


as_pytree(Annotations)
