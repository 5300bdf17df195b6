"""Questions with classes of their own: what is taken by itself, what can be said, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from rubrics import CLASSES, rubric

import crowdppl as cp
from crowdppl.data.arrays import groups_sharing
from crowdppl.data.errors import AnnotationWarning
from crowdppl.data.kinds import NOMINAL, Ordered
from crowdppl.data.question_classes import kind_from_json, within

TABLE, TRUTH = rubric()


def classes_of(annotations: cp.Annotations) -> dict:
    names = {name: annotations.question_classes(name)[0] for name in annotations.questions}
    return {name: [annotations.classes[int(k)] for k in chosen] for name, chosen in names.items()}


def read(table: pd.DataFrame = TABLE, **options) -> cp.Annotations:
    return cp.Annotations.from_frame(table, question="question", **options)


def test_questions_that_share_no_label_have_classes_and_kinds_of_their_own_and_it_is_said_once():
    with pytest.warns(AnnotationWarning) as said:
        annotations = read()
    assert len(said) == 1
    text = r"'safe' \('no', 'yes'\), 'helpful' \(1, 2, 3, 4, 5, in this order\).*classes=\{question: "
    assert pytest.importorskip("re").search(text, str(said[0].message))
    assert classes_of(annotations) == CLASSES
    assert [annotations.question_classes(name)[1] for name in CLASSES] == [NOMINAL, Ordered(), NOMINAL]
    assert annotations.n_classes == 10


@pytest.mark.filterwarnings("ignore::crowdppl.data.errors.AnnotationWarning")
def test_one_question_is_what_its_rows_alone_would_be():
    annotations = read(gold=TRUTH)
    for name in CLASSES:
        own = TABLE[TABLE["question"] == name]
        gold = {task: label for (task, question), label in TRUTH.items() if question == name}
        labels = own["label"].infer_objects()
        alone = cp.Annotations.from_frame(own.assign(label=labels), gold=gold)
        chosen = annotations.of_question(name)
        assert chosen.classes == alone.classes
        assert chosen.kind == alone.kind
        for field in ("task", "worker", "label", "gold"):
            np.testing.assert_array_equal(getattr(chosen, field), getattr(alone, field))


@pytest.mark.filterwarnings("error")
def test_options_by_question_say_classes_and_orders_without_a_warning():
    said = {"safe": ["yes", "no", "unclear"], "topic": CLASSES["topic"]}
    annotations = read(classes=said, ordered={"helpful": [5, 4, 3, 2, 1], "topic": False})
    assert classes_of(annotations) == said | {"helpful": [5, 4, 3, 2, 1]}
    assert [annotations.question_classes(name)[1].in_order for name in CLASSES] == [False, True, False]


def test_all_classes_listed_are_those_of_all_questions():
    everything = [name for classes in CLASSES.values() for name in classes]
    annotations = read(classes=everything)
    assert annotations.kind.own is None
    assert list(annotations.classes) == everything


def test_questions_alike_by_option_are_what_they_are_without():
    table = TABLE.assign(label=np.where(np.arange(len(TABLE)) % 3, "yes", "no"))
    same = {name: ["no", "yes"] for name in CLASSES}
    assert read(table, classes=same).kind == read(table).kind == NOMINAL


def test_columns_for_questions_have_classes_of_their_own_too():
    wide = TABLE.pivot(index=["task", "worker"], columns="question", values="label").reset_index()
    with pytest.warns(AnnotationWarning, match="classes of their own"):
        assert classes_of(cp.Annotations.from_frame(wide, question=list(CLASSES))) == CLASSES


@pytest.mark.filterwarnings("ignore::crowdppl.data.errors.AnnotationWarning")
def test_an_abstention_is_of_all_questions_and_no_class_of_any():
    table = TABLE.copy()
    table.loc[[0, 4, 9], "label"] = "skip"
    annotations = read(table, abstain="skip")
    assert classes_of(annotations) == CLASSES
    own = annotations.of_question("safe")
    assert list(own.categories) == ["no", "yes", "skip"]
    assert own.counts_by_kind()[0, 2] == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classes": {"safe": ["yes", "nope"]}}, r"question 'safe', row \d+: 'no' is no class .*'safe'.*'yes', 'nope'"),
        ({"classes": {"save": ["yes", "no"]}}, r"save.*safe"),
        ({"classes": {"safe": ["yes"]}}, "at least two classes"),
        ({"ordered": {"topic": True}}, r"question 'topic'.*ordered="),
        ({"classes": {"helpful": ["1", "2", "3", "4", "5"]}}, r"'helpful'.*of type str"),
    ],
)
def test_what_a_question_does_not_have_is_refused_with_what_it_has(options, message):
    with pytest.raises((cp.AnnotationError, cp.UnknownNameError), match=message):
        read(**options)


TWO_SCALES = pd.DataFrame(
    {
        "task": np.repeat(range(10), 3),
        "worker": [*"abc"] * 10,
        "helpful": [1, 2, 3, 4, 5] * 6,
        "safe": [0, 1, 1] * 10,
    }
)


def test_a_question_of_two_numbers_beside_a_scale_is_warned_of_with_what_parts_them():
    table = TWO_SCALES
    with pytest.warns(AnnotationWarning, match=r"'safe'.*'helpful'.*classes=\{'safe': \[0, 1\]\}"):
        cp.Annotations.from_frame(table, question=["helpful", "safe"])
    parted = cp.Annotations.from_frame(table, question=["helpful", "safe"], classes={"safe": [0, 1]})
    assert classes_of(parted) == {"helpful": [1, 2, 3, 4, 5], "safe": [0, 1]}


def test_two_scales_are_told_beside_questions_of_other_labels():
    """A third question of texts gives classes to each, and both scales were one without a word of it."""
    table = TWO_SCALES.assign(fluent=[1, 2, 3] * 10, topic=["law", "code"] * 15)
    with pytest.warns(AnnotationWarning) as said:
        cp.Annotations.from_frame(table, question=["helpful", "safe", "fluent", "topic"])
    texts = [str(one.message) for one in said]
    assert any("'safe' has the labels 0, 1 alone" in text and "classes={'safe': [0, 1]}" in text for text in texts)
    (each,) = [text for text in texts if "have classes of their own" in text]
    assert "'fluent' (0, 1, 2, 3, 4, 5, in this order, of which it was given 1, 2, 3 alone)" in each
    assert "'topic' ('code', 'law');" in each


def test_classes_by_question_need_questions():
    with pytest.raises(cp.AnnotationError, match=r"by question.*question="):
        cp.Annotations.from_frame(TABLE[TABLE["question"] == "safe"], classes={"safe": ["no", "yes"]})


@pytest.mark.filterwarnings("ignore::crowdppl.data.errors.AnnotationWarning")
def test_a_question_with_a_single_class_is_named():
    table = TABLE.assign(label=TABLE["label"].where(TABLE["question"] != "topic", "sports"))
    with pytest.raises(cp.AnnotationError, match=r"'topic' has a single class, 'sports'.*classes=\{'topic'"):
        read(table)


@pytest.mark.filterwarnings("ignore::crowdppl.data.errors.AnnotationWarning")
def test_gold_and_more_annotations_are_of_the_question_s_classes():
    annotations = read()
    with pytest.raises(cp.AnnotationError, match=r"gold.*5 is no class of the question 'safe'.*'no', 'yes'"):
        annotations.with_gold({("t0", "safe"): 5})
    more = pd.DataFrame({"task": ["t0"], "question": ["helpful"], "worker": ["new"], "label": ["yes"]})
    with pytest.raises(cp.AnnotationError, match=r"row 0: 'yes' is no class of the question 'helpful'"):
        annotations.joined(more)
    assert annotations.joined(more.assign(label=5)).n_rows == annotations.n_rows + 1
    with pytest.raises(cp.AnnotationError, match=r"question 'tone' is none of.*classes of their own"):
        annotations.joined(more.assign(question="tone"))


@pytest.mark.filterwarnings("ignore::crowdppl.data.errors.AnnotationWarning")
def test_the_kind_comes_back_from_json_and_other_json_is_refused():
    kind = read().kind
    assert kind_from_json(kind.to_json()) == kind
    for wrong in ("circular", {"classes": 2, "of": [[0, 2]], "kinds": ["nominal"]}, {"of": []}):
        with pytest.raises(ValueError, match="kind="):
            kind_from_json(wrong)


def test_groups_are_of_questions_that_share_labels_also_by_others():
    assert groups_sharing([{0, 1}, {2}, {1, 3}, {3, 4}]) == [[0, 2, 3], [1]]


@pytest.mark.filterwarnings("ignore::crowdppl.data.errors.AnnotationWarning")
def test_shares_within_a_question_are_of_its_classes_alone():
    annotations = read()
    shares = np.full((annotations.n_tasks, 10), 0.1)
    shares[0] = np.eye(10)[9]  # of a question that has not this class
    found = within(shares, annotations.kind, annotations.question)
    assert found.sum(-1) == pytest.approx(1)
    assert found[0].tolist() == [0.5, 0.5, *[0.0] * 8]
    assert found[1].tolist() == pytest.approx([0, 0, *[0.2] * 5, 0, 0, 0])


@pytest.mark.filterwarnings("ignore::crowdppl.data.errors.AnnotationWarning")
@pytest.mark.parametrize("wide", [False, True])
def test_a_scale_in_a_text_file_is_of_numbers_beside_questions_of_text(tmp_path, wide):
    table, question = TABLE, "question"
    if wide:
        table, question = TABLE.pivot(index=["task", "worker"], columns="question", values="label"), list(CLASSES)
        table = table.reset_index()
    table.to_csv(tmp_path / "rubric.csv", index=False)
    gold = pd.DataFrame([(*pair, label) for pair, label in TRUTH.items()], columns=["task", "question", "label"])
    gold.to_csv(tmp_path / "gold.csv", index=False)
    annotations = cp.Annotations.from_csv(tmp_path / "rubric.csv", question=question)
    assert classes_of(annotations) == CLASSES
    assert annotations.question_classes("helpful")[1].in_order
    if not wide:
        with_gold = cp.Annotations.from_csv(tmp_path / "rubric.csv", question=question, gold=str(tmp_path / "gold.csv"))
        np.testing.assert_array_equal(with_gold.gold, annotations.with_gold(TRUTH).gold)
    text = {"helpful": ["1", "2", "3", "4", "5"]}
    assert (
        classes_of(cp.Annotations.from_csv(tmp_path / "rubric.csv", question=question, classes=text)) == CLASSES | text
    )


@pytest.mark.filterwarnings("ignore::crowdppl.data.errors.AnnotationWarning")
def test_numbers_that_another_question_has_beside_text_stay_text(tmp_path):
    table = TABLE[TABLE["question"] != "topic"].assign(label="1")
    table.loc[table.index[::3], "label"] = "2"
    table.loc[table["question"].eq("safe") & (table["worker"] == "w1"), "label"] = "unclear"
    table.to_csv(tmp_path / "text.csv", index=False)
    found = cp.Annotations.from_csv(tmp_path / "text.csv", question="question")
    assert list(found.classes) == ["1", "2", "unclear"]


@pytest.mark.filterwarnings("error")
def test_columns_that_state_orders_of_their_own_keep_them():
    wide = TABLE.pivot(index=["task", "worker"], columns="question", values="label").reset_index()
    helpful = pd.Categorical(wide["helpful"], [5, 4, 3, 2, 1], ordered=True)
    safe = pd.Categorical(wide["safe"], ["yes", "no"], ordered=True)
    annotations = cp.Annotations.from_frame(wide.assign(helpful=helpful, safe=safe), question=["safe", "helpful"])
    assert classes_of(annotations) == {"safe": ["yes", "no"], "helpful": [5, 4, 3, 2, 1]}
    assert all(annotations.question_classes(name)[1].in_order for name in ("safe", "helpful"))


@pytest.mark.parametrize("question", ["question", ["safe", "helpful"]])
@pytest.mark.parametrize("words", [("False", "True"), ("FALSE", "TRUE")])
def test_truth_values_of_a_file_are_the_numbers_that_a_question_s_classes_list(question, words, tmp_path):
    wide = pd.DataFrame({"task": np.repeat(range(10), 3), "worker": [*"abc"] * 10, "helpful": [1, 2, 3, 4, 5] * 6})
    wide["safe"] = [words[i % 7 < 3] for i in range(30)]
    long = wide.melt(["task", "worker"], var_name="question", value_name="label")
    (long if question == "question" else wide).to_csv(tmp_path / "rubric.csv", index=False)
    classes = {"safe": [0, 1], "helpful": [1, 2, 3, 4, 5]}
    found = cp.Annotations.from_csv(tmp_path / "rubric.csv", question=question, classes=classes)
    assert classes_of(found) == classes
    safe = found.of_question("safe")
    assert np.bincount(np.asarray(safe.label)).tolist() == [(wide["safe"] == word).sum() for word in words]
