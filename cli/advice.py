"""Advice in error messages, which name Python's arguments, in the words of the command line."""

from __future__ import annotations

import re

_COLUMNS = "task|worker|label|count|seconds"
_RULES = (
    (r"\bworker=None\b", "--no-worker"),
    (rf"\b({_COLUMNS}|separator|repeats)=('[^']*'|\"[^\"]*\")", r"--\1 \2"),
    (rf"\b({_COLUMNS})=(?=[\s,;.]|$)", r"--\1"),
    (r"\bclasses=\[\.\.\.\]", "--classes A,B,C"),
    (r"\babstain=\[\.\.\.\]", "--abstain VALUE"),
    (r"\babstentions='uninformative'", "--set abstentions=uninformative"),
    (r"\b(classes|tasks|workers)=\[", r"\1 ["),
    (r"\blist all tasks in tasks \[\.\.\.\]", "list all tasks in Python, with tasks=[...]"),
    (r"Annotations\.from_frame\(frame, features=\{[^}]*\}\)", "--features FILE"),
    (r"\bask to overwrite it\b", "give --overwrite to replace it"),
    (r"\bread it with from_parquet\b", "give it the suffix .parquet"),
)


def for_the_shell(message: str) -> str:
    """Return an error message with the command line's options in place of Python's arguments.

    >>> for_the_shell("the table has no column 'worker'. Did you mean worker='rater'?")
    "the table has no column 'worker'. Did you mean --worker 'rater'?"
    """
    for pattern, replacement in _RULES:
        message = re.sub(pattern, replacement, message)
    return message
