"""Logs of inspect_ai, ``.json`` and ``.eval``, read without it.

A ``.eval`` file is a .zip of JSON files: ``header.json`` has what a ``.json`` log has but for its samples, which are
``samples/<id>_epoch_<epoch>.json``. They are packed by deflate or by zstd, which Python's own reader of .zip files
knows from Python 3.14 on. Nothing is unpacked to the disk, and no name in the file is taken for a path.
"""

import json
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import AnnotationError
from ..json_files import read_json
from ..text_files import start_of_text, suffix_of
from .verdicts import LARGEST, OURS, Log, Verdict, scorer_name

TOOL = "inspect_ai"
VERSION = 2
"""The version of the format that is read."""

LARGEST_SAMPLE = 2**29
"""Bytes of one sample, unpacked, beyond which a file is refused; samples with long transcripts have some 10⁷."""

ZSTD = 93  # its number among the methods of .zip files
SAMPLE = re.compile(r"samples/[^/]+\.json")
START = re.compile(rb'\s*\{\s*"version"\s*:\s*[^,{}]+,\s*"status"\s*:')
SCORER_FAILED = ("grader_failed", "scoring_failed")  # `Score.reason` where the failure is not the model's under test


def is_inspect_log(path: Path) -> bool:
    """Return whether a file is a log of inspect_ai: by its suffix ``.eval``, or by how its JSON begins."""
    if suffix_of(path) == ".eval":
        return True
    return suffix_of(path) == ".json" and START.match(start_of_text(path, 256)) is not None


def read_inspect_log(path: Path) -> Log:
    """Return the verdicts of a log of inspect_ai.

    A verdict's value is None where the score is NaN, inspect_ai's mark for a sample without a score, or where the
    scorer says that it failed.

    Raises:
        AnnotationError: the file cannot be read, or is of another version of the format.
    """
    header, samples = header_and_samples(path)
    version = header.get("version")
    if version != VERSION:
        raise AnnotationError(
            f"{path}: the log has version {version!r} of inspect_ai's format, and version {VERSION} is read; write it "
            f"anew by `inspect log convert {path.name} --to json --output-dir converted`"
        )
    spec = header.get("eval")
    if not isinstance(spec, Mapping) or not {"task", "model"} <= spec.keys():
        raise AnnotationError(f"{path}: eval.task and eval.model are needed in a log of inspect_ai")
    judges = _judges(spec)
    verdicts: list[Verdict] = []
    left_out: Counter[str] = Counter()
    for place, sample in samples:
        is_sample = isinstance(sample, Mapping) and isinstance(sample.get("epoch"), int)
        if not is_sample or not isinstance(sample.get("id"), str | int):
            raise AnnotationError(
                f"{path}, {place}: a sample with an id, text or a whole number, and epoch, a whole number, is needed"
            )
        where = f"{path.name}, sample {sample['id']!r}, epoch {sample['epoch']}"
        scores = sample.get("scores") or {}
        if not isinstance(scores, Mapping) or not all(isinstance(score, Mapping) for score in scores.values()):
            raise AnnotationError(f"{path}, {place}: scores is to have a dictionary for each scorer")
        if not scores:
            left_out["sample with an error" if sample.get("error") is not None else "sample without scores"] += 1
        target = sample.get("target")
        target = target[0] if isinstance(target, list) and len(target) == 1 else target
        common = {"suite": str(spec["task"]), "sample": sample["id"], "epoch": sample["epoch"], "model": spec["model"]}
        common |= {"uuid": sample.get("uuid")}
        common |= {"target": target if isinstance(target, str) and target else None}
        for name, score in scores.items():
            if name == OURS:
                left_out[f"score that {OURS} wrote"] += 1
                continue
            value, failed = score.get("value"), score.get("reason") in SCORER_FAILED
            for key, one in _values(value):
                if isinstance(one, list):
                    left_out["list of scores"] += 1
                    continue
                at = f"{where}, scorer {name!r}" + (f", {key!r}" if key is not None else "")
                own = {"scorer": judges.get(name, name), "key": key, "answer": score.get("answer")}
                verdicts.append(Verdict(place=at, value=None if failed or one != one else one, **common, **own))
    status = header.get("status")
    said = "" if status == "success" else f"the evaluation {path.name} has the status {status!r}"
    return Log(TOOL, _failed_by_key(verdicts), left_out, said)


def _values(value: Any, key: str | None = None) -> Iterator[tuple[str | None, Any]]:
    """The values of a score with their keys, of one within another with a full stop between; None of a single value."""
    if not isinstance(value, Mapping):
        yield key, value
        return
    for name, one in value.items():
        yield from _values(one, str(name) if key is None else f"{key}.{name}")


def _failed_by_key(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The verdicts, where one that failed of a scorer that else gives several values is one of each of these."""
    keys: dict[str, dict[str | None, None]] = {}
    for verdict in verdicts:
        keys.setdefault(verdict.scorer, {})[verdict.key] = None
    several = {scorer: [key for key in of if key is not None] for scorer, of in keys.items()}
    return [
        each
        for verdict in verdicts
        for each in (
            [verdict._replace(key=key) for key in several[verdict.scorer]]
            if verdict.key is None and verdict.value is None and several[verdict.scorer]
            else [verdict]
        )
    ]


def header_and_samples(path: Path) -> tuple[Mapping[str, Any], Iterator[tuple[str, Any]]]:
    """Return the log without its samples, and each sample with its place in the file.

    Raises:
        AnnotationError: the file cannot be read.
    """
    if suffix_of(path) == ".eval":
        return _packed(path)
    content = read_json(path, largest=LARGEST)
    if not isinstance(content, Mapping):
        raise AnnotationError(f"{path} is no log of inspect_ai: a dictionary with version, eval and samples is needed")
    samples = content.get("samples") or []
    if not isinstance(samples, list):
        raise AnnotationError(f"{path}: samples is a {type(samples).__name__}; a list is needed")
    header = {name: value for name, value in content.items() if name != "samples"}
    return header, ((f"samples[{number}]", sample) for number, sample in enumerate(samples))


def _packed(path: Path) -> tuple[Mapping[str, Any], Iterator[tuple[str, Any]]]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = {member.filename: member for member in archive.infolist()}  # of two of one name the last counts
    except (zipfile.BadZipFile, ValueError) as error:
        raise AnnotationError(f"{path} is no .eval file that can be read: {error}") from None
    if "header.json" not in members:
        raise AnnotationError(
            f"{path} has no header.json, as where the evaluation is still at work, or was killed; go on with it by "
            "`inspect eval-retry`, or leave the file out"
        )
    header = _member(path, members["header.json"])
    if not isinstance(header, Mapping):
        raise AnnotationError(f"{path}, header.json: a dictionary is needed")
    names = [name for name in members if SAMPLE.fullmatch(name)]
    return header, ((name, _member(path, members[name])) for name in names)


def _member(path: Path, member: zipfile.ZipInfo) -> Any:
    """The value of JSON in a file of a .zip.

    Raises:
        AnnotationError: it is larger than `LARGEST_SAMPLE`, or cannot be read.
    """
    place = f"{path}, {member.filename}"
    try:
        with path.open("rb") as file:
            content = _zstd(file, member) if member.compress_type == ZSTD else _other(file, member)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, EOFError) as error:
        raise AnnotationError(f"{place}: it cannot be unpacked: {error}") from None
    if len(content) > LARGEST_SAMPLE:
        raise AnnotationError(
            f"{place}: unpacked it has more than {LARGEST_SAMPLE:,} bytes, which no sample is expected to have; leave "
            "the file out, or write the log as .json"
        )
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise AnnotationError(f"{place}: it is no JSON: {error}") from None


def _other(file: BinaryIO, member: zipfile.ZipInfo) -> bytes:
    with zipfile.ZipFile(file) as archive, archive.open(member) as part:
        return part.read(LARGEST_SAMPLE + 1)


def _zstd(file: BinaryIO, member: zipfile.ZipInfo) -> bytes:
    """Up to `LARGEST_SAMPLE` + 1 bytes of a file of a .zip that is packed by zstd, of one or several frames."""
    import pyarrow as pa

    file.seek(member.header_offset)
    local = file.read(30)  # what the .zip has before the file's name: it ends with the lengths of that and of more
    if len(local) < 30 or local[:4] != b"PK\x03\x04":
        raise zipfile.BadZipFile("its header is damaged")
    file.seek(int.from_bytes(local[26:28], "little") + int.from_bytes(local[28:30], "little"), 1)
    packed = pa.BufferReader(file.read(member.compress_size))
    with pa.CompressedInputStream(packed, "zstd") as stream:
        content = bytes(stream.read(LARGEST_SAMPLE + 1))
    if len(content) <= LARGEST_SAMPLE and zlib.crc32(content) != member.CRC:
        raise zipfile.BadZipFile("its checksum is another")
    return content


def _judges(spec: Mapping[str, Any]) -> dict[str, str]:
    """By scorer its name with the model that judges, where the log says which: ``model_graded_qa (openai/gpt-4o)``."""
    roles = spec.get("model_roles")
    by_role = _model_name(roles.get("grader")) if isinstance(roles, Mapping) else None
    named: dict[str, str] = {}
    for scorer in spec.get("scorers") or []:
        if not isinstance(scorer, Mapping) or not isinstance(scorer.get("name"), str):
            continue
        options = scorer.get("options")
        model = _model_name(options.get("model")) if isinstance(options, Mapping) else None
        if model is None and "model_graded" in scorer["name"]:
            model = by_role
        if model is not None:
            short = scorer["name"].rpartition("/")[2]
            named[short] = scorer_name(short, model)
    return named


def _model_name(model: Any) -> str | None:
    """The name of a model that a log has as its name, with its settings, or in a list of those that vote."""
    if isinstance(model, list):
        names = [_model_name(each) for each in model]
        return ", ".join(filter(None, names)) or None
    name = model.get("model") if isinstance(model, Mapping) else model
    return name if isinstance(name, str) else None
