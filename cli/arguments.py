"""From what was typed to what `crowdppl.fit` takes, annotations, hyperparameters and options, and to a fit."""

from __future__ import annotations

import ast
import json
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..data.errors import AnnotationError, UnknownNameError, given_path, look_up
from ..data.text_files import check_columns, read_header, similar, suffix_of
from .advice import for_the_shell
from .output import named_for_others
from .request import Request, holds_saved
from .terminal import doing, starting

if TYPE_CHECKING:
    import pandas as pd
    import typer

    from .. import Fit
    from ..data import Annotations
    from ..data.scan import Scan

ELSEWHERE = {name: f"{name} has an option of its own, --{name}" for name in ("story", "method", "seed", "classifier")}
ELSEWHERE |= {name: f"{name} has an option of its own, --{name}" for name in ("checkpoint", "every", "resume")}
ELSEWHERE["gold"] = "gold labels have options of their own, --gold FILE --use-gold"
ELSEWHERE["probabilities"] = "models' probabilities have an option of their own, --probabilities FILE"
ELSEWHERE |= {
    name: f"{name} can only be given in Python"
    for name in ("annotations", "evidence", "backend", "progress", "stories")
}
"""Arguments of `crowdppl.fit` that --set does not take, and why."""

TABLES = ("history", "worker_families")
"""Hyperparameters that are tables, which --set takes as files."""

PRIORS = ("Prevalence", "SmoothPrevalence", "CorrelatedQuestions", "BradleyTerry")
"""Priors of the true classes that ``--set truth_prior=`` takes."""

TEXT = (".csv", ".tsv", ".txt")  # suffixes of files that have a header
STANDARD_INPUT = "-"
LOGS = (
    "of inspect_ai, lm-evaluation-harness, promptfoo, OpenAI evals, deepeval, langfuse, Braintrust, Weave, Phoenix or "
    "LangSmith"
)
IN_FOLDERS = ("*.parquet", "*.json*", "*.eval", "*.csv*", "*.tsv*")
ACCEPTED = (
    "a table (CSV, TSV, Excel, Parquet, JSON, JSON Lines), an export of an annotation tool, a folder of logs or of "
    "tables, or the name of a dataset is needed; crowdppl report takes the folder of a saved fit, too"
)


def _refuse_options_of_a_fit(context: typer.Context, folder: str, taken: Collection[str]) -> None:
    """Refuse options of reading and fitting annotations beside a fit that is saved, whatever their values."""
    for parameter in context.command.params:
        source = context.get_parameter_source(str(parameter.name))
        if parameter.name not in taken and source is not None and source.name == "COMMANDLINE":
            raise AnnotationError(
                f"{parameter.opts[0]} is of a new fit, and {folder} holds one that is saved, which is taken as it is; "
                f"leave out {parameter.opts[0]}, or give the annotations in place of the folder"
            )


def refuse_streamed(path: Path) -> None:
    """Refuse the folder of a streamed fit, where a fit in memory or annotations are needed.

    Raises:
        AnnotationError: with what it has, and what else to do.
    """
    if path.is_dir() and (path / "parameters.nc").is_file():
        raise AnnotationError(
            f"{path} is the folder of a streamed fit: labels/ and workers.csv have its results, and no page, choice of "
            "tasks or update is made of it. With --no-stream crowdppl fit writes a fit of which they are, where memory "
            "allows it; new rows are streamed with the old ones, into another folder"
        )


def check_input(request: Request, context: typer.Context | None = None, of_a_fit: Collection[str] = ()) -> None:
    """Refuse what can be refused before JAX and pandas are imported, which takes seconds.

    Args:
        request: what was asked for.
        context: of the command, where it takes a saved fit in place of annotations.
        of_a_fit: the parameters that the command takes of a saved fit.

    Raises:
        AnnotationError: a file is not there, the file of annotations has no such column, or options cannot be given
            together, or beside a saved fit.
        ValueError: a setting is no pair, or is given elsewhere.
    """
    saved = None if context is None else request.saved
    if context is not None and saved is not None:
        _refuse_options_of_a_fit(context, saved, of_a_fit)
    for pair in request.settings or []:
        _name_and_text(pair)
    if request.no_worker and request.worker is not None:
        raise AnnotationError("--no-worker and --worker cannot be given together")
    tables: list[tuple[str, Path | None]] = [("--probabilities", file) for file in request.probabilities or []]
    tables += [("--gold", request.gold), ("--features", request.features), ("--item-features", request.item_features)]
    for option, file in tables:
        check_file(file, f"{option}: ")
    if request.file == STANDARD_INPUT or saved is not None:
        return
    path = given_path(request.file)
    named, suffix = request.column_options, suffix_of(path)
    if holds_saved(path):
        raise AnnotationError(
            f"{path} is the folder of a fit, and annotations are needed here. Of the fit crowdppl report {path} --out "
            f"page.html writes the page, and crowdppl estimate {path} GOLD tells the accuracy from gold labels"
        )
    refuse_streamed(path)
    if path.is_dir() and not any(file for kind in IN_FOLDERS for file in path.rglob(kind)):
        raise AnnotationError(
            f"the folder {path} has no logs of evaluations (.json, .jsonl, .csv or .eval, {LOGS}), no tables (CSV, TSV "
            f"or Parquet), nor an export in JSON; {ACCEPTED}"
        )
    if request.is_several or path.is_dir():
        return  # the footers of Parquet files say the rest
    if not path.is_file():
        if path.suffix or len(path.parts) > 1:
            raise AnnotationError(f"there is no file {path}{similar(path) or f'; {ACCEPTED}'}")
        if named:
            raise AnnotationError(f"{named[0]}: there is no file {path}, and a dataset has no columns to name")
        return
    if suffix in TEXT:
        try:
            # What reads the file refuses names that stand twice, but for tables that a tool writes so.
            header = read_header(path, separator(request), request.encoding, may_repeat=True)
        except OSError as error:
            raise _unreadable(path, error) from error
        columns = request.named_columns
        in_cells = [name for name in columns.values() if name.partition(".")[0] in header]  # of dictionaries, as text
        check_columns(columns, [*header, *in_cells], str(path))


def read_annotations(request: Request, first: Annotations | None = None) -> Annotations:
    """Return the annotations in a file, or of the dataset of that name where there is no such file.

    Args:
        request: as `check_input` has let it pass.
        first: annotations that those of a file are added to, which say what is not said of classes; their gold labels
            are then left to the fit.

    Raises:
        AnnotationError: the file, the gold labels or the features cannot be used.
        UnknownNameError: there is neither such a file nor such a dataset.
    """
    path = given_path(request.file)
    if request.is_several:
        raise AnnotationError(
            f"{path} stands for several files; crowdppl fit streams them, other commands take one file"
        )
    from ..data.abstentions import Written

    options: dict[str, Any] = {**request.named_columns, **request.kind_of_file, "repeats": request.repeats}
    options |= request.of_logs
    if request.tidy:
        options["tidy"] = True
    if request.merge:
        options["merge"] = _by_label("--merge", request.merge, "LABEL=LABEL is needed, such as Yess=Yes")
    options |= stated_classes(request)
    if request.no_worker:
        options["worker"] = None
    if request.separator is not None:
        options["separator"] = separator(request)
    if request.truth_classes is not None:
        options["truth_classes"] = class_names(request.truth_classes)
    if request.meaning:
        needed = "LABEL=left, LABEL=right or LABEL=tie is needed, such as 0=left"
        options["meaning"] = _by_label("--meaning", request.meaning, needed)
    if request.preferences is not None:
        options["preferences"] = request.preferences
    if request.abstain:
        options["abstain"] = [Written(value) for value in request.abstain]
    if request.gold is not None and first is None:
        options["gold"] = request.gold
    if request.features is not None:
        options["features"] = read_table("--features", request.features, request.task)
    if request.item_features is not None:
        options["item_features"] = read_table("--item-features", request.item_features, None, names=("item",))
    annotations = _read(request, options, first)
    if request.only_question is not None:
        annotations = _of_question(annotations, request.only_question)
    if request.use_gold and annotations.gold is None:
        raise AnnotationError(f"--use-gold: {path} comes without gold labels; give them with --gold FILE")
    return annotations


def _of_question(annotations: Annotations, name: str) -> Annotations:
    """Return the annotations of one question, by its name as it is typed.

    Raises:
        AnnotationError: one question is asked about each task.
        UnknownNameError: there is no such question.
    """
    known = {str(question): question for question in annotations.questions}
    if not known:
        raise AnnotationError(f"--only-question {name}: one question is asked about each task; leave it out")
    return annotations.of_question(look_up("question of --only-question", name, known))


def read_probabilities(request: Request, annotations: Annotations | Scan) -> dict[str, Any]:
    """Return the option of `crowdppl.fit` with the models' probabilities, by the files' names; empty without any.

    Tasks and classes are those of the annotations that are written in the same way.

    Raises:
        AnnotationError: two files have one name, or one has no column of tasks.
    """
    from ..data import Annotations

    if not request.probabilities or not isinstance(annotations, Annotations):
        return {}
    tasks, classes = ({str(name): name for name in ids} for ids in (annotations.tasks, annotations.classes))
    found = {}
    for file in request.probabilities:
        if file.stem in found:
            raise AnnotationError(f"--probabilities: two files are called {file.stem!r}, which is the model's name")
        table = read_table("--probabilities", file, request.task)
        column = request.task or "task"
        if column not in table:
            raise AnnotationError(
                f"--probabilities: {file} has no column {column!r} of the tasks; it has {list(table.columns)}"
            )
        index = [tasks.get(str(name), name) for name in table[column].tolist()]
        numbers = table.drop(columns=column).set_axis(index)
        found[file.stem] = numbers.rename(columns=lambda name: classes.get(str(name), name))
    return {"probabilities": found}


def saved_or_new_fit(
    context: typer.Context,
    request: Request,
    named: Sequence[str] | None,
    method: str,
    of_a_fit: Collection[str],
    *,
    workers: str = "keep",
    key: Path | None = None,
) -> Fit:
    """Return the fit of a folder, or one of a story, or an average of several, to annotations.

    Args:
        context: of the command.
        request: of which the file is either.
        named: the stories of a new fit; None for the default one.
        method: likewise.
        of_a_fit: the parameters that a saved fit takes.
        workers: how workers are named: ``"keep"``, ``"hash"`` for pseudonyms, ``"drop"`` for numbers in a new fit.
        key: of the pseudonyms.

    Raises:
        AnnotationError: as of :func:`.check_input` and :func:`.read_annotations`.
    """
    check_input(request, context, of_a_fit)
    with starting(request):
        from .. import fit, load_fit
        from ..data.pseudonyms import read_key

        settings = parse_settings(request.settings or [], (named or [request.default_story()])[0], method)
    with doing(f"reading {request.file}", request):
        if request.saved is not None:
            result = load_fit(request.saved)
            return result.pseudonymised(read_key(key)) if workers == "hash" else result
        annotations = named_for_others(read_annotations(request), workers, key)
    stories = named or [request.default_story(annotations)]
    models = read_probabilities(request, annotations)
    shared = {"method": method, **request.shared_options, **models, **settings}
    with doing(f"fitting {', '.join(stories)} by {method.upper()}", request):
        if len(stories) > 1:
            return fit("auto", annotations, stories=stories, weights="stacking", **shared)
        return fit(stories[0], annotations, **shared)


def parse_settings(pairs: Iterable[str], story: str, method: str) -> dict[str, Any]:
    """Read NAME=VALUE pairs, with values as JSON and else as text; of hyperparameters that are tables, as files.

    Unknown names are left for `crowdppl.fit` to refuse, and so are numbers out of bounds.

    Args:
        pairs: as given on the command line.
        story: the story whose hyperparameters they may be.
        method: the engine whose options they may be.

    Raises:
        ValueError: it is no pair, the option is given elsewhere or belongs to another engine, or the value is of
            another kind than its default.
        AnnotationError: a file is not there, or cannot be read.
    """
    if not (pairs := list(pairs)):
        return {}
    from ..inference.engines.registry import ENGINES
    from ..models import ALIASES, KNOWN_STORIES
    from ..models.parts.general import hyperparameters_of

    story = ALIASES.get(story, story)
    hyperparameters = hyperparameters_of(KNOWN_STORIES[story]) if story in KNOWN_STORIES else {}
    settings = ENGINES[method].settings._field_defaults if method in ENGINES else {}
    found: dict[str, Any] = {}
    for pair in pairs:
        name, text = _name_and_text(pair)
        if name not in hyperparameters:
            _check_engine(pair, name, method)
        try:
            found[name] = json.loads(text)
        except json.JSONDecodeError:
            found[name] = _read_setting(name, Path(text)) if name in TABLES else text
        if name == "truth_prior":
            found[name] = _prior(pair, found[name])
        else:
            _check_kind(pair, found[name], (settings | hyperparameters).get(name))
    return found


def _name_and_text(pair: str) -> tuple[str, str]:
    """Take NAME=VALUE apart.

    Raises:
        ValueError: it is no pair, or the option is given elsewhere.
    """
    name, equals, text = pair.partition("=")
    if not (equals and name):
        raise ValueError(f"--set {pair}: NAME=VALUE is needed, such as max_iterations=500")
    if name in ELSEWHERE:
        raise ValueError(f"--set {pair}: {ELSEWHERE[name]}")
    return name, text


def _by_label(option: str, pairs: Iterable[str], needed: str) -> dict[str, str]:
    """Take pairs LABEL=VALUE apart, at the last sign, as a label may have one.

    Raises:
        ValueError: one is no such pair.
    """
    found = {}
    for pair in pairs:
        label, _, value = pair.rpartition("=")
        if not (label and value):
            raise ValueError(f"{option} {pair}: {needed}")
        found[label] = value
    return found


def _check_engine(pair: str, name: str, method: str) -> None:
    from ..inference.engines.registry import ENGINES

    having = [engine for engine, about in ENGINES.items() if name in about.settings._fields]
    if method in ENGINES and having and method not in having:
        raise ValueError(f"--set {pair}: {name} belongs to {' and '.join(having)}, not to {method}")


def _prior(pair: str, value: object) -> object:
    """The shares of the classes, or a prior of :data:`PRIORS` that is written as in Python, with numbers alone.

    Raises:
        ValueError: it is neither, or the prior does not take what it is given.
    """
    is_list = isinstance(value, list) and all(isinstance(share, int | float) for share in value)
    if value == "uniform" or is_list:
        return value
    from .. import models

    try:
        call: Any = ast.parse(str(value), mode="eval").body
        name, call = (call.id, None) if isinstance(call, ast.Name) else (call.func.id, call)
        given = [ast.literal_eval(each) for each in call.args] if call else []
        named = {str(each.arg): ast.literal_eval(each.value) for each in call.keywords} if call else {}
    except (SyntaxError, AttributeError, ValueError):
        name, given, named = "", [], {}
    if name not in PRIORS:
        raise ValueError(
            f"--set {pair}: uniform, the shares of the classes such as [0.3,0.7], or one of {', '.join(PRIORS)}, such "
            f"as '{PRIORS[0]}(10)', are needed; any other truth_prior can only be given in Python"
        )
    try:
        return getattr(models, name)(*given, **named)
    except TypeError as error:
        raise ValueError(f"--set {pair}: {error}") from None


def _check_kind(pair: str, value: object, default: object) -> None:
    if isinstance(default, bool) and not isinstance(value, bool):
        raise ValueError(f"--set {pair}: true or false is needed")
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if isinstance(default, int | float) and not isinstance(default, bool) and not is_number:
        raise ValueError(f"--set {pair}: a number is needed, such as {default}")


def _read(request: Request, options: dict[str, Any], first: Annotations | None) -> Annotations:
    from ..data import load_dataset
    from ..data.exports.reading import read, read_more

    path, reads = Path(request.file), read if first is None else partial(read_more, first)
    if first is not None or request.file == STANDARD_INPUT or path.exists():
        try:
            return reads(request.file, tell=not request.quiet and for_the_shell, **options)
        except OSError as error:
            raise _unreadable(path, error) from error
    if of_items := [
        f"--{name.replace('_', '-')}" for name in ("meaning", "preferences", "item_features") if name in options
    ]:
        raise AnnotationError(f"{of_items[0]} is of comparisons in a file, and there is no file {path}")
    try:
        return load_dataset(str(path), **options)
    except UnknownNameError as error:
        raise UnknownNameError(f"there is no file {str(path)!r} here, and: {error}") from None


def _unreadable(path: Path, error: OSError) -> AnnotationError:
    return AnnotationError(f"{path} cannot be read: {error.strerror or error}")


def separator(request: Request) -> str | None:
    """Return the character that was meant: the shell hands on a tab that is written as in Python as two."""
    return "\t" if request.separator == "\\t" else request.separator


def stated_classes(request: Request) -> dict[str, Any]:
    """Return the options classes and ordered that --classes and --ordered say, of all questions or of each by its name.

    ``A,B,C`` lists classes, ``A<B<C`` lists them from the least to the greatest, and either after ``QUESTION=`` is of
    this question alone. A text with more than one equals sign lists classes that have it in their names.

    Raises:
        AnnotationError: several lists name no question or one question twice, or an order is stated and denied.
    """
    given = request.classes or []
    by_question: dict[str, str] = {}
    for text in given:
        question, equals, names = text.partition("=")
        if text.count("=") != 1 or not (question and names):
            if len(given) == 1 and not (equals and text.count("=") == 1):
                return _stated(text, request.ordered, "")
            raise AnnotationError(
                f"--classes {text}: QUESTION=A,B,C is needed, such as safe=no,yes, where --classes is given more "
                "than once or has an equals sign; one list without a question is of all questions"
            )
        if question in by_question:
            raise AnnotationError(f"--classes {text}: the classes of the question {question!r} are listed twice")
        by_question[question] = names
    found: dict[str, Any] = {}
    for question, names in by_question.items():
        for option, value in _stated(names, request.ordered, f"{question}=").items():
            found.setdefault(option, {})[question] = value
    return found or ({} if request.ordered is None else {"ordered": request.ordered})


def _stated(text: str, ordered: bool | None, of: str) -> dict[str, Any]:
    """The options classes and ordered of one list of classes."""
    if "<" not in text:
        return {"classes": class_names(text, in_order=bool(ordered))} | (
            {} if ordered is None else {"ordered": ordered}
        )
    if ordered is False:
        raise AnnotationError(f"--classes '{of}{text}' states an order, and --no-ordered that there is none")
    if "," in text:
        raise AnnotationError(f"--classes '{of}{text}': all are separated by <, in their order, or all by commas")
    return {"ordered": class_names(text, "<", in_order=True)}


def class_names(text: str, separator: str = ",", *, in_order: bool = False) -> list[Any]:
    """Return the names between separators; whole numbers where all are, and in an order real numbers where all are."""
    import pandas as pd

    from ..data.text import as_numbers, decimal_numbers

    names = [name.strip() for name in text.split(separator)]
    if len(set(names)) < len(names):
        return names
    found = list(as_numbers(names).values())
    return decimal_numbers(pd.Series(names)).tolist() if in_order and found == names else found


def _read_setting(name: str, file: Path) -> pd.DataFrame:
    """A hyperparameter's table, with workers and classes as those of the annotations are read.

    Raises:
        AnnotationError: there is no such file, or it cannot be read.
    """
    if not file.is_file():
        raise AnnotationError(f"--set {name}: a file with a table is needed, and there is none {file}{similar(file)}")
    return read_table(f"--set {name}", file, None, names=("worker", "family", "truth", "label"))


def read_table(option: str, file: Path, task: str | None, *, names: tuple[str, ...] = ()) -> pd.DataFrame:
    """The table in a file: Parquet, or text with any separator and encoding, with its numbers as numbers.

    The column of tasks, and those of other names, are read as those of the annotations are: whole numbers, or text as
    it stands.
    """
    from ..data.column_names import named_for
    from ..data.frames import read_parquet_table, read_text_table
    from ..data.text import convert_text, decimal_numbers, truth_values

    try:
        if file.suffix.lower() == ".parquet":
            return read_parquet_table(file)
        table = read_text_table(file)
        ids = [task or "task"] if (task or "task") in table else named_for("task", table.columns)
        ids = [*ids, *names]
        for name in table.columns:
            text = table[name]
            (whole,) = convert_text(text)
            if whole is text and name not in ids:
                truth = truth_values(text)
                whole = decimal_numbers(text) if truth is text else truth
            table[name] = whole
        return table
    except (OSError, ValueError) as error:
        raise AnnotationError(f"{option}: {file} cannot be read as a table: {error}") from error


def check_file(file: Path | None, of: str = "") -> None:
    """Refuse a file that is not there; `of` is what the message begins with, the option.

    Raises:
        AnnotationError: there is none.
    """
    if file is not None and not file.is_file():
        raise AnnotationError(f"{of}there is no file {file}{similar(file)}")
