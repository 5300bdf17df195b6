"""Files of JSON and JSON Lines, in any encoding and compressed or not."""

import io
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from .errors import AnnotationError
from .lazy import uncollected
from .text_files import encoding_of, not_text, open_bytes, reading, start_of_text, suffix_of

LINES = (".jsonl", ".ndjson")
JSON = (".json", *LINES)
LONGEST = 2**20
"""Bytes of a first line, with its prompts and answers, by which a file's format is known."""


def read_json(path: Path, encoding: str | None = None, *, largest: int | None = None) -> Any:
    """Return the value in a JSON file, or the list of those in its lines.

    Args:
        path: the file.
        encoding: of the text; None to find out.
        largest: bytes, unpacked, beyond which the file is refused; None for any size.

    Raises:
        AnnotationError: it is neither, a key stands twice in one dictionary, or the file is too large.
        FileNotFoundError: there is no such file.
    """
    with reading(path), open_bytes(path) as file:
        content = file.read() if largest is None else file.read(largest + 1)
    if largest is not None and len(content) > largest:
        raise AnnotationError(
            f"{path} has more than {largest:,} bytes, and would take several times that in memory; split it, leave it "
            "out, or write a log of inspect_ai by `inspect log convert --to eval`"
        )
    try:
        text = content.decode(encoding or encoding_of(path))
    except UnicodeDecodeError as error:
        raise not_text(path, error) from None
    with uncollected():
        value = _value_or_lines(text, path)
    return [value] if isinstance(value, dict) and suffix_of(path) in LINES else value


def _value_or_lines(text: str, path: Path) -> Any:
    """Return the value of a text of JSON, or the list of those in its lines.

    Raises:
        AnnotationError: it is neither, or a key stands twice in one dictionary.
    """
    try:
        return json.loads(text, object_pairs_hook=_without_repeats(path))
    except RecursionError:
        raise AnnotationError(
            f"{path} is no JSON file that can be read: lists or dictionaries lie too deep in it"
        ) from None
    except json.JSONDecodeError as whole:
        found: list[Any] = []
        for number, line in enumerate(text.split("\n"), start=1):  # texts may have other ends of lines in them
            if not line.strip():
                continue
            try:
                found.append(json.loads(line))
            except (json.JSONDecodeError, RecursionError) as error:
                reason = f"line {number}: {error}; remove the line, or write the file anew" if found else str(whole)
                raise AnnotationError(f"{path} is no JSON file: {reason}") from None
        return found


def numbered_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield the number of each line of a file of JSON Lines, from 1, and its value; empty lines are left out.

    Raises:
        AnnotationError: a line is no JSON.
    """
    lines = io.TextIOWrapper(open_bytes(path), encoding=encoding_of(path), errors="replace", newline="\n")
    with reading(path), lines as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                yield number, json.loads(line)
            except (ValueError, RecursionError) as error:
                raise AnnotationError(f"{path}, line {number}: it is no JSON: {error}; remove the line") from None


def first_record(path: Path) -> Mapping[str, Any]:
    """Return the dictionary in the first line of a file of JSON Lines; an empty one where the line is none."""
    line = start_of_text(path, LONGEST).lstrip().partition(b"\n")[0]
    if not line.startswith(b"{"):
        return {}
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _without_repeats(path: Path) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    """Return what makes a dictionary of pairs, and refuses a key that stands twice."""

    def made(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise AnnotationError(f"{path}: the key {twice!r} stands twice in one dictionary; keep one, or rename it")
        return found

    return made
