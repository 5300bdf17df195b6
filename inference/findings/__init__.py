"""Findings on fits: a module a subject says what it looks for, and one register renders it on every surface."""

from ...data.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
