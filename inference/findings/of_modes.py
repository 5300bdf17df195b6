"""Several readings of one crowd, the modes in which starts or chains ended, and a mode of too many parameters."""

from collections.abc import Iterator

import numpy as np

from ...data.description import count_text
from ...models.parts.general import PARTS
from ..densities.sites import parameter_names
from ..engines.outcome import Modes
from ..fitted.fitted import Fitted
from ..fitted.modes import names, shares
from .of_crowd import HELP, by_auto, crowd_of
from .other_reading import beyond_contested_votes, taken_for_another
from .other_reading import other_reading as find_other_reading
from .register import Labels, Said, check

NEAR = 0.05  # mass of the second mode from which a user should know that there are two


@check("readings", "modes", needs={"engine"})
def readings(of: Fitted) -> Iterator[Said]:
    """A second mode that has much of the mass or an unknown one, or chains that are in different ones."""
    modes = of.outcome.modes
    text = modes_text(modes)
    if modes is None or not text:
        return
    mass = shares(modes)
    values = {"mass": mass, "tasks_differ": (modes.labels != modes.labels[0]).sum(-1)}
    if modes.kept < 0:
        yield Said(
            f"{text}. The label probabilities average the chains as they are, whatever the masses",
            "gold labels of tasks in fit.mode_labels tell which reading holds, or fit by EM with restarts=",
            values,
        )
    elif not mass[1] < NEAR:
        yield Said(
            f"{text}. The labels are those of {names(len(mass))[modes.of_end[modes.kept]]}",
            "gold labels of tasks in fit.mode_labels tell which reading holds",
            values,
        )


@check("other_reading", "crowd", needs={"workers"})
def other_reading(of: Labels) -> Iterator[Said]:
    """Labels of one class that are another's in a reading of the crowd that is as good: :mod:`.other_reading`.

    Where 65 % of the workers take a class for another, all of 20 averages by ``auto`` are warned of, or right within
    ten points of their confidence (``benchmarks/findings.py``). It is not looked for where a classifier had a part in
    the labels: Dawid and Skene's story, which compares the readings, sees no features.
    """
    if (crowd := crowd_of(of)) is None or crowd.knows_names or _has_classifier(of):
        return
    found = find_other_reading(crowd.given, crowd.posterior)
    if found is None and (beyond := beyond_contested_votes(crowd.given, crowd.posterior)) is not None:
        found = find_other_reading(crowd.given, beyond)  # the votes are no end of EM
    if found is None:
        return
    label, other = crowd.given.classes[found.label], crowd.given.classes[found.other]
    height = f"its log-posterior {'leads' if found.nats > 0 else 'is behind'} by {abs(found.nats):.1f} nats"
    yield Said(
        f"another reading of this crowd is as good, in which {count_text(found.tasks, 'task')} of "
        f"{len(crowd.posterior):,} have another label: of the tasks labelled {label!r} workers agree on {other!r} "
        f"by {found.z:.1f} standard deviations more than the labels explain, as where a majority takes {other!r} for "
        f"{label!r}. By Dawid and Skene's story {'EM goes there from these labels' if found.same_end else height}",
        HELP,
        {"label": label, "other": other, "z": found.z, "tasks": found.tasks, "nats": found.nats},
    )


def _has_classifier(of: Labels) -> bool:
    model = getattr(of, "model", None)
    return model is not None and (model.classifier is not None or model.truth_prior.kind == "torch")


@check("wrong_majority", "crowd", needs={"workers"})
def wrong_majority(of: Labels) -> Iterator[Said]:
    """Labels by the votes where most workers take a class for another: :func:`.taken_for_another`.

    Warned are 18 of 20 crowds where 65 % of the workers do so, and the other two of another reading; no healthy crowd;
    and bluebird of eleven open ones, where the votes are far behind every story (``benchmarks/findings.py``).
    """
    if (crowd := crowd_of(of)) is None or crowd.knows_names:
        return
    if (found := taken_for_another(crowd.given, crowd.posterior)) is None:
        return
    label, other = crowd.given.classes[found.label], crowd.given.classes[found.other]
    yield Said(
        f"most workers may take {other!r} for {label!r}: by Dawid and Skene's story "
        f"{count_text(found.tasks, 'task')} of {len(crowd.posterior):,} that the votes give {label!r} are {other!r}, "
        f"and of the annotations of all tasks that are {other!r} then {found.share:.0%} are {label!r} and "
        f"{found.share_other:.0%} {other!r}",
        f"{by_auto(of, 'tells by whom each class is given. ')}{HELP}",
        found._asdict() | {"label": label, "other": other},
    )


@check("mode_of_many", "draws", needs={"story", "memory"})
def mode_of_many(of: Fitted) -> Iterator[Said]:
    """Label probabilities at EM's mode of a story with parts, where its tables have more numbers than annotations.

    The mode is one of many sets of parameters that the annotations allow, and its label probabilities know nothing of
    the others. Of crowds drawn with shared errors and difficulties of tasks, 20 classes, 1,000 tasks and five
    annotations each, EM says that 99 % of the labels are right where 85 to 90 % are: a warning. With one of these parts
    it is a note. Of healthy crowds it is said where there are ten classes, at a mean probability of .99 and an accuracy
    of .92 (``benchmarks/one_finding.py``).
    """
    parts = [part for part in PARTS if of.model.hyperparameters.get(part.name)]
    if of.method != "em" or not parts:
        return
    tables = [of.draws[name][0, 0] for name in parameter_names(of.model, of.data).tables & of.draws.keys()]
    n_parameters = sum(table.size - table.size // table.shape[-1] for table in tables)
    if n_parameters <= (n_annotations := of.annotations.n_annotations):
        return
    said = float(np.asarray(of.posterior).max(1).mean())
    yield Said(
        f"EM takes the mode of {n_parameters:,} probabilities, with {' and '.join(part.says for part in parts)}, from "
        f"{n_annotations:,} annotations: its label probabilities, {said:.2f} in the mean, are too near to 1",
        "Fit with method='svi' or 'nuts', which average over the posterior; or take a story with fewer parameters, "
        "such as one_coin",
        {"parameters": n_parameters, "annotations": n_annotations, "confidence": said},
        severity="warning" if len(parts) > 1 else "note",
    )


def modes_text(modes: Modes | None) -> str:
    """The modes in words; empty of one.

    >>> modes_text(None)
    ''
    """
    if modes is None or len(modes.log_mass) < 2:
        return ""
    n = len(modes.log_mass)
    unit = "start" if modes.kept >= 0 else "chain"
    said = []
    for name, mass, mode in zip(names(n)[:5], shares(modes), range(n), strict=False):
        ends = np.flatnonzero(modes.of_end == mode) + 1
        which = (
            count_text(len(ends), unit)
            if len(ends) > 4
            else f"{unit}{'s' * (len(ends) > 1)} {', '.join(map(str, ends))}"
        )
        said.append(f"{name} {_percent(mass)} ({which})" if np.isfinite(mass) else f"{name} ({which})")
    apart = [int((labels != modes.labels[0]).sum()) for labels in modes.labels[1:]]
    tasks = count_text(apart[0], "task") if n == 2 else f"{min(apart):,} to {max(apart):,} tasks, from A"
    readings = "two readings" if n == 2 else f"{n} readings"
    is_known = np.isfinite(modes.log_mass).all()
    unknown = "" if is_known else " (of unknown masses, as one is no peak of the posterior)"
    return f"{readings} of this crowd{unknown}: {', '.join(said)}{', …' if n > 5 else ''}; they differ on {tasks}"


def _percent(mass: float) -> str:
    return f"{mass:.0%}" if 0.01 <= mass <= 0.99 else ("under 1%" if mass < 0.5 else "over 99%")
