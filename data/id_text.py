"""Identifiers as people read them: in tables, plots and messages."""


def name_text(name: object) -> str:
    """Return an identifier as text: of a tuple, such as a task and its question, its parts with a dot between.

    >>> name_text(("t1", "fluency"))
    't1 · fluency'
    """
    return " · ".join(map(name_text, name)) if isinstance(name, tuple) else str(name)


def name_quoted(name: object) -> str:
    """Return an identifier as messages have it: as Python writes it, and of a tuple its text in quotation marks."""
    return repr(name_text(name)) if isinstance(name, tuple) else repr(name)
