"""Classes, tasks and workers whose names differ by slips alone, of which reading them has warned."""

from collections.abc import Iterator

from ...data.input_warnings import alike_classes, alike_names, in_groups
from .register import Labels, Said, check


@check("names_alike", "crowd", needs={"memory"})
def names_alike(of: Labels) -> Iterator[Said]:
    """Names that differ by blanks, case or characters that do not show, as a note; of classes those that are given."""
    data = of.annotations
    given = dict(zip(data.classes, data.votes().sum(0) > 0, strict=True))
    found = {
        "classes": alike_classes(name for name, is_given in given.items() if is_given),
        "tasks": alike_names(data.tasks, case=False),
        "workers": alike_names(data.workers, case=True) if data.named else [],
    }
    for what, groups in found.items():
        if groups:
            yield Said(
                f"{what} have names that differ by slips alone and count as different: {in_groups(groups)}",
                "where they are the same, read the annotations with tidy=True",
                {what: groups},
                severity="note",
            )
