"""Classes that labels lost on the way."""

import pandas as pd

from crowdppl.inference.findings.of_labels import lost_class


class Counted:
    """A story's labels and annotations of two classes, counted."""

    model = None

    def __init__(self, tasks, annotations):
        self.class_totals = pd.DataFrame({"tasks": tasks, "annotations": annotations}, ["no", "yes"])


def test_a_class_that_many_annotations_give_and_no_task_has_is_said():
    (finding,) = lost_class(Counted([19.98, 0.02], [40, 20]))
    assert finding.values == {"class": "yes", "of_annotations": 20 / 60, "of_tasks": 0.02 / 20.0}
    assert not lost_class(Counted([19.98, 0.02], [180, 20]))
    assert not lost_class(Counted([3.996, 0.004], [8, 4]))  # too few tasks to say so
