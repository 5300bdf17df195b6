"""The fingerprint of annotations: it is another one wherever they are others, and stays where they are not."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from crowdppl.data import Annotations, Ids
from crowdppl.data.fingerprint import fingerprint
from crowdppl.data.kinds import Ordered

ROWS = pd.DataFrame(
    [("t1", "ann", "a"), ("t1", "bob", "b"), ("t2", "ann", "b"), ("t2", "bob", "c")],
    columns=["task", "worker", "label"],
)
PAIRS = pd.DataFrame(
    [("x", "y", "ann", "left"), ("x", "z", "ann", "right")], columns=["left", "right", "worker", "label"]
)


def test_that_of_plain_annotations_is_the_one_they_always_had():
    assert fingerprint(Annotations.from_frame(ROWS)) == "0b160debf0f2d29b"
    assert fingerprint(Annotations.from_frame(ROWS, worker=None)) == "bc85254d7bb59f24"


@pytest.mark.filterwarnings("ignore:question")
def test_annotations_that_differ_in_order_items_sides_units_or_abstentions_differ():
    pairs = Annotations.from_comparisons(PAIRS)
    asked = ROWS.assign(question=["p", "q", "p", "q"])
    units = Annotations.from_frame(asked, question="question")
    alike = [
        Annotations.from_frame(ROWS),
        Annotations.from_frame(ROWS, ordered=["a", "b", "c"]),
        Annotations.from_frame(ROWS, abstain="c"),
        pairs,
        pairs.replace(sides=pairs.sides[:, ::-1]),
        pairs.replace(items=Ids(["x", "z", "y"])),
        pairs.replace(sides=None, items=Ids(), mirrored=None),
        pairs.replace(mirrored=np.array([True, False])),
        units,
        units.replace(tasks=Ids(list(units.tasks)), question=None, questions=Ids()),
        units.replace(kind=Ordered()),
    ]
    found = list(map(fingerprint, alike))
    for one, other in combinations(range(len(found)), 2):
        assert found[one] != found[other], (one, other)
    assert fingerprint(Annotations.from_frame(asked, question="question")) == fingerprint(units)
