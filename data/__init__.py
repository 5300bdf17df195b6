"""Annotations from tables, files and datasets by name; checks of input and atomic writing for all other rooms."""

from .annotations import Annotations
from .datasets import list_datasets, load_dataset, load_split
from .errors import AnnotationError, StorageError, UnknownNameError, check_name, look_up, unknown_name
from .ids import Ids

__all__ = [
    "AnnotationError",
    "Annotations",
    "Ids",
    "StorageError",
    "UnknownNameError",
    "check_name",
    "list_datasets",
    "load_dataset",
    "load_split",
    "look_up",
    "unknown_name",
]
