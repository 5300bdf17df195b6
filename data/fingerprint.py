"""A fingerprint of annotations, for whoever reads of a fit later."""

import hashlib

import numpy as np

from .annotations import Annotations


def fingerprint(annotations: Annotations) -> str:
    """A hash of tasks, workers, classes and annotations; equal for the same annotations in the same order."""
    digest = hashlib.sha256(repr([list(ids) for ids in (annotations.tasks, annotations.categories)]).encode())
    if annotations.named:
        digest.update(repr(list(annotations.workers)).encode())
    for column in (annotations.task, annotations.worker, annotations.label, annotations.count):
        digest.update(b"-" if column is None else np.asarray(column).astype("<i8").tobytes())
    if annotations.mirrored is not None:
        digest.update(np.packbits(np.asarray(annotations.mirrored)).tobytes())
    return digest.hexdigest()[:16]
