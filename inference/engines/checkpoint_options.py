"""Checkpoints as a user asks for them: the folder, how often, and whether an earlier run is gone on from."""

import os
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...data.errors import StorageError
from ...data.numbers import truth_value

FILE = "checkpoint.npz"
EVERY = 300.0  # seconds between two writings, where the user says nothing
UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0}


class CheckpointOptions(NamedTuple):
    """Checkpoints as a user asked for them."""

    folder: Path | None  # None for none
    every: float = EVERY  # seconds
    resume: bool | None = False  # whether an earlier one is gone on from; None where there is one
    milestones: bool = False  # whether those are written too whose time has not come
    whole: Path | None = None  # the folder that the user named, where this is one within it, of a fit among several

    def within(self, name: str) -> "CheckpointOptions":
        """Return the options for one fit among several, in a folder of its own."""
        if self.folder is None:
            return self
        return self._replace(folder=self.folder / name, whole=self.whole or self.folder)

    def check_new(self) -> None:
        """Refuse a folder that has checkpoints of several fits already, before the first of them runs.

        Raises:
            StorageError: there are some, and ``resume`` is False; or there is one of a single fit.
        """
        if self.folder is None:
            return
        if (self.folder / FILE).exists():
            raise StorageError(
                f"{self.folder / FILE} is of a single fit, and this call makes several; name another folder, or delete "
                "it to begin anew"
            )
        if self.resume is False and (earlier := of_several(self.folder)):
            raise StorageError(
                f"{earlier[0]} is of an earlier run; give resume=True to go on from it, name another folder, or delete "
                f"{self.folder} to begin anew"
            )

    @classmethod
    def of(
        cls,
        checkpoint: str | os.PathLike[str] | None,
        every: float | str | None = None,
        resume: bool = False,
        folder: str | os.PathLike[str] | None = None,
    ) -> "CheckpointOptions":
        """Return the checkpoints that a user asks for by the arguments of :func:`crowdppl.fit`.

        Raises:
            ValueError: ``every`` is no time, ``resume`` neither True nor False, one of them is given without a
                checkpoint, or both ``checkpoint`` and ``folder`` are.
        """
        resume = truth_value("resume", resume)
        if folder is not None and checkpoint is not None:
            raise ValueError(
                f"folder={os.fspath(folder)!r} and checkpoint={os.fspath(checkpoint)!r} both keep the state; give one"
            )
        if checkpoint is None:
            for name, value in (("every", every), ("resume", resume or None)):
                if value is not None:
                    raise ValueError(f"{name}={value!r} belongs to checkpoint=, the folder where a fit keeps its state")
            if folder is not None:
                return cls(Path(folder).absolute(), EVERY, resume=None, milestones=True)
            return cls(None)
        return cls(Path(checkpoint).absolute(), EVERY if every is None else seconds(every), resume)


NOT_KEPT = CheckpointOptions(None)
"""No checkpoints."""


def seconds(every: float | str) -> float:
    """Return a time in seconds.

    >>> seconds("5min"), seconds("30s"), seconds(0.5)
    (300.0, 30.0, 0.5)

    Raises:
        ValueError: it is none.
    """
    if isinstance(every, int | float | np.number) and not isinstance(every, bool) and 0 <= every < np.inf:
        return float(every)
    matched = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(s|min|h)?\s*", every) if isinstance(every, str) else None
    if matched is None:
        raise ValueError(f"every={every!r}: seconds, or a time such as '30s', '5min' or '1h', are needed")
    return float(matched[1]) * UNITS[matched[2] or "s"]


def of_several(folder: Path) -> list[Path]:
    """The checkpoints of several fits, each in a folder within ``folder`` or one within that."""
    return sorted([*folder.glob(f"*/{FILE}"), *folder.glob(f"*/*/{FILE}")])
