"""The section on the questions, where there are several about each task."""

from ...data.questions import Units
from ..findings.facts import SURE
from ..fitted.question_frame import question_frame
from ..fitted.rubric_totals import has_totals, totals
from ..plots.ranking import plot_expected
from ..plots.style import every
from .label_sections import classes
from .sections import Section, section
from .subject import Subject

MOST_TOTALS = 100  # tasks whose totals are listed
MOST_PANELS = 12  # questions whose expected scores are drawn


def question_section(subject: Subject) -> Section | None:
    """Classes, agreement and certainty by question, and the tasks' totals; None where one question is asked."""
    source, annotations = subject.source, subject.annotations
    if not isinstance(annotations.tasks, Units):
        return None
    questions = question_frame(source)
    found = totals(source, seed=subject.seed) if has_totals(source) else None
    in_order = [name for name in annotations.questions if annotations.question_classes(name)[1].in_order]
    most = None if found is None else found.sort_values("total", ascending=False, kind="stable").head(MOST_TOTALS)
    return section(
        "questions",
        "Questions",
        sure=SURE,
        questions=questions,
        classes=classes(subject),
        totals=most,
        n_totals=0 if found is None else len(found),
        files=[(every(len(questions), "question"), questions)],
        files_of_totals=None if found is None else [(every(len(found), "total"), found), ("The greatest", most)],
        expected=(lambda: plot_expected(source)) if 0 < len(in_order) <= MOST_PANELS else None,
    )
