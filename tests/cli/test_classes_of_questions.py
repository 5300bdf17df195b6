"""Classes of each question, as the command line states them."""

import numpy as np
import pandas as pd
import pytest
from command_line import crowdppl, refused

from crowdppl.cli.arguments import read_annotations, stated_classes
from crowdppl.cli.request import Request
from crowdppl.data.errors import AnnotationError, AnnotationWarning, UnknownNameError


def asked(*classes: str, file: str = "", ordered: bool | None = None) -> Request:
    return Request(file=file, classes=list(classes) or None, ordered=ordered, quiet=True)


@pytest.fixture
def file(tmp_path) -> str:
    """Answers of 0 and 1 to one question and from 1 to 5 to the other, which share the 1."""
    rng = np.random.default_rng(0)
    rows = [
        (f"t{i}", f"w{j}", question, rng.integers(low, high))
        for i in range(12)
        for j in range(3)
        for question, low, high in (("safe", 0, 2), ("helpful", 1, 6))
    ]
    path = tmp_path / "rubric.csv"
    pd.DataFrame(rows, columns=["task", "worker", "question", "label"]).to_csv(path, index=False)
    return str(path)


@pytest.mark.parametrize(
    ("classes", "ordered", "options"),
    [
        ([], None, {}),
        ([], True, {"ordered": True}),
        (["a,b"], None, {"classes": ["a", "b"]}),
        (["1,2,3"], True, {"classes": [1, 2, 3], "ordered": True}),
        (["low<mid<high"], None, {"ordered": ["low", "mid", "high"]}),
        (["x=1,y=2"], None, {"classes": ["x=1", "y=2"]}),
        (["safe=no,yes"], None, {"classes": {"safe": ["no", "yes"]}}),
        (["q=0,1", "r=1<2<3"], None, {"classes": {"q": [0, 1]}, "ordered": {"r": [1, 2, 3]}}),
        (
            ["q=1,2,3", "r=b,a"],
            False,
            {"classes": {"q": [1, 2, 3], "r": ["b", "a"]}, "ordered": {"q": False, "r": False}},
        ),
    ],
)
def test_lists_are_of_all_questions_or_of_the_one_before_the_equals_sign(classes, ordered, options):
    assert stated_classes(asked(*classes, ordered=ordered)) == options


@pytest.mark.parametrize(
    ("classes", "ordered", "message"),
    [
        (["q=0,1", "1,2"], None, "--classes 1,2: QUESTION=A,B,C is needed"),
        (["q="], None, "--classes q=: QUESTION=A,B,C is needed"),
        (["q=0,1", "q=1,2"], None, "'q' are listed twice"),
        (["q=1<2"], False, "--no-ordered"),
        (["q=1<2,3"], None, "separated by <"),
    ],
)
def test_lists_that_contradict_are_refused(classes, ordered, message):
    with pytest.raises(AnnotationError, match=message):
        stated_classes(asked(*classes, ordered=ordered))


def test_zero_and_one_stand_beside_one_to_five(file):
    found = read_annotations(asked("safe=0,1", "helpful=1<2<3<4<5", file=file))
    of = {name: found.question_classes(name) for name in found.questions}
    assert {name: [found.classes[k] for k in own] for name, (own, _) in of.items()} == {
        "safe": [0, 1],
        "helpful": [1, 2, 3, 4, 5],
    }
    assert [kind.in_order for _, kind in of.values()] == [False, True]


def test_whole_numbers_that_are_listed_without_an_order_are_said_to_be_names(file):
    with pytest.warns(AnnotationWarning, match=r"'helpful' are whole numbers.*\{'helpful': \[1, 2, 3, 4, 5\]\}"):
        found = read_annotations(asked("safe=0,1", "helpful=1,2,3,4,5", file=file))
    assert not found.question_classes("helpful")[1].in_order


@pytest.mark.parametrize(
    ("classes", "error", "message"),
    [
        (["saf=0,1"], UnknownNameError, "'saf'.*'safe'"),
        (
            ["safe=1,2"],
            AnnotationError,
            r"'safe', row \d+.*0 is no class of .*'safe', whose classes are 1, 2",
        ),
        (["safe=0"], AnnotationError, r"classes\['safe'\]=\[0\] must list at least two"),
    ],
)
def test_a_class_that_a_question_lacks_is_refused_with_its_row_and_the_classes_there_are(file, classes, error, message):
    with pytest.raises(error, match=message):
        read_annotations(asked(*classes, file=file))


@pytest.mark.filterwarnings("ignore")
def test_a_story_of_one_order_names_the_questions_that_suit_and_the_option_that_takes_one(file, tmp_path):
    stated = ("--classes", "safe=0,1", "--classes", "helpful=1<2<3<4<5")
    said = refused("fit", file, *stated, "--story", "score_factor", "--out", tmp_path / "all")
    assert "fit the question 'helpful' alone, --only-question helpful, and likewise 'safe'" in said
    options = ("--story", "score_factor", "--only-question", "helpful")
    done = crowdppl("fit", file, *stated, *options, "--out", tmp_path / "one")
    assert done.exit_code == 0, done.output
    labels = pd.read_csv(tmp_path / "one" / "labels.csv")
    assert len(labels) == 12
    assert set(labels["label"]) <= {1, 2, 3, 4, 5}
    unknown = refused("fit", file, *stated, "--only-question", "helpfull", "--out", tmp_path / "none")
    assert "unknown question of --only-question 'helpfull'; did you mean 'helpful'? There are: " in unknown
    one = ("--only-question", "safe", "--out", tmp_path / "none")
    assert "one question is asked about each task" in refused("fit", "anesthesia", *one)


@pytest.mark.filterwarnings("ignore")
def test_one_question_is_read_by_its_name(file):
    done = crowdppl("agreement", file, "--question", "safe")
    assert done.exit_code == 0, done.output
    assert "'safe' of 'question' alone" in " ".join(done.stderr.split())
    assert "there is no question 'tone'; there are " in refused("agreement", file, "--question", "tone")
