"""Files of JSON and JSON Lines, in any encoding and compressed or not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .errors import AnnotationError
from .text_files import encoding_of, open_bytes, reading, suffix_of

LINES = (".jsonl", ".ndjson")
JSON = (".json", *LINES)


def read_json(path: Path, encoding: str | None = None) -> Any:
    """Return the value in a JSON file, or the list of those in its lines.

    Raises:
        AnnotationError: it is neither, or a key stands twice in one dictionary.
        FileNotFoundError: there is no such file.
    """
    with reading(path), open_bytes(path) as file:
        text = file.read().decode(encoding or encoding_of(path))
    try:
        value = json.loads(text, object_pairs_hook=lambda pairs: _without_repeats(pairs, path))
    except json.JSONDecodeError as whole:
        lines = [line for line in text.splitlines() if line.strip()]
        found = []
        for number, line in enumerate(lines, start=1):
            try:
                found.append(json.loads(line))
            except json.JSONDecodeError as error:
                reason = whole if number == 1 else f"line {number}: {error}"
                raise AnnotationError(f"{path} is no JSON file: {reason}") from None
        return found
    return [value] if isinstance(value, dict) and suffix_of(path) in LINES else value


def _without_repeats(pairs: list[tuple[str, Any]], path: Path) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise AnnotationError(f"{path}: the key {twice!r} stands twice in one dictionary; keep one, or rename it")
    return found
