"""Annotations from tables, files and datasets by name; checks of input and atomic writing for all other rooms."""

from typing import TYPE_CHECKING

from .lazy import lazy_names

if TYPE_CHECKING:  # imported when first used
    from .annotations import Annotations
    from .datasets import list_datasets, load_dataset, load_split
    from .errors import AnnotationError, StorageError, UnknownNameError, check_name, look_up, unknown_name
    from .ids import Ids

__getattr__, __dir__ = lazy_names(__name__, __file__)

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
