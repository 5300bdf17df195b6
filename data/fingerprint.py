"""A fingerprint of annotations, for whoever reads of a fit later."""

import hashlib
from typing import Any

import numpy as np

from .annotations import Annotations
from .kinds import NOMINAL


def fingerprint(annotations: Annotations) -> str:
    """A hash of tasks, workers, classes and annotations; equal for the same annotations in the same order.

    What not all annotations have, an order of classes, compared items, questions and abstentions, is hashed where they
    have it, so that others keep the fingerprint that they had before there was any of it.
    """
    digest = hashlib.sha256(repr([list(ids) for ids in (annotations.tasks, annotations.categories)]).encode())
    if annotations.named:
        digest.update(repr(list(annotations.workers)).encode())
    for column in (annotations.task, annotations.worker, annotations.label, annotations.count):
        digest.update(b"-" if column is None else _integers(column))
    known = {
        "kind": None if annotations.kind == NOMINAL else annotations.kind.to_json(),
        "scored": annotations.scored or None,
        "abstentions": list(annotations.abstentions) or None,
        "items": list(annotations.items) or None,
        "questions": list(annotations.questions) or None,
    }
    if given := {name: value for name, value in known.items() if value is not None}:
        digest.update(repr(given).encode())
    for column in (annotations.sides, annotations.mirrored):
        digest.update(b"" if column is None else _integers(column))
    return digest.hexdigest()[:16]


def _integers(values: Any) -> bytes:
    return np.asarray(values).astype("<i8").tobytes()
