"""The label that a language model's answer says, and none where that is in doubt."""

import pytest

import crowdppl as cp
from crowdppl.data.answers import label_in, verdict_in


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        ("The answer has 3 flaws.\n\nRating: [[8]]", "8"),
        ("I'd say 5/5", "5/5"),
        ("I give it a 4.", "4"),
        ("The answer is about 2 rivers.\n\nVerdict: No.", "No"),
        ("**Score:** 4\n\nReasoning: 3 of its points are right.", "4"),
        ("Accuracy score: 3\nFluency score: 4\nOverall score: 4", "4"),
        ("Yes, because it is right.", "Yes"),
        ("It names Paris.\n\nYes", "Yes"),
        ("<think>Score: 2?</think>\nScore: 3", "3"),
        ('```json\n{"reasoning": "two slips", "score": 3}\n```', "3"),
        ('{"correct": true, "why": "as in the book"}', "true"),
        (r"Thus \boxed{B}.", "B"),
        ("<rating>-1</rating>", "-1"),
    ],
)
def test_the_label_that_is_said_among_other_words_is_found(answer, label):
    assert label_in(answer) == verdict_in(answer) == label


@pytest.mark.parametrize(
    "answer",
    [
        "I'm sorry, I can't rate this.",
        "Accuracy score: 3\nFluency score: 4",
        "[[4]] or rather [[5]]",
        '{"score": 3, "verdict": "pass", "why": "it is right"}',
        "It was open 24/7 from 2024/10/5 on, with half a cup, 1/2.",
        "",
    ],
)
def test_answers_that_say_no_label_or_two_have_none(answer):
    assert label_in(answer) is None
    assert verdict_in(answer) is None


def test_tidy_reads_the_label_within_answers_and_a_column_of_long_ones_is_refused_with_that_advice():
    ask = "Answer {} by {} has 3 flaws.\n\nRating: [[{}]]"
    rows = [{"item": i, "judge": j, "answer": ask.format(i, j, i % 5 + 1)} for i in range(30) for j in "ab"]
    with pytest.raises(cp.AnnotationError, match=r"tidy=True takes the label that is said in each, here '1'"):
        cp.read(rows, tell=False)
    found = cp.read(rows, tell=False, tidy=True, ordered=["1", "2", "3", "4", "5"])
    assert [found.classes[code] for code in found.label[:4]] == ["1", "1", "2", "2"]
    assert list(cp.read(rows[:4], tell=False, tidy=True).classes) == ["1", "2"]
    several = [
        {"item": i, "judge": j, "answer": text} for i in (1, 2) for j, text in (("a", "Yes, at times"), ("b", "Yes"))
    ]
    assert list(cp.read(several, tell=False, tidy=True).classes) == ["Yes", "Yes, at times"]
