"""What comes in: annotations from tables and files, and datasets by name."""

from .annotations import Annotations
from .datasets import list_datasets, load_dataset, load_split
from .errors import AnnotationError, UnknownNameError, unknown_name
from .ids import Ids

__all__ = [
    "AnnotationError",
    "Annotations",
    "Ids",
    "UnknownNameError",
    "list_datasets",
    "load_dataset",
    "load_split",
    "unknown_name",
]
