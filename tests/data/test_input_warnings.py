"""Slips in tables that can be used are told, with the option that mends them."""

import warnings

import numpy as np
import pandas as pd
import pytest

import crowdppl as cp
from crowdppl import Annotations
from crowdppl.data import Ids
from crowdppl.data.errors import AnnotationError, AnnotationWarning


def frame(*labels):
    return pd.DataFrame({"task": range(len(labels)), "worker": "w", "label": labels})


def test_classes_that_differ_by_case_or_blanks_are_told_and_tidied():
    rows = frame("Cat", "cat", "cat ", "dog", "cat", "a  b", "a b")
    with pytest.warns(AnnotationWarning, match=r"'Cat' and 'cat' and 'cat '.*tidy=True"):
        assert Annotations.from_frame(rows).n_classes == 6
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tidy = Annotations.from_frame(rows, tidy=True)
    assert tidy.classes == Ids(["a b", "cat", "dog"])
    assert tidy.votes().sum(0).tolist() == [2, 4, 1]


def test_answers_of_language_models_that_differ_by_a_full_stop_or_quotation_marks_are_told_and_tidied():
    rows = frame("yes", "Yes.", "yes ", "**Yes**", '"yes."', "no", "No.", "no", "a*", "a", "e.g.", "!", "'")
    with pytest.warns(AnnotationWarning, match=r"'Yes\.' .*tidy=True"):
        assert Annotations.from_frame(rows).n_classes == 12
    tidy = Annotations.from_frame(rows, tidy=True)
    assert set(tidy.classes) == {"yes", "no", "a*", "a", "e.g.", "!", "'"}
    assert tidy.votes().sum() == 13


@pytest.mark.parametrize("word", ["N/A", "nan", "NULL", "?", "none", "None"])
def test_a_class_that_means_nothing_is_told_with_the_option_for_it(word):
    with pytest.warns(AnnotationWarning, match=r"counts as a class.*abstain="):
        Annotations.from_frame(frame("x", "y", word))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Annotations.from_frame(frame("x", "y", "x", word), classes=["x", "y", word]).n_classes == 3


def test_a_table_appended_to_itself_is_told():
    rows = frame("x", "y", "x")
    with pytest.warns(AnnotationWarning, match=r"each of the 6 annotations is there twice.*repeats='first'"):
        assert Annotations.from_frame(pd.concat([rows, rows])).n_annotations == 6
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Annotations.from_frame(pd.concat([rows, rows.iloc[:2]]))


def test_listed_classes_and_abstentions_decide_the_spelling_of_tidy_labels():
    rows = pd.DataFrame({"task": [1, 2, 3, 4], "worker": "w", "label": ["NO", "NO", "no ", "Can't tell"]})
    tidy = Annotations.from_frame(rows, tidy=True, classes=["yes", "no"], abstain="can't tell")
    assert (list(tidy.classes), list(tidy.abstentions)) == (["yes", "no"], ["can't tell"])
    assert tidy.votes().tolist() == [[0, 1], [0, 1], [0, 1], [0, 0]]
    again = Annotations.from_frame(rows, tidy=True, classes=iter(["yes", "no"]), abstain=iter(["can't tell"]))
    assert (again.classes, again.abstentions) == (tidy.classes, tidy.abstentions)
    with pytest.raises(AnnotationError, match=r"'NO' and 'no' .*tidy=True"):
        Annotations.from_frame(rows, tidy=True, classes=["yes", "NO", "no", "Can't tell"])


def test_gold_labels_that_differ_by_case_alone_are_taken_for_the_class_and_told(tmp_path):
    rows = pd.DataFrame({"task": ["p1", "p2", "p3"], "worker": "w", "label": ["yes", "NO", "NO"]})
    table = Annotations.from_frame(rows)
    message = r"by type, case, blanks or a full stop alone, and are taken for these: 'no' for 'NO'$"
    with pytest.warns(AnnotationWarning, match=message):
        told = table.with_gold({"p1": "yes", "p2": "no", "p3": "NO"})
    assert np.asarray(told.gold).tolist() == [list(table.classes).index(name) for name in ("yes", "NO", "NO")]
    (tmp_path / "gold.csv").write_text("task,gold\np2,No\np3,no\n")
    with pytest.warns(AnnotationWarning, match="'No' for 'NO', 'no' for 'NO'"):
        assert (
            np.asarray(table.with_gold(tmp_path / "gold.csv").gold).tolist()[1:] == np.asarray(told.gold).tolist()[1:]
        )
    both = Annotations.from_frame(rows, classes=["yes", "Yes", "NO"])
    with pytest.raises(AnnotationError, match="label 'YES' of task 'p1' is none of the classes"):
        both.with_gold({"p1": "YES"})


@pytest.mark.parametrize("labels", [["1", "2", "3", "no score"], [1, 2, 3, "no score"], ["yes", "no", "Refused"]])
def test_a_word_beside_the_numbers_of_a_scale_and_a_refusal_are_told(labels):
    """A judge's refusal was one more class, which could become a label, without a word."""
    rows = [(f"t{i}", f"w{j}", label) for j in range(2) for i, label in enumerate(labels)]
    frame = pd.DataFrame(rows, columns=["task", "worker", "label"]).astype({"label": object})
    with pytest.warns(
        AnnotationWarning, match=rf"^{labels[-1]!r} counts as a class; .* give abstain=\[{labels[-1]!r}\]"
    ):
        Annotations.from_frame(frame)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*counts as a class")
        Annotations.from_frame(frame, abstain=labels[-1:])
        Annotations.from_frame(frame, classes=labels)
        Annotations.from_frame(frame.replace({"label": {labels[0]: "good", labels[-1]: "bad"}}))


@pytest.mark.parametrize(
    ("labels", "sentinels"),
    [
        ([1, 2, 3, 4, 5, 99], "99"),
        ([1, 2, 3, 4, 5, -1], "-1"),
        ([1, 2, 3, 4, 5, 999], "999"),
        ([*range(11), -1, 99], "-1, 99"),
        ([1, 2, 3, 98, 99], "98, 99"),
        ([0, 1, -9], "-9"),
    ],
)
def test_a_number_far_off_a_scale_is_told_with_the_option_for_it(labels, sentinels):
    """Scores of 99 where an answer could not be read were the best, and decided what is ranked first."""
    rows = [(f"t{i}", f"w{j}", label) for j in range(2) for i, label in enumerate(labels)]
    table = pd.DataFrame(rows, columns=["task", "worker", "label"])
    with pytest.warns(AnnotationWarning, match=rf"^{sentinels} counts? as a? ?class.* give abstain=\[{sentinels}\]$"):
        Annotations.from_frame(table)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*as a class|.*as classes")
        kept = Annotations.from_frame(table, abstain=[int(value) for value in sentinels.split(", ")])
        Annotations.from_frame(table, classes=labels)
    assert kept.n_classes == len(labels) - len(kept.abstentions)


def test_a_number_that_may_be_no_label_is_not_said_to_be_ordered_without_a_word():
    """Two warnings said that 99 is none of the scores, and one of them."""
    table = pd.DataFrame(
        [(i, j, [1, 2, 3, 99][i]) for i in range(4) for j in "ab"], columns=["task", "worker", "label"]
    )
    with pytest.warns(AnnotationWarning, match="numbers 1, 2, 3 and, unless it is no label, 99 are taken as ordered"):
        Annotations.from_frame(table)


@pytest.mark.parametrize(
    "labels",
    [[-1, 0, 1], [-2, -1, 0, 1], [*range(11)], [7, 8, 9], [*range(0, 101, 10)], [50, 80, 90, 99], [1, 3, 5, 9]],
)
def test_a_number_that_is_a_step_of_a_scale_is_not_told_as_none(labels):
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*as a class|.*as classes")
        Annotations.from_frame(frame(*labels))


def test_scores_with_their_scale_after_a_stroke_are_told_and_tidied(tmp_path):
    labels = ["10/10", "2/10", "7/10", "2/10"]
    frame(*labels).to_csv(path := tmp_path / "a.csv", index=False)
    for read, source in ((Annotations.from_frame, frame(*labels)), (cp.read, path)):
        in_order = r"ordered=\['2/10', '7/10', '10/10'\]"
        with pytest.warns(AnnotationWarning, match=rf"those of a scale, .*tidy=True takes the number.*{in_order}"):
            assert not read(source).kind.in_order
        with pytest.warns(AnnotationWarning, match="the whole numbers 2, 7, 10 are taken as ordered"):
            tidy = read(source, tidy=True)
        assert (list(tidy.classes), tidy.votes().sum(0).tolist()) == ([2, 7, 10], [2, 1, 1])
        assert read(source, ordered=["2/10", "7/10", "10/10"]).kind.in_order
    beyond = Annotations.from_frame(frame("3/10", "5/10"), tidy=True)
    assert list(beyond.classes) == [3, 5]


def test_a_fraction_among_whole_numbers_is_not_proposed_as_an_abstention(tmp_path):
    labels = [*map(str, range(1, 11)), "7.5", "bad"]
    frame(*labels * 2).to_csv(path := tmp_path / "a.csv", index=False)
    with pytest.warns(AnnotationWarning, match=r"^'bad' counts as a class; .* give abstain=\['bad'\]$"):
        cp.read(path)
    with pytest.raises(AnnotationError, match=r"row 10 .*'7\.5' is a fraction"):
        cp.read(path, abstain="bad")


@pytest.mark.parametrize("listed", [list, iter])
def test_steps_of_a_scale_in_a_text_file_may_be_listed_as_numbers(tmp_path, listed):
    frame("0.1", "0.5", "1", "0.5", "bad").to_csv(path := tmp_path / "a.csv", index=False)
    found = Annotations.from_csv(path, ordered=listed([0.1, 0.5, 1.0]), abstain="bad")
    assert (list(found.classes), found.votes().sum(0).tolist()) == ([0.1, 0.5, 1.0], [1, 2, 1])


SCORES = ["4", "Score: 4", "4/5", "Rating: 4", "**Score:** 4", "4 out of 5", "5", "Final score: 5", "1"]


def test_scores_with_a_word_before_or_the_scale_after_them_are_told_and_tidied(tmp_path):
    with pytest.warns(AnnotationWarning, match=r"'4' and '4 out of 5' and '4/5' and 'Rating: 4'.*tidy=True"):
        assert Annotations.from_frame(frame(*SCORES)).n_classes == 9
    with pytest.warns(AnnotationWarning, match="the whole numbers 1, 4, 5 are taken as ordered") as told:
        tidy = Annotations.from_frame(frame(*SCORES), tidy=True)
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        listed = Annotations.from_frame(frame(*SCORES), tidy=True, classes=[1, 2, 3, 4, 5])
    assert tidy.votes().sum(0).tolist() == [1, 6, 2]
    assert list(tidy.classes) == [1, 4, 5]
    assert list(Annotations.from_frame(frame(*SCORES), tidy=True, classes=["1", "4", "5"]).classes) == ["1", "4", "5"]
    assert listed.votes().sum(0).tolist() == [1, 0, 0, 6, 2]
    (tmp_path / "gold.csv").write_text("task,label\n0,4\n6,5\n")
    assert np.asarray(tidy.with_gold(tmp_path / "gold.csv").gold).tolist() == [1, -1, -1, -1, -1, -1, 2, -1, -1]


def test_words_after_a_word_such_as_answer_are_told_and_tidied():
    rows = frame("yes", "Answer: yes", "The verdict is yes.", "no", "Label: No")
    with pytest.warns(AnnotationWarning, match="'Answer: yes' and 'The verdict is yes.' and 'yes'"):
        Annotations.from_frame(rows)
    assert Annotations.from_frame(rows, tidy=True).votes().sum(0).tolist() == [2, 3]


@pytest.mark.parametrize(
    "labels",
    [["0", "1/2", "1"], ["4/5", "4/10", "4", "10"], ["Room: 4", "4"], ["*", "**", "***"], ["Score: 4", "Score: 5"]],
)
def test_what_may_be_another_label_is_neither_told_nor_tidied(labels):
    """A half beside a whole, scores of two scales, other words before a number, stars."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = Annotations.from_frame(frame(*labels))
        assert Annotations.from_frame(frame(*labels), tidy=True).classes == found.classes
    assert found.n_classes == len(labels)


def test_one_score_with_a_word_before_it_is_no_word_beside_a_scale():
    with pytest.warns(AnnotationWarning, match="'4' and 'Score: 4'") as caught:
        Annotations.from_frame(frame("1", "2", "3", "4", "5", "Score: 4"))
    assert not any("counts as a class" in str(warning.message) for warning in caught)


def test_characters_that_do_not_show_are_told_by_their_codes_and_tidied():
    labels = ["stra\u00dfe\u0301", "stra\u00df\u00e9", "b", "b\u200b"]
    with pytest.warns(AnnotationWarning, match=r"'b' and 'b\\u200b'; 'stra\\xdfe\\u0301' and 'straßé'"):
        Annotations.from_frame(frame(*labels))
    assert Annotations.from_frame(frame(*labels), tidy=True).votes().sum(0).tolist() == [2, 2]
    rows = frame(*"abab").assign(worker=["caf\u00e9", "cafe\u0301", "eve", "e\u00adve"])
    with pytest.warns(AnnotationWarning, match=r"'café' and 'cafe\\u0301'; 'eve' and 'e\\xadve'"):
        Annotations.from_frame(rows)
    assert list(Annotations.from_frame(rows, tidy=True).workers) == ["café", "eve"]


def test_names_of_tasks_and_workers_that_differ_by_a_point_and_zero_are_told_and_tidied():
    """Tables write "1.0" where a column of numbers has an empty cell."""
    rows = pd.DataFrame({"task": ["1", "1.0", "2", "v2.0"], "worker": ["7", "8", "7.0", "8"], "label": list("abab")})
    with pytest.warns(AnnotationWarning) as told:
        found = Annotations.from_frame(rows)
    for column, names in (("task", "'1' and '1.0'"), ("worker", "'7' and '7.0'")):
        assert any(column in str(each.message) and names in str(each.message) for each in told)
    assert not any("v2" in str(each.message) for each in told)
    assert (found.n_tasks, found.n_workers) == (4, 3)
    tidy = Annotations.from_frame(rows, tidy=True)
    assert (list(tidy.tasks), list(tidy.workers)) == (["1", "2", "v2.0"], ["7", "8"])


def scores_from_0_to_100(name):
    rng = np.random.default_rng(0)
    given = np.clip(rng.integers(0, 101, 60)[:, None] + rng.normal(0, 8, (60, 4)), 0, 100).astype(int)
    rows = [(f"t{i}", f"w{j}", given[i, j]) for i in range(60) for j in range(4)]
    return pd.DataFrame(rows, columns=["task", "worker", name])


def test_many_scores_are_ordered_where_their_column_is_called_so():
    for name in ("score", "overall_score", "Rating"):
        with pytest.warns(AnnotationWarning, match=r"numbers from \d+ to \d+ are taken as ordered.*truth_classes="):
            annotations = Annotations.from_frame(scores_from_0_to_100(name), label=name)
        assert annotations.kind.in_order
        assert list(annotations.classes) == sorted(annotations.classes)


@pytest.mark.parametrize("change", [lambda label: label, lambda label: label // 25 * 1000])
def test_many_or_large_numbers_that_are_taken_as_names_are_told_with_the_choice(change):
    table = scores_from_0_to_100("label").assign(label=lambda rows: change(rows["label"]))
    with pytest.warns(AnnotationWarning, match=r"names without an order.*ordered=False says so.*ordered=True says it"):
        assert not Annotations.from_frame(table).kind.in_order
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not Annotations.from_frame(table, ordered=False).kind.in_order
        assert Annotations.from_frame(table, ordered=True).kind.in_order
        assert not Annotations.from_frame(table.astype({"label": "category"})).kind.in_order


def on_a_scale(workers, largest, n=30):
    return [(f"t{i}", w, (i + k) % (largest + 1)) for i in range(n) for k, w in enumerate(workers)]


def test_workers_on_another_scale_are_named_with_its_end():
    columns = ["task", "worker", "label"]
    table = pd.DataFrame(on_a_scale("abc", 5) + [(f"t{i}", "z", i % 11 * 10) for i in range(30)], columns=columns)
    with pytest.warns(AnnotationWarning, match=r"'label': most numbers of 'z' are above 5.* go to 100"):
        Annotations.from_frame(table, ordered=True)
    same = pd.DataFrame([*on_a_scale("abcz", 5), ("t1", "y", 5), ("t2", "y", 100)], columns=columns)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Annotations.from_frame(table, ordered=False)
    with pytest.warns(AnnotationWarning) as told:
        Annotations.from_frame(same, ordered=True)  # two annotations tell nothing of a scale
    assert ["100 lies far" in str(each.message) for each in told] == [True]


def test_numbers_beside_words_are_told_as_two_scales():
    words = ["low", "mid", "high"]
    rows = [(f"{x}{i}", "w", scale[i % 3]) for x, scale in (("t", words), ("s", [1, 2, 3])) for i in range(9)]
    table = pd.DataFrame(rows, columns=["task", "worker", "label"])
    with pytest.warns(AnnotationWarning, match=r"1, 2, 3 stand beside 'high', 'low', 'mid'.*merge=\{'high': …\}"):
        Annotations.from_frame(table)
    merge = {"low": 1, "mid": 2, "high": 3}
    with pytest.warns(AnnotationWarning, match="taken as ordered") as told:
        assert Annotations.from_frame(table, merge=merge).n_classes == 3
    assert len(told) == 1


@pytest.mark.parametrize(
    ("labels", "mend"),
    [
        (["1", "2", "3"], r"ordered=True says it$"),
        (["2.5", "0.5", "10"], r"ordered=\['0\.5', '2\.5', '10'\] says it$"),
        (["2,5", "1", "3"], r"ordered=\['1', '2,5', '3'\] says it$"),
        (["1 star", "5 stars", "3 stars"], r"ordered=\['1 star', '3 stars', '5 stars'\] says it$"),
        (["★★★", "★☆☆", "★★☆"], r"ordered=\['★☆☆', '★★☆', '★★★'\] says it$"),
        (["low", "mid", "high"], r"ordered=\['low', 'mid', 'high'\] says it$"),
        (
            ["correct", "incorrect", "partially correct"],
            r"ordered=\['incorrect', 'partially correct', 'correct'\] says it$",
        ),
    ],
)
def test_scores_that_are_text_are_told_with_their_order(labels, mend):
    """Scores out of JSON and text columns are text, and were names without an order and without a word."""
    with pytest.warns(AnnotationWarning, match=f"those of a scale, .*{mend}"):
        assert not Annotations.from_frame(frame(*labels)).kind.in_order


@pytest.mark.parametrize("labels", [["1000", "2000", "3000"], ["1", "1.0", "2"], ["7", "5"]])
def test_codes_and_two_numbers_that_are_text_are_not_told_as_a_scale(labels):
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*those of a scale")
        Annotations.from_frame(frame(*labels))


@pytest.mark.parametrize("name", ["gold", "expected_label", "majority", "Final"])
def test_workers_that_are_called_as_true_labels_or_a_majority_are_told(name):
    by_task = {f"t{n}": {"ann": n % 2, "bob": n % 3 % 2, name: n % 2} for n in range(6)}
    with pytest.warns(AnnotationWarning, match=rf"workers have '{name}', called as true labels .* by gold='FILE'"):
        assert Annotations.from_dict(by_task).n_workers == 3
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*called as true labels")
        Annotations.from_dict(by_task, workers=["ann", "bob", name])
        Annotations.from_dict({task: {who: by[who] for who in ("ann", "bob")} for task, by in by_task.items()})


@pytest.mark.parametrize("far", [55, -40])
def test_a_number_far_from_all_others_is_told_and_wide_scales_are_not(far):
    table = pd.DataFrame({"task": [*range(20)] * 2, "worker": [1] * 20 + [2] * 20, "label": [1, 2, 3, 4, 5] * 8})
    table.loc[7, "label"] = far
    with pytest.warns(AnnotationWarning, match=rf"column 'label': {far} lies far .* from 1 to 5.*abstain=\[{far}\]"):
        cp.Annotations.from_frame(table, ordered=True)
    for label in (table["label"].clip(1, 10), table["label"].clip(1, 5) * 20):
        with warnings.catch_warnings():
            warnings.simplefilter("error", AnnotationWarning)
            cp.Annotations.from_frame(table.assign(label=label), ordered=True)


def test_tags_that_are_read_as_classes_are_warned_of_and_asked_about():
    cells = ["a", "b;a", "b", "a", "c", "a; b", "", "c"] * 3
    table = pd.DataFrame({"doc": [*range(12)] * 2, "annotator": ["x"] * 12 + ["y"] * 12, "tags": cells})
    with pytest.raises(AnnotationError, match=r"By what is in them: tags='tags'\?"):
        cp.read(table)
    with pytest.warns(AnnotationWarning, match=r"'a; b', 'b;a' are several .* tag_separator=';'"):
        cp.read(table[table["tags"] != ""], label="tags")
    text = table["tags"].replace({"b;a": "b; d", "a; b": "yes, I think"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cp.read(table.assign(tags=text)[text != ""], label="tags")
