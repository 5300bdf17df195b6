"""Samples, models and scorers' values in records of experiments of Braintrust, Weave, Phoenix and LangSmith."""

import json
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import AnnotationError

LISTS = ("events", "data", "calls")  # keys under which an API has its records
LOCAL = "results"  # what each scorer gave to each answer, in what Braintrust's `Eval` returns
OF_PHOENIX = re.compile(r"annotation_(.+)_(label|score|error)")  # columns of its tables
Record = Mapping[str, Any]
Given = tuple[str, str | None, Any, bool]
"""A scorer, which of its several values it is, the value, and whether it is read only where that is asked for."""


def _listed(content: Any, what: str) -> Sequence[Any]:
    """Return the records of a list, or of a dictionary that has one as an API gives it.

    Raises:
        AnnotationError: there is no list.
    """
    if isinstance(content, Mapping):
        content = next((content[name] for name in LISTS if name in content), [content])
    if not isinstance(content, list):
        raise AnnotationError(f"{what}: a list of records is needed")
    return content


@dataclass(frozen=True)
class Experiments:
    """Records of one tool.

    Args:
        tool: its name.
        fields: those that tell its records, in plain letters; of a column ``a.b`` of a table ``a`` is one.
        sample: what was answered; None where the record does not say.
        given: what the scorers gave.
        is_answer: whether a record is an answer, and not one of the steps to it; by default all are.
        model: what answered; None where the record does not say, as by default.
        by_id: whether a model is an id, which says less than the name of a file that has one alone.
        records: the records in what a file has.
        said: what there is to say of all records; empty for nothing.
    """

    tool: str
    fields: frozenset[str]
    sample: Callable[[Record], Hashable]
    given: Callable[[Record], Iterator[Given]]
    is_answer: Callable[[Record], bool] = lambda record: True
    model: Callable[[Record], str | None] = lambda record: None
    by_id: bool = False
    records: Callable[[Any, str], Sequence[Any]] = _listed
    said: str = ""


def _inside(record: Any, *names: str) -> Any:
    """The value in a record under a name, under a name there, and so on; None where there is none."""
    for name in names:
        record = record.get(name) if isinstance(record, Mapping) else None
    return record


def _named(record: Record, *names: str) -> Iterable[tuple[str, Any]]:
    found = _inside(record, *names)
    return found.items() if isinstance(found, Mapping) else ()


def _of_braintrust(record: Record) -> Iterator[Given]:
    """Values of scorers; none is one that a person has not given, or that the scorer did not apply.

    A scorer that failed has no value.
    """
    for name, value in _named(record, "scores"):
        if value is not None:
            yield name, None, value, False
    for name, _ in _named(record, "metadata", "scorer_errors"):
        yield name, None, None, False


def _local_results(content: Any, what: str) -> Sequence[Any]:
    """The answers in what Braintrust's ``Eval`` returns, or several such, each with its experiment's name.

    Raises:
        AnnotationError: there are means of scorers alone.
    """
    found: list[Any] = []
    for each in content if isinstance(content, list) else [content]:
        results = _inside(each, LOCAL)
        if not isinstance(results, list):
            raise AnnotationError(
                f"{what} has the means of scorers by Braintrust, as `braintrust eval --jsonl` prints them, and what "
                "each scorer gave to each answer is needed: result = Eval(…); "
                "Path('results.json').write_text(json.dumps(result.as_dict(), default=str)), or in JavaScript "
                "JSON.stringify(result)"
            )
        summary = _inside(each, "summary")
        name = _inside(summary, "experiment_name") or _inside(summary, "experimentName")
        found += [{"experiment": name} | dict(one) if isinstance(one, Mapping) else one for one in results]
    return found


def _text_of(given: Any) -> str | None:
    """The name of an example without an id: its text, or its JSON."""
    if given is None or isinstance(given, str):
        return given
    return json.dumps(given, sort_keys=True, ensure_ascii=False)


def _of_weave(*at: str) -> Callable[[Record], Iterator[Given]]:
    """A function from a record to the values of scorers that it has under some names, one in the other."""
    return lambda record: _values_of_weave(_named(record, *at))


def _values_of_weave(scores: Iterable[tuple[str, Any]]) -> Iterator[Given]:
    """Values of scorers; of a dictionary the numbers and truth values, or its texts where there are none."""
    for name, value in scores:
        if not isinstance(value, Mapping):
            yield name, None, value, False
            continue
        values: dict[str, Any] = {key: one for key, one in value.items() if isinstance(one, bool | int | float)}
        values = values or {key: one for key, one in value.items() if isinstance(one, str)}
        for key, one in values.items():
            yield name, key if len(values) > 1 else None, one, False


def _sample_of_weave(record: Record) -> Hashable:
    example = _inside(record, "inputs", "example")
    if not isinstance(example, Mapping):
        return _name_of_weave(example)
    named = example.get("id")
    return named if isinstance(named, str | int) else _text_of(example)


def _rows_of_weave(content: Any, what: str) -> Sequence[Any]:
    """The rows of ``Evaluation.get_eval_results``, which do not say what was answered, each with its number."""
    rows = content["rows"] if isinstance(_inside(content, "rows"), list) else content
    numbered = enumerate(_listed(rows, what))
    return [{"row": number} | dict(row) if isinstance(row, Mapping) else row for number, row in numbered]


def _trials_of_weave(content: Any, what: str) -> Sequence[Any]:
    """Each trial in the results of several evaluations by row, as Weave's API gives them, as a record.

    Raises:
        AnnotationError: a row has no evaluations with trials.
    """
    names = {
        each.get("evaluation_call_id"): _name_of_weave(each.get("model_ref")) or each.get("display_name")
        for each in _inside(content, "summary", "evaluations") or ()
        if isinstance(each, Mapping)
    }
    found = []
    for number, row in enumerate(_inside(content, "rows") or _listed(content, what)):
        evaluations = _inside(row, "evaluations")
        if not isinstance(evaluations, list) or not all(isinstance(_inside(e, "trials"), list) for e in evaluations):
            raise AnnotationError(f"{what}, row {number}: evaluations is to be a list, each with trials")
        given = _inside(row, "raw_data_row")
        example = _sample_of_weave({"inputs": {"example": given}}) if given is not None else row.get("row_digest")
        for each in evaluations:
            call = each.get("evaluation_call_id")
            common = {"row": example, "model": names.get(call) or call}
            found += [dict(trial) | common if isinstance(trial, Mapping) else trial for trial in each["trials"]]
    return found


def _name_of_weave(reference: Any) -> str | None:
    """The end of a reference: the object's name and version, or a row of its dataset."""
    return reference.rpartition("/")[2] if isinstance(reference, str) else None


def _of_phoenix(record: Record) -> Iterator[Given]:
    """Scores of evaluators, or their labels where they have no score; labels beside scores where asked for."""
    given = record.get("annotations")
    if given is None:
        columns = {match: record[name] for name in record if (match := OF_PHOENIX.fullmatch(name))}
        names = dict.fromkeys(match[1] for match, value in columns.items() if value is not None)
        given = [{m[2]: v for m, v in columns.items() if m[1] == name} | {"name": name} for name in names]
    for each in given:
        name, score, label = str(each.get("name")), each.get("score"), each.get("label")
        if each.get("error") is not None:
            yield name, None, None, False
            continue
        yield name, None, label if score is None else score, False
        if score is not None and label is not None:
            yield name, "label", label, True


def _of_langsmith(record: Record) -> Iterator[Given]:
    """Scores of evaluators; none is one that has given none. The name of one may have a point in it."""
    return ((name, None, value, False) for name, value in _flat(_named(record, "feedback")) if value is not None)


def _flat(pairs: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    for name, value in pairs:
        if isinstance(value, Mapping):
            yield from ((f"{name}.{inner}", one) for inner, one in _flat(value.items()))
        else:
            yield name, value


TOOLS = (
    Experiments(
        "Braintrust",
        frozenset({"scores", "rootspanid", "spanid"}),
        lambda record: record.get("dataset_record_id") or _inside(record, "origin", "id") or record.get("id"),
        _of_braintrust,
        is_answer=lambda record: record.get("span_id") == record.get("root_span_id"),
        model=lambda record: record.get("experiment_id"),
        by_id=True,
    ),
    Experiments(
        "Braintrust",
        frozenset({"experimentname", "scores"}),
        lambda record: _inside(record, "origin", "id") or _text_of(record.get("input")),
        _of_braintrust,
        model=lambda record: record.get("experiment"),
        by_id=True,
        records=_local_results,
    ),
    Experiments(
        "Weave",
        frozenset({"opname", "inputs", "output"}),
        _sample_of_weave,
        _of_weave("output", "scores"),
        is_answer=lambda record: "predict_and_score" in str(record.get("op_name")),
        model=lambda record: _name_of_weave(_inside(record, "inputs", "model")),
    ),
    Experiments(
        "Weave",
        frozenset({"rowdigest", "evaluations", "trials"}),
        lambda record: record.get("row"),
        _of_weave("scores"),
        model=lambda record: record.get("model"),
        records=_trials_of_weave,
    ),
    Experiments(
        "Weave",
        frozenset({"scores", "modellatency"}),
        lambda record: record.get("row"),
        _of_weave("scores"),
        records=_rows_of_weave,
        said="a sample is a row, of which the order alone is known",
    ),
    Experiments(
        "Phoenix",
        frozenset({"exampleid", "repetitionnumber", "annotations"}),
        lambda record: record.get("example_id"),
        _of_phoenix,
    ),
    Experiments(
        "LangSmith",
        frozenset({"exampleid", "executiontime", "feedback"}),
        lambda record: record.get("example_id"),
        _of_langsmith,
    ),
)
"""By tool, what its records look like."""
