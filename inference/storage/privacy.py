"""Exports without workers' names: fits with pseudonyms, labels alone, and workers in groups of at least k."""

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any, TypeVar, cast

import numpy as np
import pandas as pd

from ...data.errors import AnnotationError, whole_number
from ...data.pseudonyms import Key, check_workers, pseudonyms, without_names
from ..densities.model import Model
from ..engines.finding import Finding
from ..fitted.by_rule import ByRule
from ..fitted.error_families import alone
from ..fitted.fitted import Fitted
from ..fitted.named_draws import NamedArrays
from ..fitted.posterior import Posterior

P = TypeVar("P", bound=Posterior)

OF_ROWS = (*(f"{of}_{name}" for of in ("row", "given") for name in ("worker", "seconds", "when")),)
"""Variables of rows that say of a worker whose annotation a row is, how long it took, or when it was given."""

NAMING = ("hyperparameters", "fits")
"""Attributes that may hold tables with workers' names."""

ALONE = "labels alone"
"""Name given to labels that are kept without workers."""
STEP = 0.1
"""Width of the intervals that accuracies are shown by."""
ANNOTATIONS = (1, 10, 100, 1_000, 10_000, 100_000)
"""Where the intervals begin that numbers of annotations are shown by."""
REST = "the rest"


def shown(fit: P, workers: str, key: Key | None) -> P:
    """Return the fit for an output: with its workers' names, with pseudonyms, or its labels alone.

    Args:
        workers: one of :data:`crowdppl.data.pseudonyms.WORKERS`.
        key: of the pseudonyms, where ``workers="hash"``.

    Raises:
        UnknownNameError: `workers` is something else.
        AnnotationError: the key is missing or is none, or a key is given for something else.
    """
    check_workers(workers, key)
    if workers == "drop":
        return type(fit).of(labels_alone(fit))
    return fit if workers == "keep" else pseudonymised(fit, key)


def pseudonymised(fit: P, key: Key | None) -> P:
    """Return a copy with a pseudonym in the place of each worker's name, in findings and hyperparameters too.

    Workers keep their order, so that anybody who knows the order of the names knows the order of the pseudonyms.

    Args:
        fit: which names workers.
        key: 16 to 64 random bytes, or a file that holds them, which you keep: :meth:`.Annotations.pseudonymised`.

    Raises:
        AnnotationError: the key is missing, shorter or longer, or its file cannot be read.
    """
    names = pseudonyms(fit.annotations.workers, key)
    return replace(
        fit,
        members={name: _renamed(fitted, names) for name, fitted in fit.members.items()},
        left_out={name: without_names(text, names) for name, text in fit.left_out.items()},
        rule=fit.rule
        and replace(
            fit.rule,
            annotations=fit.rule.annotations.with_worker_names(names),
            findings=_naming_nobody(fit.rule, names),
        ),
    )


def _naming_nobody(part: Fitted | ByRule, names: Mapping[Hashable, Hashable]) -> tuple[Finding, ...]:
    """The findings with other names of the workers."""
    return tuple(finding.renamed(names, without_names) for finding in part.findings)


def _renamed(fitted: Fitted, names: Mapping[Hashable, Hashable]) -> Fitted:
    hyperparameters = {name: _with_names(value, names) for name, value in fitted.model.hyperparameters.items()}
    return fitted.replace(
        model=Model(fitted.model.story, hyperparameters),
        source=fitted.annotations.with_worker_names(names),
        stored_posterior=fitted.posterior,
        findings=_naming_nobody(fitted, names),
    )


def _with_names(value: Any, names: Mapping[Hashable, Hashable]) -> Any:
    """A hyperparameter with other names in its column of workers; of workers without annotations it has nothing.

    Where workers are pairs with a question, it may name a worker alone. A family may be named after the one in it.
    """
    if isinstance(value, pd.DataFrame) and "worker" in value.columns:
        pairs = ((a, b) for a, b in names.items() if isinstance(a, tuple) and isinstance(b, tuple))
        names = {a[0]: b[0] for a, b in pairs} | dict(names)
        known = value[[name in names for name in value["worker"].tolist()]]
        other = {"worker": [names[n] for n in known["worker"].tolist()]}
        if "family" in known:
            of_one = {alone(name): alone(hidden) for name, hidden in names.items()}
            other["family"] = [
                of_one.get(family) or without_names(family, names) if isinstance(family, str) else family
                for family in known["family"].tolist()
            ]
        return known.assign(**{name: pd.Series(values, known.index, dtype=object) for name, values in other.items()})
    return value


def labels_alone(fit: Posterior) -> ByRule:
    """The labels with their probabilities, and of the annotations how many there are of each class and task.

    Nothing of it describes a worker: not which annotations are of one worker, nor anybody's accuracy, features or
    times. It is no fit any more that could be looked into, compared or updated.
    """
    return ByRule(f"{ALONE} ({fit.story})", fit.given.without_workers(), np.asarray(fit.posterior))


def groups_without_workers(groups: Mapping[str, NamedArrays]) -> dict[str, NamedArrays]:
    """ArviZ's groups without what describes a worker: variables by worker, and whose annotation a row is."""
    found = {}
    for name, arrays in groups.items():
        personal = [key for key, (dims, *_) in arrays.variables.items() if "worker" in dims or key in OF_ROWS]
        kept = arrays.without([*personal, "worker"])
        found[name] = kept.with_more(attrs={key: "" for key in NAMING if key in kept.attrs})
    return found


def worker_groups(workers: pd.DataFrame, min_group: int) -> pd.DataFrame:
    """A table in which every row stands for at least `min_group` workers.

    Shown of a worker are an interval of how many annotations they gave, by :data:`ANNOTATIONS`, and an interval of
    their accuracy, by :data:`STEP`. Workers of whom the same is shown are one row. Workers with fewer than
    ``min_group − 1`` such peers are put together in the row :data:`REST`, of which their number alone is shown; where
    they are fewer than `min_group` themselves, the smallest of the other rows is put with them. So whoever knows what
    is shown of a worker finds at least `min_group` workers by it (k-anonymity, Sweeney 2002), and nothing else is shown
    of them. It says nothing against somebody who knows all other workers of a row, nor of two tables that are made of
    crowds that differ by one worker.

    Args:
        workers: :attr:`crowdppl.Fit.workers`, with the columns annotations and accuracy.
        min_group: k, at least 2.

    Returns:
        By row: annotations_from and annotations_to, accuracy_from and accuracy_to (of the rest none), and workers, how
        many they are.

    Raises:
        AnnotationError: k is no whole number of at least 2, or there are fewer workers than k.
    """
    min_group = whole_number("min_group", min_group, 2, error=AnnotationError)
    if len(workers) < min_group:
        raise AnnotationError(
            f"min_group={min_group}: there are {len(workers)} workers, so that no group can be that large; leave the "
            "table of workers out"
        )
    cuts = round(1 / STEP)
    given = np.searchsorted(ANNOTATIONS, workers["annotations"].to_numpy(dtype=float), side="right")
    accuracy = np.clip(np.floor(workers["accuracy"].to_numpy(dtype=float) * cuts + 1e-9), 0, cuts - 1).astype(int)
    sizes = pd.Series(1, index=pd.MultiIndex.from_arrays([given, accuracy])).groupby(level=[0, 1]).sum()
    kept, rest = sizes[sizes >= min_group], int(sizes[sizes < min_group].sum())
    if 0 < rest < min_group:
        smallest = kept.index[int(np.argmin(kept.to_numpy()))]
        rest += int(kept[smallest])
        kept = kept.drop(smallest)
    starts = (0, *ANNOTATIONS)
    rows: list[dict[str, Any]] = []
    for cell, size in kept.items():
        i, step = cast(tuple[int, int], cell)
        rows.append(
            {
                "annotations_from": starts[i],
                "annotations_to": starts[i + 1] - 1 if i + 1 < len(starts) else None,
                "accuracy_from": step * STEP,
                "accuracy_to": (step + 1) * STEP,
                "workers": int(size),
            }
        )
    names: list[object] = list(range(1, len(rows) + 1))
    if rest:
        rows.append(
            dict.fromkeys(("annotations_from", "annotations_to", "accuracy_from", "accuracy_to")) | {"workers": rest}
        )
        names.append(REST)
    found = pd.DataFrame(rows, index=pd.Index(names, name="group", dtype=object))
    whole = {"annotations_from": "Int64", "annotations_to": "Int64", "workers": "int64"}
    return found.astype(whole).astype({"accuracy_from": float, "accuracy_to": float}).round(6)
