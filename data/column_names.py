"""Names of columns: by role those that people and tools give them, and the column of a table that is meant."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from .errors import AnnotationError, nearest

if TYPE_CHECKING:
    import pandas as pd

INFER = "infer"
"""Find the column out by its name."""

NAMES: dict[str, tuple[str, ...]] = {
    "task": (
        "task", "item", "example", "unit", "question", "sample", "instance", "object", "document", "doc", "image",
        "sentence", "text", "hit", "query", "record", "input", "prompt", "instruction", "pair", "span", "trace",
        "id",
        "aufgabe", "beispiel", "frage", "bild", "dokument", "satz", "tache", "exemple", "phrase", "tarea", "ejemplo",
        "pregunta", "imagen", "documento", "frase",
    ),
    "worker": (
        "worker", "annotator", "rater", "judge", "labeler", "labeller", "coder", "performer", "participant",
        "respondent", "user", "model", "llm", "lf", "reviewer", "expert", "grader", "source", "annotatorkind",
        "evaluator", "judgemodel", "gradermodel", "evaluatormodel", "annotatormodel",
        "annotatorin", "prufer", "bewerter", "bewerterin", "gutachter", "teilnehmer", "kodierer", "nutzer",
        "annotateur", "evaluateur", "juge", "utilisateur", "codeur", "anotador", "evaluador", "juez", "participante",
        "usuario", "codificador",
    ),
    "label": (
        "label", "annotation", "response", "answer", "rating", "vote", "judgment", "judgement", "class", "category",
        "choice", "value", "score", "verdict", "winner", "preference", "output",
        "bewertung", "antwort", "klasse", "kategorie", "urteil", "einstufung", "etikett", "etiquette", "reponse",
        "classe", "categorie", "jugement", "etiqueta", "respuesta", "clase", "categoria", "juicio",
        "puntuacion", "calificacion",
    ),
    "seconds": ("seconds", "worktimeinseconds", "leadtime", "durationseconds", "elapsedseconds"),
    "gold": ("gold", "goldlabel", "truth", "truelabel", "groundtruth", "golden"),
}  # fmt: skip
"""By role the names that a column may have, in English, and the usual ones in German, French and Spanish.

They are in small letters, without blanks, dashes, accents, and "id" or "name" at the end.
"""

CONTENT = ("text", "sentence", "image", "document", "question", "input", "prompt", "instruction")
"""Names of tasks that may as well be their content, where another column names them."""

CODED = ("label", "class", "category", "choice", "value", "option", "verdict", "klasse", "kategorie", "classe", "clase")
"""Names of labels, as :func:`stem` has them, that may be numbered: "label_id"; "answer_id" may be what is judged."""

JUDGED = ("answer", "response", "output", "antwort", "reponse", "respuesta")
"""Names of labels, as :func:`stem` has them, that may be those of what is judged instead."""

JUDGES = ("judge", "judgemodel", "evaluator", "evaluatormodel", "grader", "gradermodel")
"""Names of workers, as :func:`stem` has them, beside which a column "model" names what they judge."""

SYSTEMS = re.compile(
    r"((answer|candidate|completion|evaluated|generated|generator|judged|output|policy|response|target|tested)?"
    r"(model|llm|system))|candidate|generator|policy|assistant|chatbot|bot"
)
"""Names, as :func:`stem` has them, of columns that name who gave the answers that are judged."""

BOTH = " | "  # between the parts of a task's name that is made of two columns
LOOKED_AT = 20  # rows by which the two are found again

COUNTS = re.compile(
    r"counts?|n|(n|num|numberof|count|countof)(votes|labels|annotations|workers)|freq(uency)?|frequencies"
)
"""Names, as :func:`plain` has them, of columns that say how many equal annotations a row stands for."""

CRITERIA = frozenset({
    "accuracy", "accurate", "clarity", "clear", "coherence", "coherent", "completeness", "concise", "conciseness",
    "consistency", "content", "correctness", "creativity", "depth", "engagement", "factuality", "faithfulness",
    "fluency", "fluent", "grammar", "groundedness", "harmless", "harmlessness", "helpful", "helpfulness", "honest",
    "honesty", "informativeness", "instructionfollowing", "naturalness", "originality", "overall", "quality",
    "readability", "relevance", "relevant", "safe", "safety", "style", "tone", "toxicity", "truthful", "truthfulness",
    "useful", "usefulness",
})  # fmt: skip
"""Names, as :func:`plain` has them, of what is judged of an answer, which are hardly those of workers or classes."""

CRITERION_NAMES = ("annotationname", "scorename")
"""Names, as :func:`plain` has them, of columns that name what is judged, and not what was said of it."""

AGGREGATES = re.compile(
    r"(majority|mv|consensus|aggregated?|adjudicat(ed|ion)|final|resolved|agreed|merged|overall|mean|average|avg|median|mode)"
    r"(vote|label|annotation|answer|class|rating|score|grade|decision|verdict)?s?"
)
"""Names of columns of labels that no worker gave, as :func:`plain` has them."""

TRUTHS = re.compile(
    r"(expected|reference|target|actual|correct|true|real|right)(label|answer|class|value|response|output|score|rating)s?"
    r"|expected|reference|target|actual|answerkey|goldstandard|ytrue|gt"
)
"""Names of columns of true labels, as :func:`plain` has them, where their values are those of workers."""

HARDLY_REPEATED = 0.9
"""Share of the rows from which on so many different values are hardly those of tasks, workers or labels."""

RANGE = re.compile(r"(?<=\w)\s*[(\[]\s*-?\d+\s*(?:-|\u2013|to|/|\.\.|,)\s*\d+[^()\[\]]*[)\]]\s*$")
"""A range of scores after the name of their column, in brackets."""

TIMES = ("time", "duration", "elapsed")
"""Names that may be those of times, in seconds or not."""


def plain(name: str) -> str:
    """Return a name in small letters and digits alone."""
    return re.sub(r"[^a-z0-9]", "", unicodedata.normalize("NFKD", name.casefold()))


def stem(name: str) -> str:
    """Return a name in small letters and digits, without "id" or "name" at its end, or a range: Score (1-10)."""
    short = plain(RANGE.sub("", name))
    return re.sub(r"(?<=.)(ids?|names?)$", "", short) or short


def are_criteria(names: Iterable[object], fewest: int = 2) -> bool:
    """Return whether names, `fewest` or more, are those of criteria, and of no workers: at least half are known."""
    names = list(names)
    return len(names) >= fewest and 2 * sum(plain(str(name)) in CRITERIA for name in names) >= len(names)


def name_criteria(names: Iterable[str]) -> bool:
    """Return whether at least half of the names have a criterion in them, and not one alone: ``accuracy/v1/score``."""
    found = [CRITERIA.intersection(map(plain, re.split(r"[\W_]+", name))) for name in names]
    return 2 * sum(map(bool, found)) >= len(found) and len(frozenset().union(*found)) > 1


def is_identifier(name: str) -> bool:
    """Return whether a name says that its column has identifiers: ``answer_id``, ``response ID``, ``outputId``."""
    return re.search(r"(?i:[ _-]ids?$)|(?<=[a-z0-9])I[Dd]s?$", name) is not None


def is_name_of(name: str, role: str) -> bool:
    """Return whether a column of this name may have this role; ``judge.model`` and ``judge.id`` where both parts do."""
    outer, _, inner = name.rpartition(".")
    if outer and is_name_of(outer, role):
        return stem(inner) in (*NAMES[role], "id", "name")
    return stem(name) in NAMES[role] and not (role == "label" and plain(name) in CRITERION_NAMES)


def is_of_annotations(name: str) -> bool:
    """Return whether a column has the name of workers, labels, times or gold labels, and so says nothing of a task."""
    return plain(name) == "count" or any(is_name_of(name, role) for role in ("worker", "label", "seconds", "gold"))


def named_for(role: str, columns: Iterable[str]) -> list[str]:
    """Return the columns whose names are known for a role.

    Of several that may name tasks, a column "id" beside another name is the row's, and "text" the task's content.
    Of "output.label" and "output.score" the first has the role's own name. Of "model" and "judge" the first is what
    is judged. "answer_id" names a task, where nothing else does, and a label only where nothing else does.
    """
    columns = list(columns)
    found = [name for name in columns if is_name_of(name, role)]
    if role == "task" and not found:
        found = [name for name in columns if is_identifier(name) and is_name_of(name, "label")]
    if role == "label":
        found = [name for name in found if not is_identifier(name)] or found
    if role == "worker" and any(stem(name) in JUDGES for name in found):
        found = [name for name in found if stem(name) not in ("model", "llm")]  # which are judged
    if all("." in name for name in found):
        found = [name for name in found if name.rpartition(".")[2] == role] or found
    if role == "task":
        found = [name for name in found if plain(name) not in ("id", *CONTENT)] or found
        found = [name for name in found if plain(name.rpartition(".")[2]) not in CONTENT] or found
    return found


def one_column(
    role: str, found: Sequence[str], columns: Sequence[str], what: str, taken: Collection[str | None] = ()
) -> str:
    """Return the one column that was found for a role; `taken` are those of other roles.

    Raises:
        AnnotationError: there are several, or none.
    """
    if not found:
        raise missing_column(role, role, columns, what, taken=taken)
    likely = next((name for name in found if stem(name) not in JUDGED), found[0])
    return _only(found, what, f"may all name the {role}s; say {role}={likely!r}")


def _only(found: Sequence[str], what: str, mend: str) -> str:
    """The one column that was found, or an error that says of several how one is chosen."""
    if len(found) > 1:
        raise AnnotationError(f"{what}: {' and '.join(map(repr, found))} {mend}")
    return found[0]


def own_or_known_column(role: str, columns: Iterable[object], what: str) -> str:
    """Return the column of the role's own name, else the one that is known for it.

    Raises:
        AnnotationError: there is none, or several may be meant; one can be renamed.
    """
    names = [str(name) for name in columns]
    found = [role] if role in names else named_for(role, names)
    if not found:
        raise AnnotationError(f"{missing_column(role, None, names, what)} Rename the column of {role}s to {role!r}.")
    return _only(found, what, f"may all name the {role}s; rename one to {role!r}")


def gold_columns(
    columns: Iterable[object], task: str, label: str, what: str = "gold", there: Iterable[object] | None = None
) -> tuple[str, str]:
    """Return the columns of tasks and of labels in a table of gold labels.

    Each is the one of the annotations' name, else one that is known for it: "id", say, and "gold" or "answer".

    Args:
        columns: the table's.
        task: the annotations' column of tasks.
        label: the annotations' column of labels.
        what: the table, for messages.
        there: the columns that messages name; None for `columns`.

    Raises:
        AnnotationError: one of the two is not there, or two columns may be meant.
    """
    names = [str(name) for name in columns]
    may_be = {"task": repr(task), "label": " or ".join(map(repr, dict.fromkeys([label, "gold"])))}

    def named(role: str, asked: str, free: list[str], other: str) -> str:
        found = [name for name in (asked, role) if name in free][:1] or named_for(other, free) or named_for(role, free)
        if not found:
            lacking = missing_column(asked, None, names if there is None else map(str, there), what)
            raise AnnotationError(f"{lacking} Rename the column of {role}s to {may_be[role]}.")
        return _only(found, what, f"may be the column of {role}s; rename one to {may_be[role]}")

    of_tasks = named("task", task, names, "task")
    return of_tasks, named("label", label, [name for name in names if name != of_tasks], "gold")


def gold_columns_by_content(
    table: pd.DataFrame, tasks: Iterable[object], labels: Iterable[object]
) -> tuple[str, str] | None:
    """Return the columns that have tasks alone and labels alone; None where these are not the only two."""
    of_tasks, of_labels = columns_with(table, tasks), columns_with(table, labels)
    pairs = [(one, other) for one in of_tasks for other in of_labels if one != other]
    return pairs[0] if len(pairs) == 1 else None


def columns_with(table: pd.DataFrame, values: Iterable[object]) -> list[str]:
    """Return the columns in which there is nothing but some of these values, whatever their case and type."""
    known = {_text(value) for value in values}
    given = {str(name): {_text(value) for value in table[name].dropna()} for name in table.columns}
    return [name for name, found in given.items() if found and found <= known]


SCORED = re.compile(r"(?:score|rating|grade|points)s?(?:a|b|1|2|left|right|modela|modelb)")
"""Names, in plain letters, of columns with the scores of either of two items."""

RANKED = re.compile(r"(?:rank|ranked|place|choice)\d+")
"""Names, in plain letters, of columns with the items of a ranking."""


def preferred_items(names: Iterable[str]) -> tuple[str, str] | None:
    """Return the columns of the better and the worse of two items, such as chosen and rejected; None without any.

    Of chosen_model and rejected_model beside them these, whose values are rather those of several rows.
    """
    by_plain = {plain(name): name for name in names if "score" not in plain(name)}
    chosen = [name for name in by_plain if "chosen" in name and name.replace("chosen", "rejected") in by_plain]
    best = max(chosen, key=len, default=None)
    return None if best is None else (by_plain[best], by_plain[best.replace("chosen", "rejected")])


def told_sides(names: Iterable[str]) -> str:
    """Say, after a space, how columns of two scores, a ranking or a preferred item become comparisons; else nothing."""
    names = list(names)
    if (pair := preferred_items(names)) is not None:
        one, other = pair
        return (
            f" Where {one!r} and {other!r} name two items, models say, each row is a comparison: table.assign("
            f"left=table[{[one, other]}].min(axis=1), right=table[{[one, other]}].max(axis=1), label=table[{one!r}]), "
            "for cp.Annotations.from_comparisons(table, prompt=…, worker=None, preferences=True). Where they are texts "
            "that stand in one row each, there is one opinion of each pair, and nobody says whose: nothing tells "
            "errors from the truth then, and a second opinion is needed, with who gave it."
        )
    scored, ranked = ([name for name in names if shape.fullmatch(plain(name))] for shape in (SCORED, RANKED))
    if len(scored) == 2:
        one, other = scored
        return (
            f" Where {one!r} and {other!r} are scores of two items, they are a comparison of them: table['label'] = "
            f"np.sign(table[{other!r}] - table[{one!r}]).map({{-1: 'left', 0: 'tie', 1: 'right'}}), and the items in "
            "columns 'left' and 'right', for cp.Annotations.from_comparisons(table, prompt=…)."
        )
    if len(ranked) > 1:
        return (
            f" Where {ranked[0]!r}, … have the items of a ranking, the best first, each two of them are a comparison: "
            f"pd.concat([table.drop(columns={ranked}).assign(left=table[[a, b]].min(axis=1), right=table[[a, b]].max("
            f"axis=1), label=table[a]) for a, b in itertools.combinations({ranked}, 2)], ignore_index=True), for "
            "cp.Annotations.from_comparisons(table, prompt=…)."
        )
    return ""


def task_column(table: pd.DataFrame, tasks: Iterable[object]) -> str:
    """Return the column of a table that names its tasks: the only one that has tasks alone, or by its name.

    Raises:
        AnnotationError: neither tells.
    """
    names = [str(name) for name in table.columns]
    named = ["task"] if "task" in names else named_for("task", names)
    alone = [] if named == ["task"] else columns_with(table, tasks)
    found = [name for name in alone if name in named] or alone or named
    if len(found) == 1:
        return found[0]
    raise missing_column("task", "task", names, "the table")


def names_of_both(table: pd.DataFrame, one: str, other: str) -> pd.Series:
    """Return names that are made of two columns, for each row; None where either is empty."""
    names = table[one].astype(str) + BOTH + table[other].astype(str)
    return names.where(table[[one, other]].notna().all(axis=1))


def parts_of(name: str) -> list[str]:
    """Return the columns that "a | b" or "a,b" may name together; of another name itself alone."""
    return [part.strip() for part in name.split(BOTH if BOTH in name else ",")]


def columns_of_task(name: str, columns: Iterable[object]) -> list[str]:
    """Return the column of a name; or the two that it names together, where none is called so and one of them is."""
    columns, parts = set(columns), parts_of(name)
    are_two = name not in columns and len(set(parts)) == len(parts) == 2 and not columns.isdisjoint(parts)
    return parts if are_two else [name]


def both_columns(table: pd.DataFrame, tasks: Iterable[object]) -> tuple[str, str] | None:
    """Return the two columns of a table of whose values its tasks' names are made; None where these are not."""
    tasks, first = list(tasks), table.head(LOOKED_AT)
    if not (tasks and isinstance(tasks[0], str) and BOTH in tasks[0]):
        return None
    known = set(tasks)
    pairs = itertools.permutations(table.columns, 2)
    return next((pair for pair in pairs if names_of_both(first, *pair).isin(known).any()), None)


def tasks_of_rows(table: pd.DataFrame, tasks: Iterable[object]) -> tuple[pd.Series, str]:
    """Return the task that each row of a table is of, and the column that names it, or the two that do.

    Raises:
        AnnotationError: no column tells.
    """
    tasks = list(tasks)
    if (both := both_columns(table, tasks)) is not None:
        return names_of_both(table, *both), f"columns {both[0]!r} and {both[1]!r}"
    name = task_column(table, tasks)
    return table[name], f"column {name!r}"


def _text(value: object) -> str:
    return " ".join(str(value).split()).casefold()


def likely_columns(table: pd.DataFrame, roles: Sequence[str], taken: Sequence[str | None]) -> dict[str, str]:
    """Return by role the column that has such values: no guess to go by, but one to ask about.

    Labels are the column of the fewest values, and tasks that of the most, where each stands more than once. Of more
    columns than roles those are left out that cannot be: of one value, or of another in nearly every row, as times.

    Args:
        table: a row for each annotation.
        roles: of task, worker and label, those without a column.
        taken: the columns of the other roles.

    Returns:
        Nothing where more columns are left than roles, two of them have as many values, or a column's values are not
        like those of its role.
    """
    sizes = {str(name): table[name].map(str).nunique() for name in table.columns if str(name) not in taken}
    if len(sizes) > len(roles):
        sizes = {name: size for name, size in sizes.items() if 1 < size < HARDLY_REPEATED * len(table)}
    if len(sizes) != len(roles) or len(set(sizes.values())) < len(sizes):
        return {}
    in_order = sorted(sizes, key=lambda name: sizes[name])
    found = dict(zip([role for role in ("label", "worker", "task") if role in roles], in_order, strict=True))
    repeated = "task" not in found or sizes[found["task"]] < len(table)
    few = "label" not in found or 2 <= sizes[found["label"]] <= max(2, len(table) // 3)
    return {role: found[role] for role in roles} if repeated and few else {}


def missing_column(
    name: str,
    role: str | None,
    columns: Iterable[object],
    what: str,
    others: Sequence[str] = (),
    likely: Mapping[str, str] | None = None,
    taken: Collection[str | None] = (),
) -> AnnotationError:
    """Make the error for a column that is not there.

    Args:
        name: the column.
        role: what it was to be, which is the option that names it; None where no option does.
        columns: the table's.
        what: the table.
        others: options that are lacking too, so that all of them are asked for at once.
        likely: by option the column that may be meant by what is in it.
        taken: columns of other roles, which cannot be meant.
    """
    names = [str(column) for column in columns]
    text = f"{what} has no column {name!r}; its columns are {', '.join(map(repr, names)) or 'none'}."
    others_likely = [column for option, column in (likely or {}).items() if option != role]
    free = [each for each in names if each not in (*taken, *others_likely)]
    like = [each for each in free if role in NAMES and is_name_of(each, role)]
    like += [each for each in free if role in NAMES and is_name_of(each.rpartition(".")[2], role)]
    like += [each for each in free if role == "seconds" and plain(each) in TIMES]
    near = nearest(name, free) or next(iter(like), None)
    if near:
        text += f" Did you mean {near!r}?" if role is None else f" Did you mean {role}={near!r}?"
    elif likely:
        text += f" By what is in them: {', '.join(f'{option}={column!r}' for option, column in likely.items())}?"
    elif others:
        first, *last = [f"{option}='COL'" for option in (role, *others)]
        text += f" Say which columns name what by {', '.join([first, *last[:-1]])} and {last[-1]}."
    elif role is not None:
        text += f" Say which it is by {role}='COL'."
    text += told_sides(names) if "label" in (role, *others) else ""
    if role == "worker":
        text += " Where no worker is named, pass worker=None."
    if sum(each.startswith("Unnamed: ") for each in names) > len(names) / 2:
        text += " The first row seems to be a title: the header has to be the first row."
    if len(names) == 1 and (separator := next((c for c in ";\t|" if c in names[0]), None)):
        text += f" The columns seem to be separated by {separator!r}: pass separator={separator!r}."
    return AnnotationError(text)
