"""The class methods that make `Annotations` from tables, files, matrices, dictionaries and counts."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from .abstentions import abstentions_of
from .build import build
from .column_names import INFER, named_for
from .comparison_columns import column_of_criteria, find_comparison_columns, two_sides, with_drawn_sides
from .comparisons import OF_DRAWN_SIDES, OWN, PROMPT, TASK, ComparisonColumns, comparison_fields, more_than_ties
from .errors import AnnotationError, warn
from .frames import as_frame, read_parquet
from .kinds import listed_classes
from .long import LongColumns, Missing, csv_fields, long_fields
from .nested import nested_rows, read_nested
from .questions import names_questions, question_column
from .repeats import Repeats
from .tags import Empty, tag_fields
from .text_files import check_encoding, suffix_of
from .wide import count_rows, matrix_rows


class Constructors:
    """The class methods of `Annotations` that make them: checked, sorted by task, read-only."""

    if TYPE_CHECKING:

        def __init__(self, **fields: Any) -> None: ...

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        task: str = "task",
        worker: str | None = "worker",
        label: str = "label",
        count: str | None = None,
        seconds: str | None = None,
        when: str | None = None,
        question: str | Sequence[str] | None = None,
        classes: Iterable[Any] | Mapping[Any, Iterable[Any]] | None = None,
        ordered: bool | Iterable[Any] | Mapping[Any, bool | Iterable[Any] | None] | None = None,
        abstain: Any = None,
        truth_classes: Iterable[Any] | None = None,
        tasks: Iterable[Any] | None = None,
        workers: Iterable[Any] | None = None,
        gold: Any = None,
        features: Any = None,
        worker_features: Any = None,
        repeats: Repeats = "keep",
        tidy: bool = False,
        merge: Mapping[Any, Any] | None = None,
        missing: Missing = "refuse",
    ) -> Self:
        """Make annotations from a long table with one row for each annotation.

        Identifiers and labels are any hashable values and keep their types, but for labels 1.0 and 2.0, to which
        pandas turns whole numbers beside missing ones: they are 1 and 2, unless `classes` lists floats.

        Args:
            frame: a pandas, polars or pyarrow table with A rows.
            task: the column of tasks.
            worker: the column of workers; None where no worker is named: equal annotations to a task are then
                counted.
            label: the column of annotations.
            count: the column that says how many equal annotations a row stands for, or None for one each.
            seconds: the column that says how long each annotation took, in seconds; a missing time is unknown. Where
                rows have counts, it is the time of each of the annotations that a row stands for.
            when: the column that says when each annotation was given: dates, or numbers that grow with time; a missing
                one is unknown. A fit then looks for workers who changed.
            question: where several questions are asked about each task, the column that says which one a row answers;
                or a list of columns, one for each question, with labels in the place of `label`, where an empty cell is
                no annotation. The tasks are then the pairs (task, question), the :attr:`.Annotations.questions` are
                known, and tables have the index levels, or columns, task and question. Questions that share labels
                have all of these; where some share none with the others, each has classes and a kind of its own, which
                a warning says. A text file's whole numbers are numbers where a question has no other labels.
            classes: all classes in the wanted order, also those that nobody used; else the categories of a pandas
                Categorical or a polars Enum in their order, else the labels used, sorted. Labels that are fractions are
                classes only where they are listed. Of several questions it may be a dictionary of classes by question,
                ``{"safe": ["no", "yes"]}``; a list is of all questions.
            ordered: all classes from the least to the greatest, such as ["low", "mid", "high"], in the place of
                `classes`; or True for whole numbers, and for categories or `classes` listed in their order; False for
                classes without an order. By default the categories of an ordered pandas Categorical are ordered, and so
                are, with a warning, 3 to 20 whole numbers from −100 to 100 where no `classes` are listed. A
                label is the more wrong, the more classes lie between: agreement and costs go by the number of steps,
                and a fit has expected scores. Of several questions it may be a dictionary of these by question.
            abstain: the values of annotations that are no class, such as ["abstain", "can't tell"], or one value:
                they are the attribute `abstentions`, and the classes are without them. A value that nobody used, and
                tasks or workers with nothing but abstentions, are warned of.
            truth_classes: the classes of the truth where annotations are ordered levels of something else, such as
                ["no", "yes"] of scores from 0 to 9: in the order of the levels that speak for them. Gold labels are
                these classes; `classes` and `ordered` are of the levels, and :attr:`.Annotations.levels` has them.
            tasks: all tasks in the wanted order, also those without an annotation; else in order of first
                appearance. With questions each of them has every question, unless these are pairs (task, question).
            workers: all workers in the wanted order, also those without an annotation; else in order of first
                appearance.
            gold: true labels of some tasks: a dictionary task -> label, a Series indexed by task, a table
                with the columns `task` and `label`, or the path of a .csv, .tsv or .parquet file with such a table. Its
                columns may have other common names, such as ``id`` and ``answer``. A missing label is unknown. With
                questions its keys are pairs (task, question), and a table has a column of questions, too, or a column
                for each.
            features: features of all tasks: a dictionary task -> array, a table with the column `task` (or,
                in pandas, an index of tasks) and numbers, or, where `tasks` gives the order, an array
                (N, ...).
            worker_features: features of all workers in one of these forms, as an array (J, D).
            repeats: what to do where a worker annotated a task more than once: "keep" all annotations (`describe`
                counts them), take the "first" with a warning that says how many were left out, or raise an "error".
            tidy: make one class of labels that differ by case, blanks, a full stop at the end or quotation marks or
                asterisks around them alone, such as "yes" and "**Yes.**", spelt as in `classes` or else as most
                often, and "4" of "Score: 4", "4/5" and a longer answer with "[[4]]"; without it they are classes of
                their own, and a warning names them. Names of workers that differ by case or blanks alone, and of tasks
                that differ by blanks, are one likewise.
            merge: labels that stand for others, such as ``{"Yess": "Yes", "y": "Yes"}``, or ranges of numbers that do,
                such as ``{"0..0.5": "low", "0.5..1": "high"}``: from the low end up to the high one, which the greatest
                range has too.
            missing: what to do with rows that lack a task, worker, label or count, such as cells that are empty or
                blank, unless `classes` or `abstain` lists a blank label: "refuse" the table, or "drop" these rows with
                a warning that counts them. A task or worker of which no row is left is not among the annotations,
                unless `tasks` or `workers` lists it.

        Raises:
            AnnotationError: something cannot be used, or a value is in `abstain` and in `classes`; the message names
                column, row and value and says what is accepted.
            UnknownNameError: `repeats` or `missing` is none of these words.
        """
        columns = as_frame(frame).columns
        if question is None and task in columns and any(map(names_questions, map(str, columns))):
            _tell_questions(as_frame(frame).to_pandas(), task, [worker, label, count, seconds, when])
        return cls(
            **long_fields(
                frame,
                LongColumns(task, worker, question, label, count, seconds, when),
                classes=classes,
                ordered=ordered,
                abstain=abstain,
                truth_classes=truth_classes,
                tasks=tasks,
                workers=workers,
                gold=gold,
                features=features,
                worker_features=worker_features,
                repeats=repeats,
                tidy=tidy,
                merge=merge,
                missing=missing,
            )
        )

    @classmethod
    def from_comparisons(
        cls,
        frame: Any,
        *,
        left: str = "left",
        right: str = "right",
        worker: str | None = "worker",
        label: str = "label",
        task: str | None = "task",
        prompt: str | None = INFER,
        count: str | None = None,
        seconds: str | None = None,
        abstain: Any = None,
        meaning: Mapping[Any, str] | None = None,
        preferences: bool | None = None,
        question: str | Sequence[str] | None = None,
        **options: Any,
    ) -> Self:
        """Make annotations from a table of comparisons: which of two items is better, one row for each annotation.

        A task is a pair of items, and its classes are left, right and, where it is used, tie;
        :attr:`.Annotations.pairs` has the items of each task. A pair that is shown in both orders is one task: left is
        what stood left in its first row, and labels of rows in the other order are mirrored, so that true labels and
        votes are of items. Which rows these are is kept (:attr:`.Annotations.mirrored`), and workers' confusion
        matrices are of sides as they were shown: a worker who prefers a position is told from one who errs.

        Args:
            frame: a pandas, polars or pyarrow table with A rows.
            left: the column of the items shown left, or first. Where a column of the default's name is not there, the
                columns left, right, worker and label are those of names that :func:`crowdppl.read` knows, such as
                model_a, model_b, rater and winner. Of a table with the columns winner and loser alone the sides are
                drawn at random, and no position bias can be told.
            right: the column of the items shown right, or second.
            worker: the column of workers; None where no worker is named, by which orders are lost.
            label: the column of annotations. They are sides, as shown in the row ("left", "right"; also "a" and "b", 1
                and 2, "model_a" and "model_b", or the names of the two columns), or in all rows the name of the
                better item; "tie", "draw", "equal", "same" and, with a warning, "neither", "both" and "tie (bothbad)"
                are ties.
            task: the column that names the pair, where the table has it; else, and for None, a task is the tuple of
                the two items, sorted, and all rows of a pair are of one task.
            prompt: in the place of `task`, the column of what items are compared by: tasks are then tuples (prompt,
                item, item). By default it is a column "prompt" of a table without tasks, if it has one; None not to
                look for it.
            count: the column that says how many equal annotations a row stands for, or None for one each.
            seconds: the column that says how long each annotation took, in seconds.
            abstain: the values of annotations that are no class, as for `from_frame`.
            meaning: by label "left", "right" or "tie", where other words or numbers stand for them:
                ``{0: "left", 1: "right"}``. What it names is read as it says, the other labels as above.
            preferences: whether each row is a preference of its own, and no annotation of a true label that the rows of
                a pair share: each is then a task, by its row from 0, and `task` is not looked at. Items' scores are
                those of Bradley and Terry's model of the rows where a story takes them for right: ``one_coin`` with
                ``right=1000, wrong=1``, as ``"auto"`` has it. None takes 20 rows or more for such, with a warning,
                where 70 % of them are the only one of their task, and neither gold labels, counts nor features of tasks
                are given: one annotation does not tell an error from a preference.
            question: the column of what a row compares the items by, where these are several questions, such as "more
                helpful" and "safer": a pair is a task of its own by each; or several columns, one for each question,
                with labels in the place of `label`. Scores of items are by one question
                (:meth:`.Annotations.of_question`).
            **options: when, classes, workers, gold, features, worker_features, repeats, tidy and missing as for
                `from_frame`; ``tidy=True`` also makes items of different case or blanks one.
                Gold labels are the better item, or "left", "right" or "tie" as the task's `pairs` have it.
                ``item_features`` are features of the items, of which scores may follow (:class:`.BradleyTerry`): a
                mapping item -> vector, or a table indexed by item, or with the column "item", and numbers in all
                others. An item that has features and is in no row is an item, too. With `prompt` ``features`` are of
                prompts, in the same forms.

        Raises:
            AnnotationError: an item is compared with itself, a label is neither a side nor an item of its row,
                `meaning` names a label that no row has, a task has two pairs, `preferences` have gold labels or counts,
                an item has no features where others have, or as `from_frame`. Items without features that no chain of
                comparisons connects are warned of.
        """
        names: dict[str, Any] = {"left": left, "right": right, "worker": worker, "label": label}
        is_drawn, columns = False, as_frame(frame).columns
        if (left, right, label) == ("left", "right", "label") and not {left, right} & set(columns):
            shown = as_frame(frame).to_pandas()
            frame = with_drawn_sides(shown)
            is_drawn, columns = frame is not shown, as_frame(frame).columns
        if (left, right) == ("left", "right") and any(n == role and n not in columns for role, n in names.items()):
            given = {role: name for role, name in names.items() if name != role or name in columns}
            look: dict[str, Any] = {
                "given": given,
                "abstain": abstentions_of(abstain),
                "meaning": meaning,
                "looks": False,
            }
            if not isinstance(question, str | None):
                given["question"], given["label"] = question, label
            table = as_frame(frame).to_pandas()
            known = find_comparison_columns(table, **look, sure=True)
            if known is not None and ("left" in given) == ("right" in given):
                names |= {role: getattr(known, role) or name for role, name in names.items() if role not in given}
            elif not {"left", "right"} & given.keys() and (sides := two_sides(columns)) is not None:
                names |= dict(zip(("left", "right"), sides, strict=True))  # so that the error is of the label
                names["worker"] = next(iter(named_for("worker", columns)), worker)
        if prompt == INFER:
            prompt = PROMPT if PROMPT in columns and task == TASK and TASK not in columns else None
        used = [*names.values(), task, prompt, count, seconds, options.get("when"), question]
        if task == TASK and prompt is None and TASK not in columns and not preferences:
            _tell_prompts([name for name in columns if name not in used])
        if question is None and (found := column_of_criteria(as_frame(frame).to_pandas(), used)) is not None:
            warn(
                f"column {found!r} seems to have what the items are compared by, and is not used, so that all rows of "
                f"a pair are of one task: question={found!r} takes each for a question of its own"
            )
        names |= {"task": task, "prompt": prompt, "question": question, "count": count, "seconds": seconds}
        named = ComparisonColumns(**names, when=options.pop("when", None))
        about: dict[str, Any] = {"abstain": abstain, "meaning": meaning, "preferences": preferences}
        fields = comparison_fields(frame, named, **about, **options)
        if fields["preferences"] and preferences is None:
            warn(OWN)
        labels = (value for name in named.answers for value in as_frame(frame).to_pandas()[name].dropna().unique())
        if ties := more_than_ties(labels, [*(meaning or ()), *abstentions_of(abstain)]):
            ties_said = " and ".join(map(repr, ties))
            warn(f"{ties_said} is read as a tie; where it is no judgment of the two items, abstain={ties} says so")
        return cls(**fields | (OF_DRAWN_SIDES if is_drawn else {}))

    @classmethod
    def from_tags(
        cls,
        frame: Any,
        *,
        task: str = "task",
        worker: str | None = "worker",
        tags: str = "tags",
        tag_separator: str | None = None,
        empty: Empty = "refuse",
        known: Iterable[Any] | None = None,
        gold: Any = None,
        **options: Any,
    ) -> Self:
        """Return annotations of a table whose cells have several tags: yes or no to each tag, which are questions.

        A row says of every tag that the table knows whether it was given.

        Args:
            frame: a table with one row for each annotation.
            task: the column of tasks.
            worker: the column of workers; None where no worker is named.
            tags: the column of tags: lists, or text with a separator, such as "sports|politics".
            tag_separator: between the tags of a text; None for "|", where no text may be taken apart by a comma or a
                semicolon instead.
            empty: what an empty cell is: ``"no"`` of a worker who gave no tag, ``"drop"`` a row to leave out, or
                ``"refuse"`` to ask which. A list without tags is of a worker who gave none.
            known: all tags in the wanted order, also those that nobody gave; else the tags used, as they come.
            gold: true tags of some tasks: a dictionary task -> tags, or a table with the columns of tasks and tags; or
                yes or no to some tags: a table with the columns task, question and label, as of ``cp.next_gold``.
            **options: as for `from_frame`.

        Raises:
            AnnotationError: a cell is empty or no list of tags, a text may be one tag or several, a tag is none of
                `known`, there are fewer than two tags, an option is none of these, or as for `from_frame`.
            UnknownNameError: `empty` is another word.
        """
        own: dict[str, Any] = {"tag_separator": tag_separator, "empty": empty, "known": known, "gold": gold}
        return cls(**tag_fields(frame, task=task, worker=worker, tags=tags, **own, **options))

    @classmethod
    def from_csv(
        cls, path: str | Path, *, separator: str | None = None, encoding: str | None = None, **options: Any
    ) -> Self:
        """Read annotations from a CSV (or TSV) file with a header, which may be compressed (.gz, .zst, .bz2, .xz).

        A column is of whole numbers where every value is written as Python writes one (labels as "1.0", too), else
        it is text as it stands: "007" stays "007". An empty cell is missing; "NA" and "None" are text like any other.
        Where `classes` or `tasks` list text, the column stays text. Cells of gold labels in a file
        (`gold="truth.csv"`) stand for the tasks and classes that are written so.

        Args:
            path: the file.
            separator: what separates the columns; None for a tab in .tsv files, else what most rows agree on.
            encoding: of the text; None to find out whether it is UTF-8, UTF-16 or, with a warning, Windows-1252.
            **options: as for `from_frame`.

        Raises:
            AnnotationError: as `from_frame`; or the file is empty or no CSV. Messages name rows with their line in
                the file.
            FileNotFoundError: there is no such file.
        """
        if encoding is not None:
            check_encoding(encoding)
        return cls(**csv_fields(path, separator, *LongColumns.among(options), encoding))

    @classmethod
    def from_parquet(cls, path: str | Path, **options: Any) -> Self:
        """Read annotations from a Parquet file; `options` and what is raised are as for `from_frame`."""
        columns, _ = LongColumns.among(options)
        columns.check()
        return cls.from_frame(read_parquet(path, columns.named), **options)

    @classmethod
    def from_matrix(
        cls,
        matrix: Any,
        *,
        missing: Any = -1,
        tasks: Iterable[Any] | None = None,
        workers: Iterable[Any] | None = None,
        **options: Any,
    ) -> Self:
        """Make annotations from a dense task x worker matrix of labels.

        Args:
            matrix: (N, J) whole numbers (1.0 is 1) or text; an array, or a table whose columns are the workers (and
                whose index, in pandas, are the tasks).
            missing: the value of cells without an annotation; None for None and NaN. Where it is among `abstain`, such
                as −1 in the matrices of weak supervision, its cells are abstentions, and only None and NaN are missing.
            tasks: names of an array's rows (else 0, 1, ...), or the wanted order of a table's.
            workers: names of an array's columns (else 0, 1, ...), or the wanted order of a table's.
            **options: classes, ordered, abstain, gold, features (an array is in the order of the rows), worker_features
                and repeats as for `from_frame`.

        Raises:
            AnnotationError: as `from_frame`; the matrix holds fractions, or an empty cell that is not `missing`.
        """
        abstain = abstentions_of(options.get("abstain"))
        missing = None if missing in abstain else missing
        rows = matrix_rows(matrix, missing, tasks, workers, listed_classes(options))
        return cls(**build(rows, **options))

    @classmethod
    def from_counts(
        cls,
        counts: Any,
        *,
        tasks: Iterable[Any] | None = None,
        classes: Iterable[Any] | None = None,
        abstain: Any = None,
        **options: Any,
    ) -> Self:
        """Make annotations without named workers from how many annotations of each class each task has.

        Args:
            counts: (N, K) whole numbers; an array, or a table whose columns are the classes (and whose index,
                in pandas, are the tasks). Only cells above zero become rows.
            tasks: names of an array's rows (else 0, 1, ...), or the wanted order of a table's.
            classes: names of an array's columns (else 0, 1, ...), or the wanted order of a table's.
            abstain: those of the columns that are no class, as for `from_frame`.
            **options: gold and features as for `from_frame`, and ordered=True for columns that are ordered classes;
                an array of features is in the order of the rows.

        Raises:
            AnnotationError: a cell is no whole number from 0, or as `from_frame`.
        """
        rows, columns = count_rows(counts, tasks, classes)
        abstentions = abstentions_of(abstain, columns)
        named = [name for name in columns if name not in abstentions]
        return cls(**build(rows, classes=named, abstain=abstain, **options))

    @classmethod
    def from_dict(cls, by_task: Mapping[Any, Mapping[Any, Any]], *, outer: str | None = None, **options: Any) -> Self:
        """Make annotations from {task: {worker: label}}; a task with an empty dictionary has no annotation.

        Args:
            by_task: the dictionary.
            outer: whether the outer keys are each a "task" or a "worker", whose dictionary is {task: label}. None for
                tasks, with a warning where there are at least five times as many inner keys.
            **options: tasks, workers, classes, ordered, abstain, gold, features, worker_features and repeats as for
                `from_frame`.

        Raises:
            AnnotationError: as `from_frame`; the dictionary is empty or not nested.
            UnknownNameError: `outer` is another word.
        """
        return cls(**build(nested_rows(by_task, listed_classes(options), outer), **options))

    @classmethod
    def from_json(cls, path: str | Path, **options: Any) -> Self:
        """Read {task: {worker: label}} from a JSON file; see `from_dict`.

        The keys of JSON are text: as in CSV files, tasks are whole numbers where all are written as such, and
        so are workers.
        """
        return cls.from_dict(read_nested(path), **options)

    @classmethod
    def read(cls, path: str | Path, **options: Any) -> Self:
        """Read a file by its suffix: .csv, .tsv, .parquet or .json; `options` are those of its reader.

        Raises:
            AnnotationError: another suffix, or as the readers.
        """
        readers = {
            ".csv": cls.from_csv,
            ".tsv": cls.from_csv,
            ".parquet": cls.from_parquet,
            ".json": cls.from_json,
        }
        suffix = suffix_of(path)
        if suffix not in readers:
            raise AnnotationError(
                f"{path}: the suffix {suffix!r} is none of those that can be read: {', '.join(readers)}"
            )
        return readers[suffix](path, **options)


def _tell_questions(table: Any, task: str, taken: list[str | None]) -> None:
    """Warn of a column of several questions a task that is not used."""
    if (found := question_column(table, task, taken)) is not None:
        warn(
            f"column {found!r} seems to have several questions about a task, and is not used, so that all of a task's "
            f"rows are annotations of one truth: question={found!r} takes each for a question of its own"
        )


def _tell_prompts(free: list[str]) -> None:
    """Warn of a column that names what items are compared by and is not used."""
    if found := named_for("task", free):
        warn(
            f"column {found[0]!r} seems to have what the items are compared by, and is not used, so that all rows of a "
            f"pair are of one task: prompt={found[0]!r} makes a task of each with each pair, and task=None says that "
            "they are one"
        )
