"""Comparisons of two items: a table with the columns left, right, worker and label as annotations of pairs."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
import pandas as pd

from .abstentions import abstentions_of
from .answers import label_in
from .arrays import connected_parts, read_only
from .column_names import plain
from .columns import Column, Where, encode, row_number
from .errors import AnnotationError, check_name, truth_value, warn
from .features import feature_names, features_fields, ids_of_features, resolve_features
from .frames import as_frame, is_frame, take_column
from .gold import resolve_gold, table_of_gold
from .id_text import listing
from .ids import Ids
from .input_warnings import spelt_as, tell_alike_names, tidied_names
from .kinds import SIDES, DrawnSides, Pairwise, encode_labels, is_fraction, sorted_labels
from .long import LongColumns, Missing, before, long_fields, other_names, rows_kept, wide_answers, without_blanks
from .questions import Units, tasks_of
from .text_files import check_roles

KIND = Pairwise()

OF_DRAWN_SIDES: dict[str, Any] = {"kind": DrawnSides(), "mirrored": None}
"""Fields of annotations of which nobody knows what stood left, and in which order a pair was shown."""

COMPARED = (
    "", "model", "system", "generator", "item", "candidate", "option", "player", "answer", "response", "output",
    "assistant",
)  # fmt: skip
"""Words for what is compared, in plain letters, before the letter or number of a side: model_a, model_1.

Of two pairs of columns the one whose word comes first is taken.
"""

MORE_THAN_TIE = re.compile("(tie)?(both(are)?(good|bad)?|neither|equally(good|bad))|tieinconsistent")
"""Labels, in small letters and digits, that are ties and may say more: both are bad, or good."""

IS_BETTER = re.compile(
    r"(is)?(much|far|clearly|significantly|slightly|somewhat|marginally)?(better|preferred|wins|won)$"
)
"""Words that a label may have after its side, in small letters: A is slightly better, model_a wins."""

WORDS: dict[str, tuple[str, ...]] = {
    "left": ("left", "first", *(f"{what}{end}" for what in COMPARED for end in ("a", "1"))),
    "right": ("right", "second", *(f"{what}{end}" for what in COMPARED for end in ("b", "2"))),
    "tie": ("tie", "tied", "draw", "equal", "same", "bothequal", "aboutthesame", "nopreference"),
}
"""By class the labels that stand for it, in small letters and digits alone."""

SIGNS: dict[str, int] = {
    f"{one}{sign}{two}": side
    for first, second in (("a", "b"), ("1", "2"))
    for one, two, signs in ((first, second, ">=<"), (second, first, "<=>"))
    for sign, side in zip(signs, (0, 2, 1), strict=True)
}
"""By label the class of a>b, b<a, 1=2 and the like, in small letters and with one sign: A>>B is A>B, however much."""

TIED = "[[C]]"
"""The tie of judges who are asked for [[A]], [[B]] or [[C]], as in MT-bench."""

OPTIONS = ("classes", "workers", "gold", "features", "worker_features", "item_features", "repeats", "missing", "tidy")
"""Those of `Annotations.from_frame` that comparisons take, beside columns and abstentions."""

TASK, PROMPT, ITEM = "task", "prompt", "item"
"""The columns of tasks or of prompts, which a table need not have, and that of items in a table of their features."""

ASKED = ("0", "true", "false")
"""Labels, in small letters, that say yes or no of one side, and not of which."""

NUMBERS = {*ASKED, "1", "2"}
"""Labels of which none is known any more where it was told what one of them means."""

NAMED_ITEMS = 5  # that an error lists
NAMED_PARTS = 3  # of a disconnected graph that a warning lists

FEWEST = 20  # comparisons, from which on those of a task each are preferences unless it is said that they are not
ALONE = 0.7  # of the comparisons are the only one of their task where nearly every task has one
OWN = (
    "nearly every task has one annotation, so that each is a preference of its own (preferences=False takes it for an "
    "annotation of a true label, which may be wrong)"
)
"""Said of comparisons that were taken for preferences by themselves."""


@dataclass(frozen=True)
class ComparisonColumns:
    """The columns of a table of comparisons, by the options of :meth:`.Annotations.from_comparisons`.

    Of several columns of questions `label` is the first.
    """

    left: str
    right: str
    label: str
    worker: str | None
    task: str | None
    prompt: str | None
    question: str | Sequence[str] | None = None
    count: str | None = None
    seconds: str | None = None
    when: str | None = None

    def said(self) -> str:
        """Return which column was taken for what."""
        others = {"worker": self.worker, "task": self.task, "prompt": self.prompt, "question": self.question}
        if several := not isinstance(self.question, str | None):
            del others["question"]
        named = [f"{role} {name!r}" for role, name in others.items() if name is not None]
        said = f"a column for each of {len(self.answers)} questions" if several else f"label {self.label!r}"
        return ", ".join([f"{self.left!r} with {self.right!r}", said, *named])

    @property
    def answers(self) -> tuple[str, ...]:
        """The columns of labels."""
        return (self.label,) if isinstance(self.question, str | None) else tuple(self.question)


def comparison_fields(
    table: Any,
    columns: ComparisonColumns,
    *,
    abstain: Any,
    meaning: Mapping[Any, str] | None = None,
    preferences: bool | None = None,
    tell: bool = True,
    **options: Any,
) -> dict[str, Any]:
    """Return the fields of `Annotations` for a table of comparisons; see :meth:`.Annotations.from_comparisons`.

    Where `preferences` is None they are such if nothing is given that is of tasks, and nearly each has one annotation.
    `tell` is whether to warn of what the table lacks, as of one that is to be added to others it may.
    """
    if other := sorted(options.keys() - set(OPTIONS)):
        raise AnnotationError(
            f"{other[0]}= cannot be used of comparisons; leave it out (options are {', '.join(OPTIONS)})"
        )
    frame = as_frame(table)
    where: Where = row_number
    left, right, label, task, prompt, question = (
        getattr(columns, role) for role in ("left", "right", "label", "task", "prompt", "question")
    )
    beside = {"worker": columns.worker, "count": columns.count, "seconds": columns.seconds, "when": columns.when}
    if not isinstance(question, str | None):
        own = {"left": left, "right": right, "prompt": prompt, **beside}
        own |= {"task": task if task in frame.columns else None}
        wide, where, question = wide_answers(frame, own, list(question), label, where, "the table")
        frame = as_frame(wide)
    if truth_value("preferences", preferences, maybe=True, error=AnnotationError):
        task = None
        if columns.count is not None or options.get("gold") is not None:
            other_role = "gold" if columns.count is None else "count"
            raise AnnotationError(
                f"{other_role}= is of comparisons with a true label, and preferences=True takes each row for a "
                "preference of its own; leave out one of the two"
            )
    if task == TASK and (prompt is not None or TASK not in frame.columns):
        task = None
    roles = {"left": left, "right": right, "worker": columns.worker, "label": label, "task": task, "prompt": prompt}
    beside |= {"question": question}
    check_roles(roles | beside)
    if task is not None and prompt is not None:
        raise AnnotationError("task= and prompt= both say what is asked of a pair; give one of them")
    own = roles | {"question": question}
    if any(value is None or value != value for value in abstentions_of(abstain)):
        own["label"] = None  # an empty label is an abstention
    needed = {f"column {name!r}": take_column(frame, name, role) for role, name in own.items() if name is not None}
    needed |= {title: without_blanks(values) for title, values in needed.items() if title != f"column {label!r}"}
    missing: Missing = options.pop("missing", "refuse")
    check_name("value of missing", missing, get_args(Missing))
    kept = rows_kept(needed, missing)
    where = before(kept, where)
    if len(kept) < len(frame):
        frame = as_frame(frame.to_pandas().iloc[kept].reset_index(drop=True))
    if truth_value("tidy", options.pop("tidy", False), error=AnnotationError):
        others = {columns.worker: True, task: False, prompt: False}
        words = Words((left, right), meaning), abstentions_of(abstain)
        frame = as_frame(_tidied(frame.to_pandas(), (left, right), label, others, *words))
    shown = _encoded(frame, left, "left", where), _encoded(frame, right, "right", where)
    of_items, of_prompts = options.pop("item_features", None), None
    featured = () if of_items is None else _named(of_items, ITEM, "item_features")
    if prompt is not None and (of_prompts := options.pop("features", None)) is not None:
        _named(of_prompts, prompt, "features", "prompt")
    items = Ids(
        sorted_labels(Ids(dict.fromkeys([*shown[0].ids, *shown[1].ids, *featured]), what="items")), what="items"
    )
    if tell:
        tell_alike_names("items", items, case=True)
    sides = np.column_stack([column.aligned(items, "items").codes for column in shown])
    if (alike := np.flatnonzero(sides[:, 0] == sides[:, 1])).size:
        row = int(alike[0])
        raise AnnotationError(
            f"columns {left!r} and {right!r}, {where(row)}: {items[int(sides[row, 0])]!r} is compared with "
            "itself; leave the row out, or mend one of the two items"
        )
    named = prompt if task is None else task
    asked = None if named is None else _encoded(frame, named, "prompt" if task is None else "task", where)
    of_rows = None if question is None else _encoded(frame, question, "question", where)
    ids: list[Any] = []
    if not preferences:
        ids, first = _tasks(sides, items, asked, by_pair=task is None, columns=(left, right))
        of_tasks = (columns.count, options.get("gold"), None if prompt is not None else options.get("features"))
        if preferences is None and all(each is None for each in of_tasks):
            preferences = _are_alone(first, of_rows)
    if preferences:
        if tell and asked is not None and len(sides) >= FEWEST:
            _, of_prompt = _tasks(sides, items, asked, by_pair=True, columns=(left, right))
            if not _are_alone(of_prompt, of_rows):
                warn(
                    f"several preferences are of one pair and {prompt!r}, and count as independent: where a prompt "
                    "favours one of its items, scores are less sure than their intervals say; keep one row of each"
                )
        task, ids, first = None, preference_names(len(sides)), np.arange(len(sides))
    is_mirrored = sides[:, 0] != sides[first, 0]
    abstentions = abstentions_of(abstain)
    said_of = take_column(frame, label, "label")
    said = _sides_said(said_of, label, where, sides, items, Words((left, right), meaning), abstentions)
    mirror, gold = KIND.mirror(len(SIDES)), options.pop("gold", None)
    labels = [
        value if side is None else SIDES[mirror[side] if swapped else side]
        for value, side, swapped in zip(said_of, said, is_mirrored, strict=True)
    ]
    units = ids
    if of_rows is not None:
        units = [(name, of_rows.ids[int(code)]) for name, code in zip(ids, of_rows.codes, strict=True)]
    rows = pd.DataFrame(
        {
            "pair" if task is None else task: pd.Series(ids, dtype=object),
            label: pd.Series(labels, dtype=object),
        }
    )
    for role, name in beside.items():
        if name is not None:
            rows[name] = take_column(frame, name, role)
    fields = long_fields(
        rows,
        LongColumns(task=str(rows.columns[0]), label=label, **beside),
        abstain=abstain,
        kind=KIND,
        mirrored=is_mirrored,
        where=where,
        tell=tell,
        **options,
    )
    at_task = np.full((len(fields["tasks"]), 2), -1, np.int32)
    at_task[fields["tasks"].index_of(units)] = sides[first]
    if of_prompts is not None and asked is not None:
        given = resolve_features(of_prompts, asked.ids, noun="prompt", column=str(prompt), ordered=False)
        by_task = np.zeros((len(at_task), *given.shape[1:]), np.float32)
        by_task[fields["tasks"].index_of(units)] = given[asked.codes]
        fields |= {"features": read_only(by_task), "feature_names": feature_names(of_prompts, str(prompt))}
    if gold is not None:
        known: dict[str, Any] = {"task": str(rows.columns[0]), "label": label, "pairs": (at_task, items)}
        known |= {"abstentions": fields["abstentions"], **({} if question is None else {"question": question})}
        named_by = {label: Ids(dict.fromkeys(said_of.dropna().tolist())), left: items, right: items}
        named_by |= {} if named is None or asked is None else {named: asked.ids}
        named_by |= {} if question is None or of_rows is None else {question: of_rows.ids}
        if (table := table_of_gold(gold, named_by)) is not None:
            gold = gold_of_pairs(table, replace(columns, label=label, question=question, task=task), meaning)
        fields["gold"] = read_only(resolve_gold(gold, fields["tasks"], fields["classes"], **known))
    if of_items is not None:
        fields |= features_fields("item_features", of_items, items, ITEM, ordered=False)
    elif tell and (apart := told_parts(at_task, items)):
        warn(f"{apart}; {PARTS_MEND}")
    found = {"left": left, "right": right, **beside, "label": label, "task": task, "prompt": prompt}
    if not isinstance(columns.question, str | None):
        found |= {"question": columns.question, "label": None}
    fields["columns"] = other_names(found)
    return fields | {"sides": read_only(at_task), "items": items, "preferences": bool(preferences)}


def _tidied(
    table: pd.DataFrame,
    sides: tuple[str, str],
    label: str,
    names: Mapping[str | None, bool],
    words: "Words",
    silent: Iterable[Any],
) -> pd.DataFrame:
    """Return a table of which items, workers and prompts that differ by slips alone are one, as for `from_frame`.

    Of a label with more around it, such as "My verdict: [[A]]", it has what is said.

    Args:
        table: of comparisons, without missing names.
        sides: the columns of items.
        label: that of labels.
        names: by column, or None for none, of other names whether they may differ by case.
        words: what labels mean.
        silent: the labels that are no class.
    """
    both = encode(pd.concat([table[side] for side in sides], ignore_index=True), "items")
    tidy = tidied_names(both, case=True)
    of_rows = np.array([*tidy.ids, None], dtype=object)[tidy.codes].reshape(2, -1)
    found: dict[str, Any] = dict(zip(sides, of_rows, strict=True))
    for name, case in names.items():
        if name is not None:
            column = tidied_names(encode(table[name], name), case=case)
            found[name] = np.array([*column.ids, None], dtype=object)[column.codes]
    items = {both.ids[int(old)]: tidy.ids[int(new)] for old, new in zip(both.codes, tidy.codes, strict=True)}
    known = {*items, *silent}

    def said(value: Any) -> Any:
        if value in known or words.side(value) is not None or (inner := label_in(str(value))) is None:
            return items.get(value, value)
        return f"[[{inner}]]" if f"[[{inner}]]" in str(value) else inner

    return table.assign(**found, **{label: table[label].map(said, na_action="ignore")})


def gold_of_pairs(table: pd.DataFrame, columns: ComparisonColumns, meaning: Mapping[Any, str] | None) -> dict[Any, Any]:
    """Return the better item, or "tie", by task, of a table of gold labels with the columns of the comparisons.

    Raises:
        AnnotationError: a task has two gold labels, or as :func:`comparison_fields`.
    """
    table = table[table[columns.label].notna()].reset_index(drop=True)
    words = set(map(_text, table[columns.label]))
    told = None if meaning is None else {word: side for word, side in meaning.items() if _text(word) in words}
    bare = replace(columns, worker=None, count=None, seconds=None, when=None)
    try:
        fields = comparison_fields(table, bare, abstain=None, meaning=told, preferences=False, tell=False)
    except AnnotationError as error:
        raise AnnotationError(f"gold: {error}") from None
    task, given = np.asarray(fields["task"]), [fields["classes"][int(code)] for code in fields["label"]]
    better = better_items(fields["sides"][task], fields["items"], given)
    found: dict[Any, Any] = {}
    for at, label in zip(task.tolist(), better, strict=True):
        name = fields["tasks"][at]
        if found.setdefault(name, label) != label:
            raise AnnotationError(f"gold: task {name!r} has two labels, {found[name]!r} and {label!r}; keep one")
    return found


def _are_alone(first: np.ndarray, question: Column | None) -> bool:
    """Return whether nearly each row is the only one of its task, and of its question; few rows do not tell."""
    unit = first if question is None else first * len(question.ids) + question.codes
    _, place, times = np.unique(unit, return_inverse=True, return_counts=True)
    return len(unit) >= FEWEST and bool((times[place] == 1).mean() >= ALONE)


def preference_names(n: int, after: int = 0) -> list[str]:
    """Return names for the tasks of n comparisons that are each a preference of its own, after those with a number."""
    return [f"preference {number}" for number in range(after + 1, after + n + 1)]


def numbered_after(more: Any, first: Any) -> Any:
    """Return preferences to be added with other names of their tasks than those of the first ones."""
    last = max(int(str(name).rpartition(" ")[2]) for name in tasks_of(first.tasks))
    names = preference_names(len(tasks_of(more.tasks)), last)
    if not isinstance(more.tasks, Units):
        return more.replace(tasks=Ids(names))
    pairs = zip(more.tasks.task, more.tasks.question, strict=True)
    return more.replace(tasks=Units((names[i], more.tasks.questions[int(q)]) for i, q in pairs))


def _named(features: Any, column: str, option: str, noun: str = ITEM) -> Ids:
    """Whose features these are.

    Raises:
        AnnotationError: it is not said.
    """
    if not (isinstance(features, Mapping) or is_frame(features)):
        raise AnnotationError(
            f"{option}: a {type(features).__name__} does not say of which {noun}s its rows are; a dictionary "
            f"{noun} -> vector, or a table indexed by {noun} or with a column {column!r}, is needed"
        )
    return ids_of_features(features, column, f"{option}, {noun}s")


def pairs_frame(tasks: Ids, sides: np.ndarray, items: Ids) -> pd.DataFrame:
    """Return the items of each task, with the columns left and right: N rows."""
    index, names = tasks.to_index("task"), items.to_index()
    return pd.DataFrame({side: names[sides[:, at]] for at, side in enumerate(SIDES[:2])}, index=index)


def better_items(sides: np.ndarray, items: Ids, labels: Iterable[Any]) -> list[Any]:
    """Return of each task the item that its label, left or right, says is the better one; "tie" of a tie."""
    places = [SIDES.index(label) for label in labels]
    return [items[int(pair[at])] if at < 2 else SIDES[at] for pair, at in zip(sides, places, strict=True)]


def parts(sides: np.ndarray, n_items: int) -> np.ndarray:
    """Return the number of the connected part of the graph of comparisons that each item is of, shape (items,)."""
    return connected_parts(sides[:, 0], sides[:, 1], n_items)


def columns_of_tasks(annotations: Any) -> int | None:
    """Return of how many columns beside the two items the names of tasks are made: 1 with a prompt, else 0.

    None where a column of the table named them.
    """
    if not annotations.n_tasks:
        return None
    name: Any = tasks_of(annotations.tasks)[0]
    sides = np.asarray(annotations.sides)[0]
    pair = {annotations.items[int(item)] for item in sides}
    is_made = isinstance(name, tuple) and len(name) in (2, 3) and set(name[-2:]) == pair
    return len(name) - 2 if is_made else None


def prompts_of(annotations: Any) -> list[Any]:
    """Return the prompt of each task, where tasks are named by one and two items."""
    units: Any = annotations.tasks
    return [(task[0] if isinstance(units, Units) else task)[0] for task in units]


def shown_columns(annotations: Any) -> dict[str, pd.Series]:
    """Return what each row was shown: the columns left and right, and before them prompt, or task, and question.

    There is a column of prompts where tasks are named by one and the two items, and none of tasks where these alone
    name them.
    """
    units, row = annotations.tasks, np.asarray(annotations.task)
    columns, n_asked = units.to_columns(TASK, row), columns_of_tasks(annotations)
    if n_asked is not None:
        del columns[TASK]
    if n_asked:
        prompts = Ids(dict.fromkeys(of_task := prompts_of(annotations)), what="prompts")
        columns = prompts.to_columns(PROMPT, prompts.index_of(of_task)[row]) | columns
    shown = np.asarray(annotations.sides)[row]
    if annotations.mirrored is not None:
        shown = np.where(np.asarray(annotations.mirrored)[:, None], shown[:, ::-1], shown)
    for at, side in enumerate(SIDES[:2]):
        columns |= annotations.items.to_columns(side, shown[:, at])
    return columns


def together(first: Any, more: Any) -> tuple[Any, dict[str, Any]]:
    """Return comparisons to be added in the order of sides that is known of their tasks, and the fields of both.

    Args:
        first: annotations.
        more: annotations to be added. Where a task has its two items the other way round, its left is right here.

    Returns:
        `more`, and the fields `sides` and `items` of both; no fields where neither is of comparisons.

    Raises:
        AnnotationError: a task has other items in both, or only one of them knows the items.
    """
    if first.sides is None and more.sides is None:
        return more, {}
    if first.sides is None or more.sides is None:
        raise AnnotationError(
            "only one of both says which items are compared; make both by cp.Annotations.from_comparisons"
        )
    if first.preferences != more.preferences:
        raise AnnotationError(
            "only one of both was said to be preferences, each a task of its own; make both with preferences=True, or "
            "neither"
        )
    if first.preferences:
        more = numbered_after(more, first)
    items = Ids([*first.items, *(name for name in more.items if first.items.index_of([name])[0] < 0)])
    sides = items.index_of(more.items)[np.asarray(more.sides)]
    place = first.tasks.index_of(more.tasks)
    known = place >= 0
    before = np.where(known[:, None], np.asarray(first.sides)[place], sides)
    is_mirrored = (before == sides[:, ::-1]).all(1)
    if (other := np.flatnonzero(~is_mirrored & (before != sides).any(1))).size:
        task = int(other[0])
        names = [tuple(items[int(item)] for item in each[task]) for each in (before, sides)]
        raise AnnotationError(
            f"the task {more.tasks[task]!r} compares {names[0][0]!r} with {names[0][1]!r} here, and {names[1][0]!r} "
            f"with {names[1][1]!r} in what is to be added; name one of the two otherwise"
        )
    mirror = np.append(more.kind.mirror(more.n_classes), -1)  # the last is of an unknown gold label
    label = np.asarray(more.label)
    of_row = is_mirrored[np.asarray(more.task)]
    swapped = of_row & (label < more.n_classes)
    changes: dict[str, Any] = {"label": np.where(swapped, mirror[np.where(swapped, label, 0)], label)}
    kind = more.kind if first.kind.shows_sides else first.kind
    if kind.shows_sides:
        changes["mirrored"] = of_row if more.mirrored is None else of_row ^ more.mirrored
    if more.gold is not None:
        changes["gold"] = np.where(is_mirrored, mirror[np.asarray(more.gold)], more.gold)
    both = np.concatenate([np.asarray(first.sides), sides[~known]]).astype(np.int32)
    return more.replace(**changes), {"sides": read_only(both), "items": items, "kind": kind}


class Words:
    """The meanings of labels: sides by the words for them, by the names of the columns of items, or as was told."""

    def __init__(self, columns: tuple[str, str], meaning: Mapping[Any, str] | None = None) -> None:
        """Take the names of the columns of items, and what was told: by label the side, or the tie, that it means.

        Raises:
            AnnotationError: what was told is no dictionary, or names no side.
        """
        self.columns = columns
        if meaning is not None and not isinstance(meaning, Mapping):
            raise AnnotationError(f"meaning={meaning!r}: a dictionary such as {{0: 'left', 1: 'right'}} is needed")
        self.told: dict[str, int] = {}
        for label, word in (meaning or {}).items():
            if (side := self._known(word)) is None:
                raise AnnotationError(f"meaning: {label!r} means {word!r}; expected 'left', 'right' or 'tie'")
            self.told[_text(label)] = side
        if len(self.told) > 1 and len(set(self.told.values())) == 1:
            raise AnnotationError(f"meaning={dict(meaning or {})!r}: all of them mean the same")

    def side(self, label: Any) -> int | None:
        """Return the class that a label stands for, 0 for left, 1 for right and 2 for a tie; None for none."""
        if self.is_told(label):
            return self.told[_text(label)]
        return None if self.told.keys() & NUMBERS and _text(label) in NUMBERS else self._known(label)

    def is_told(self, label: Any) -> bool:
        """Return whether it was told what a label means."""
        return _text(label) in self.told

    def _known(self, label: Any) -> int | None:
        if str(label).strip() == TIED:
            return SIDES.index("tie")
        if (by_sign := SIGNS.get(re.sub(r"[\[\]\s]|([<>=])(?=\1)", "", str(label).casefold()))) is not None:
            return by_sign
        text = _bare(label)
        if MORE_THAN_TIE.fullmatch(text):
            return SIDES.index("tie")
        own: Mapping[str, str] = dict(zip(SIDES, map(plain, self.columns), strict=False))
        return next((k for k, side in enumerate(SIDES) if text in WORDS[side] or text == own.get(side)), None)


def more_than_ties(labels: Iterable[Any], stated: Iterable[Any]) -> list[str]:
    """Return the labels, as text, that are read as ties and may say more of the items, beside what is stated."""
    known = {*map(_text, stated)}
    ties = (label for label in dict.fromkeys(labels) if MORE_THAN_TIE.fullmatch(_bare(label)))
    return [str(label) for label in ties if _text(label) not in known]


def _bare(label: Any) -> str:
    return IS_BETTER.sub("", plain(label_text(label)))


def label_text(label: Any) -> str:
    """Return a label as text; a whole number as one, whatever its type."""
    is_whole = isinstance(label, float) and label.is_integer()
    return str(int(label) if is_whole else label)


def _text(label: Any) -> str:
    return label_text(label).strip().casefold()


def _encoded(frame: Any, name: str, role: str, where: Where) -> Column:
    return encode(take_column(frame, name, role), f"column {name!r}", where)


def _tasks(
    sides: np.ndarray, items: Ids, asked: Column | None, *, by_pair: bool, columns: tuple[str, str]
) -> tuple[list[Any], np.ndarray]:
    """The task's identifier of each row, and the row in which its pair is shown first, shape (A,).

    Raises:
        AnnotationError: a task that was named has two pairs.
    """
    pair = np.sort(sides, axis=1)
    question = np.zeros(len(sides), int) if asked is None else asked.codes.astype(int)
    keys = np.column_stack([question, pair]) if by_pair else question[:, None]
    _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    of_row = first[inverse.ravel()]
    if by_pair:
        head = [()] * len(sides) if asked is None else [(asked.ids[int(code)],) for code in question]
        ids = [(*q, items[int(i)], items[int(j)]) for q, (i, j) in zip(head, pair, strict=True)]
        return ids, of_row
    assert asked is not None  # tasks are by pair where no column names them
    if (other := np.flatnonzero((pair != pair[of_row]).any(1))).size:
        row, before_it = int(other[0]), asked.where(int(of_row[other[0]]))
        raise AnnotationError(
            f"{asked.title}, {asked.where(row)}: the task {asked.ids[int(question[row])]!r} compares other items in "
            f"columns {columns[0]!r} and {columns[1]!r} than in {before_it}; where the column names "
            "what several pairs are compared by, say prompt= in the place of task="
        )
    return [asked.ids[int(code)] for code in question], of_row


def _sides_said(
    values: pd.Series,
    label: str,
    where: Where,
    sides: np.ndarray,
    items: Ids,
    words: Words,
    abstentions: Iterable[Any],
) -> list[int | None]:
    """The side that each row names, as shown: 0 for left, 1 for right, 2 for a tie; None for an abstention.

    Raises:
        AnnotationError: a label is neither side nor item of its row, or may be either; or it was told what a label
            means that no row has.
    """
    column = encode_labels(values, f"column {label!r}", where)
    if unused := sorted(words.told.keys() - set(map(_text, column.ids))):
        raise AnnotationError(
            f"meaning: no row has the label {unused[0]!r}; {column.title} has {listing(column.ids, NAMED_ITEMS)}; "
            "leave out of meaning= what is not there, or mend how it is written"
        )
    silent = set(abstentions)
    kept = [name for name in column.ids if name in silent or words.side(name) is not None]
    column = spelt_as(column, items, f"{column.title}: labels differ from the items", kept)
    given = [name for name in column.ids if name not in silent]
    side = {name: words.side(name) for name in given}
    item = {name: -1 if words.is_told(name) else int(items.index_of([name])[0]) for name in given}
    are_sides = all(word is not None for word in side.values())
    are_items = all(item[name] >= 0 or side[name] == 2 for name in given)
    named = [name for name in given if item[name] >= 0]
    differ = (
        item[name] >= 0 and item[name] != sides[row, side[name]]
        for row, name in enumerate(column.ids[int(code)] for code in column.codes)
        if name not in silent
    )
    if are_sides and are_items and any(differ):
        raise AnnotationError(
            f"{column.title}: {named[0]!r} names a side and an item; write the labels 'left', 'right' and 'tie'"
        )

    def of_row(row: int) -> list[Any]:
        return [items[int(item)] for item in sides[row]]

    if not are_sides and not are_items:
        wrong = [name for name in given if side[name] is None and item[name] < 0] or named
        row = int(column.rows_with(list(column.ids).index(wrong[0]))[0])
        raise _neither(column, row, words, of_row(row))
    said: list[int | None] = []
    for row, code in enumerate(column.codes):
        name = column.ids[int(code)]
        if name in silent:
            said.append(None)
        elif are_sides:
            said.append(side[name])
        elif item[name] < 0:
            said.append(2)
        elif item[name] in sides[row]:
            said.append(int(sides[row, 1] == item[name]))
        else:
            raise _neither(column, row, words, of_row(row))
    return said


def _neither(column: Column, row: int, words: Words, items: Sequence[Any]) -> AnnotationError:
    """The error of a label that is no side, and none of the two items of its row."""
    value = column.ids[int(column.codes[row])]
    asked = [name for name in column.ids if _text(name) in (*ASKED, "1")]
    if _text(value) in ASKED and len(asked) == len(column.ids):
        given = ", ".join(
            f"{name!r}: {side!r}" for name, side in zip(sorted(asked, key=_text), ("right", "left"), strict=False)
        )
        mend = f"say what stands for which side, such as meaning={{{given}}}"
    elif (said := label_in(str(value))) is not None and (words.side(said) is not None or said in items):
        mend = f"tidy=True takes the label that is said in each, here {said!r}"
    elif _is_fraction(value):
        mend = (
            "a comparison has one of three outcomes: round numbers from 1 to 2 that say how far the second item is "
            f"preferred, by .round(), or say what stands for which side by "
            f"meaning={{{value!r}: 'tie', …}}"
        )
    else:
        mend = "name what is no class in abstain=[...]; say what other words stand for by meaning={value: 'left', …}"
    return AnnotationError(
        f"{column.title}, {column.where(row)}: {value!r} is neither a side nor an item of the row; expected left, "
        f"right or tie (also a, b, 1, 2, model_a, model_b, model_1, model_2, draw, equal, same, both, neither), or in "
        f"every row the item in {words.columns[0]!r} or {words.columns[1]!r} that is better, here {items[0]!r} or "
        f"{items[1]!r}; {mend}"
    )


def _is_fraction(value: Any) -> bool:
    """Return whether a label is a real number, or its text, that is no whole one."""
    try:
        return is_fraction(float(value))
    except (TypeError, ValueError):
        return False


PARTS_MEND = "add comparisons between the parts, or rank each alone"


def told_parts(sides: np.ndarray, items: Ids) -> str:
    """Say which items no chain of comparisons connects, in one sentence; empty where all are connected."""
    part = parts(sides, len(items))
    if (n_parts := int(part.max()) + 1) < 2:
        return ""
    members = [[items[int(i)] for i in np.flatnonzero(part == each)] for each in range(n_parts)]
    said = listing(members, NAMED_PARTS, lambda of: listing(of, 5), between="; ")
    return (
        f"the comparisons fall into {n_parts} parts that no comparison connects ({said}): items are "
        "comparable only within a part"
    )
