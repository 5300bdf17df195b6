"""Write the page of a fit or of a stack of fits."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from ...data.atomic import check_new_file, write_whole
from ...data.description import count_text
from ...data.errors import truth_value
from ...data.questions import tasks_of, tasks_text
from ...models import first_line
from ..checks.check_results import Checks
from ..engines.progress import late_bar, told
from ..fitted.posterior import Posterior
from .label_sections import data_section, labels_section, next_section, question_section, ranking_section, votes_section
from .overview import overview
from .page import opening, page, tiles
from .sections import Section
from .story_sections import convergence_section, prior_section, reproduce_section, story_section
from .subject import Fits, Subject, subject
from .trust_sections import checks_section, comparison_section, gold_section, make_checks
from .worker_section import agreement_section, workers_section


def report(
    source: Posterior,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    fits: Fits = None,
    gold: Any = None,
    checks: bool = True,
    seed: int = 0,
    progress: bool = True,
    folder: str | None = None,
) -> Path:
    """Write a page (HTML) on a fit: labels, workers, agreement, checks, data, prior, story and computation.

    It begins with the verdict (:class:`.Verdict`) and with what to act on, the weightiest first: warnings of the
    engine, checks that failed, a prior that outweighs the annotations, and labels that gold labels show to be
    overconfident. A click on a task or a worker shows its details, and tables can be downloaded as CSV. The
    page is one file that needs no network. The same fit, options and versions give the same bytes.

    Args:
        source: a fit of any story, or a stack of fits, of N tasks and J workers. Labels are in the page for up to
            2,000 tasks (of more for the 500 most uncertain), workers for up to 2,000.
        path: the file to write, ending in ``.html`` or ``.htm``; an old file is replaced once the new one is complete.
        title: heading of the page; by default the numbers of tasks and workers.
        fits: other fits of the same annotations to compare `source` with (:func:`.compare`): by name, or a list, whose
            fits are named after their stories.
        gold: true label by task to score the labels by, as :meth:`.Annotations.with_gold` takes it; None for the gold
            labels of the annotations.
        checks: whether to make posterior predictive checks (:func:`crowdppl.check`), which take some seconds.
        seed: of everything that is drawn at random: replicates, folds, bootstrap.
        progress: whether to show progress bars where it takes more than two seconds.
        folder: where the fit is saved, for the shell's commands on the page; None for those of Python alone.

    Returns:
        The path of the page.

    Raises:
        StorageError: `path` does not end in ``.html`` or ``.htm``, it is a folder, or its folder does not exist or
            cannot be written to; this is checked before anything is computed.
        ValueError: `source` is neither a fit nor a stack, or `fits` cannot be compared with it.
        AnnotationError: `gold` does not fit the annotations.

    Examples:
        >>> import tempfile
        >>> import crowdppl as cp
        >>> fit = cp.fit("dawid_skene", cp.load_dataset("anesthesia"), progress=False)
        >>> fit.report(f"{tempfile.mkdtemp()}/report.html", checks=False).name
        'report.html'
    """
    truth_value("progress", progress)
    path = Path(path)
    check_new_file(path, (".html", ".htm"))
    about = subject(source, fits, gold, seed)
    heading = _title(about) if title is None else title
    made = make_checks(about, progress=progress) if checks and about.source.rule is None else None
    found = overview(about, made if isinstance(made, Checks) else None)
    sections = _sections(about, made, progress=progress)
    write_whole(path, page(heading, _lead(about), opening(found, folder), tiles(about), sections))
    return path


def _sections(about: Subject, checks: Checks | str | None, *, progress: bool) -> list[Section]:
    """The sections of the page, in their order."""
    made: list[Callable[[Subject], Section | None]] = [ranking_section, question_section, labels_section, votes_section]
    made += [workers_section, agreement_section, gold_section]
    if about.source.rule is None:
        made += [] if checks is None else [partial(checks_section, checks=checks)]
        made += [comparison_section, next_section, data_section, prior_section, story_section, reproduce_section]
        made.append(convergence_section)
    else:
        made.append(data_section)
    with late_bar("sections of the page", show=progress) as tell:
        return [found for make in told(made, len(made), tell) if (found := make(about)) is not None]


def _title(about: Subject) -> str:
    """The heading of the page, where none is given."""
    annotations = about.annotations
    by = count_text(len(tasks_of(annotations.workers)), "worker") if annotations.named else "a crowd"
    return f"{tasks_text(annotations.tasks)} labelled by {by}"


def _lead(about: Subject) -> str:
    """Return the story or the method, and the engine that fitted it, in a sentence or two."""
    if about.stack is not None:
        methods = " and ".join(sorted({fit.method.upper() for fit in about.fits.values()}))
        many = "1 story" if len(about.fits) == 1 else f"{len(about.fits)} stories"
        and_votes = " and the votes" if about.stack.votes else ""
        return f"The average of {many}{and_votes}, fitted by {methods}: {about.stack.story}."
    if about.source.rule is not None:
        return f"Labels by {about.source.story}, without a likelihood: nothing is sampled, checked or compared."
    name, fit = about.lead
    engine = about.summary.facts["engine"]
    called = f"{fit.story}" if name == fit.story else f"{name} ({fit.story})"
    return f"{called}, fitted by {fit.method.upper()} ({engine}). {first_line(fit.model.story)}"
