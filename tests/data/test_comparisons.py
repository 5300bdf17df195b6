"""Comparisons: what labels stand for, that true labels are of items, and that the items go wherever annotations go."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import crowdppl as cp
from crowdppl.data import AnnotationError, Annotations
from crowdppl.data.errors import AnnotationWarning
from crowdppl.data.exports.reading import read_more
from crowdppl.data.kinds import Pairwise
from crowdppl.data.padding import padded
from crowdppl.data.some_tasks import some_tasks

ROWS = pd.DataFrame(
    [("x", "y", "ann", "left"), ("y", "x", "bob", "left"), ("y", "z", "ann", "tie"), ("x", "z", "bob", "right")],
    columns=["left", "right", "worker", "label"],
)


def items_said(annotations):
    """By row the worker and the better item, or "tie"."""
    rows = annotations.to_frame()
    better = [row[row["label"]] if row["label"] in rows else row["label"] for _, row in rows.iterrows()]
    return list(zip(rows["worker"], better, strict=True))


def test_a_pair_in_both_orders_is_one_task_whose_labels_are_of_items():
    annotations = Annotations.from_comparisons(ROWS)
    assert annotations.kind == Pairwise()
    assert list(annotations.tasks) == [("x", "y"), ("y", "z"), ("x", "z")]
    assert annotations.pairs.to_numpy().tolist() == [["x", "y"], ["y", "z"], ["x", "z"]]
    assert annotations.votes().tolist() == [[1, 1, 0], [0, 0, 1], [0, 1, 0]]
    assert items_said(annotations) == [("ann", "x"), ("bob", "y"), ("ann", "tie"), ("bob", "z")]
    assert annotations.mirrored.tolist() == [False, True, False, False]
    assert Annotations.from_comparisons(ROWS.iloc[[0, 2, 3]]).mirrored is None


@given(
    st.lists(
        st.tuples(st.permutations("pqr"), st.sampled_from("uvw"), st.sampled_from([0, 1, 2])), min_size=1, max_size=12
    )
)
@pytest.mark.filterwarnings("ignore::crowdppl.data.errors.AnnotationWarning")
def test_sides_and_names_of_winners_in_any_order_say_the_same(rows):
    frame = pd.DataFrame(
        [(*pair[:2], worker, said) for pair, worker, said in rows], columns=["one", "two", "w", "said"]
    )
    by_side = frame.assign(said=frame["said"].map(["model_a", "model_b", "tie"].__getitem__))
    by_name = frame.assign(said=[(*row[:2], "tie")[row.said] for row in frame.itertuples(index=False)])
    columns = {"left": "one", "right": "two", "worker": "w", "label": "said"}
    sides, names = (Annotations.from_comparisons(each, **columns) for each in (by_side, by_name))
    pd.testing.assert_frame_equal(sides.to_frame(), names.to_frame())
    expected = sorted((row.w, (row.one, row.two, "tie")[row.said]) for row in frame.itertuples())
    assert sorted(items_said(sides)) == expected


@pytest.mark.parametrize("words", [("A", "B"), (1, 2), ("1", "2"), ("model_a", "model_b"), ("left", "right")])
def test_a_side_has_several_names(words):
    said = ROWS.assign(label=[words[0], words[0], "tie (bothbad)", words[1]])
    assert Annotations.from_comparisons(said).votes().tolist() == Annotations.from_comparisons(ROWS).votes().tolist()


def test_tasks_are_named_by_the_column_or_made_of_prompt_and_pair():
    frame = ROWS.assign(question=[1, 1, 2, 3])
    named = Annotations.from_comparisons(frame, task="question")
    assert list(named.tasks) == [1, 2, 3]
    by_prompt = Annotations.from_comparisons(frame.assign(question=[1, 2, 2, 2]), prompt="question")
    assert list(by_prompt.tasks) == [(1, "x", "y"), (2, "x", "y"), (2, "y", "z"), (2, "x", "z")]
    assert by_prompt.pairs.loc[[(2, "x", "y")]].to_numpy().tolist() == [["y", "x"]]


def test_a_column_named_task_is_taken_where_it_is_there_and_none_makes_the_pair_the_task():
    frame = ROWS.assign(task=[f"t{row}" for row in range(len(ROWS))])
    assert list(Annotations.from_comparisons(frame).tasks) == list(frame["task"])
    by_pair = Annotations.from_comparisons(frame, task=None)
    assert list(by_pair.tasks) == list(Annotations.from_comparisons(ROWS).tasks)


@pytest.mark.filterwarnings("ignore:1 of 3 tasks have abstentions only")
def test_counts_times_abstentions_gold_and_unnamed_workers_are_taken():
    frame = ROWS.assign(n=[1, 2, 3, 4], s=[1.0, 2.0, 3.0, 4.0], label=["left", "left", "tie", "none"])
    whole = Annotations.from_comparisons(frame, count="n", seconds="s", abstain="none", gold={("x", "y"): "right"})
    assert whole.counts_by_kind().tolist() == [[1, 2, 0, 0], [0, 0, 3, 0], [0, 0, 0, 4]]
    assert whole.seconds.tolist() == [1, 2, 3, 4]
    assert whole.gold.tolist() == [1, -1, -1]
    unnamed = Annotations.from_comparisons(ROWS, worker=None)
    assert unnamed.votes().tolist() == [[1, 1, 0], [0, 0, 1], [0, 1, 0]]


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({"right": ["y", "y", "z", "z"]}, {}, r"'left' and 'right', row 1: 'y' is compared with itself"),
        ({"label": ["left", "up", "tie", "left"]}, {}, r"'label', row 1: 'up' is neither a side nor an item.*abstain="),
        ({"label": ["x", "z", "tie", "x"]}, {}, r"'label', row 1: 'z' is neither"),
        ({"label": ["left", "x", "tie", "z"]}, {}, r"'label', row 1: 'x' is neither"),
        (
            {"left": ["a", "b", "b", "a"], "right": ["b", "a", "c", "c"], "label": list("aaba")},
            {},
            r"'a' names a side and",
        ),
        ({"q": 1}, {"task": "q"}, r"'q', row 2: the task 1 compares other items.*row 0; .*prompt="),
        ({"q": 1}, {"task": "q", "prompt": "q"}, r"'q'"),
        ({"left": ["x", None, "y", "x"]}, {}, r"'left': the value is missing in row 1"),
        ({}, {"ordered": ["left", "right"]}, r"ordered=.*cannot be used.*repeats"),
        ({}, {"left": "model"}, r"no column 'model'"),
    ],
)
def test_bad_comparisons_are_refused_with_place_value_and_mend(change, options, message):
    with pytest.raises(AnnotationError, match=message):
        Annotations.from_comparisons(ROWS.assign(**change), **options)


@pytest.mark.parametrize(
    "word", ["neither", "Neither is better", "both bad", "tie (bothbad)", "both_good", "both are good", "equally bad"]
)
def test_a_winner_that_is_neither_or_both_is_a_tie_which_is_said_unless_it_was_stated(word):
    rows = ROWS.assign(label=["left", "left", word, "right"])
    with pytest.warns(AnnotationWarning, match=rf"^{re.escape(repr(word))} is read as a tie; .*abstain="):
        assert Annotations.from_comparisons(rows).votes()[1].tolist() == [0, 0, 1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Annotations.from_comparisons(rows, meaning={word: "tie"})
    said = Annotations.from_comparisons(rows, abstain=word)
    assert list(said.abstentions) == [word]
    assert said.votes()[1].tolist() == [0, 0]
    for unknown in ("unsure", "none", "inconsistent"):
        with pytest.raises(AnnotationError, match=rf"row 2: '{unknown}' is neither a side .*abstain=.*meaning="):
            Annotations.from_comparisons(rows.replace(word, unknown))


@pytest.mark.parametrize(
    "words", [("A is better", "model B is slightly better"), ("a_better", "b wins"), ("System A", "Assistant B")]
)
def test_a_side_that_is_said_to_be_better_is_that_side(words):
    rows = ROWS.assign(label=[words[0], words[0], "no preference", words[1]])
    assert Annotations.from_comparisons(rows).votes().tolist() == [[1, 1, 0], [0, 0, 1], [0, 1, 0]]


def test_names_and_labels_that_differ_by_slips_alone_are_one_where_it_is_asked():
    rows = [
        ("p", "GPT", "claude", "Ann", "My verdict: [[A]]"),
        ("p ", "claude ", "gpt", "ann", "B"),
        ("q", "gpt", "claude", "ann", "Both are fine. [[C]]"),
    ]
    slips = pd.DataFrame(rows, columns=["prompt", "left", "right", "worker", "label"])
    with (
        pytest.warns(AnnotationWarning, match=r"'GPT' and 'gpt'.*tidy=True makes one"),
        pytest.raises(AnnotationError, match=r"row 0: 'My verdict.*tidy=True takes the label .* here 'A'"),
    ):
        Annotations.from_comparisons(slips)
    clean = Annotations.from_comparisons(slips, tidy=True)
    assert (list(clean.items), list(clean.workers)) == (["claude", "gpt"], ["ann"])
    assert list(clean.tasks) == [("p", "claude", "gpt"), ("q", "claude", "gpt")]
    assert clean.votes().tolist() == [[2, 0, 0], [0, 0, 1]]
    by_name = slips.assign(label=["gpt", "GPT", "tie"])
    assert Annotations.from_comparisons(by_name, tidy=True).votes().tolist() == clean.votes().tolist()
    assert cp.read(slips, tidy=True, tell=False).tasks == clean.tasks


@pytest.mark.parametrize("form", ["frame", "csv"])
def test_gold_labels_that_come_later_may_be_a_table_of_the_items_in_either_order(form, tmp_path):
    rows = ROWS.assign(prompt=[1, 1, 2, 3]).rename(columns={"left": "a", "right": "b", "label": "said"})
    names = {"left": "a", "right": "b", "label": "said"}
    gold = pd.DataFrame({"prompt": [1, 2], "a": ["y", "y"], "b": ["x", "z"], "gold": ["left", "y"]})
    expected = [1, 0, -1]  # of y and x the left one, y, which is right in the task
    for label in ("left", "y"):
        source = gold.assign(gold=label)
        if form == "csv":
            source.to_csv(tmp_path / "gold.csv", index=False)
            source = tmp_path / "gold.csv"
        annotations = Annotations.from_comparisons(rows, **names)
        assert annotations.with_gold(source).gold.tolist() == expected
        fit = cp.fit("majority_vote", annotations, progress=False)
        assert cp.score(fit, source)["tasks"] == 2
    named = Annotations.from_comparisons(rows.rename(columns={"prompt": "q"}), task="q", **names)
    of_names = gold.rename(columns={"prompt": "q"}).assign(gold="left")
    assert named.with_gold(of_names).gold.tolist() == expected


def test_a_table_of_several_criteria_is_not_added_to_comparisons_by_one():
    rows = pd.concat([ROWS.assign(criterion="safe"), ROWS.assign(criterion="kind")])
    one = Annotations.from_comparisons(rows, question="criterion").of_question("safe")
    with pytest.raises(AnnotationError, match=r"'criterion' has several questions, 'safe', 'kind'.*rows of one"):
        one.joined(rows)
    assert one.joined(rows[rows["criterion"] == "safe"].assign(worker="new")).n_annotations == 8


def test_a_graph_in_parts_is_warned_of_with_its_parts():
    frame = pd.concat([ROWS, pd.DataFrame([("u", "v", "ann", "left")], columns=ROWS.columns)])
    with pytest.warns(AnnotationWarning, match=r"2 parts.*'u', 'v'; 'x', 'y', 'z'\).*only within"):
        Annotations.from_comparisons(frame)


def test_comparisons_joined_are_those_of_one_table():
    whole = Annotations.from_comparisons(ROWS)
    parts = [Annotations.from_comparisons(ROWS.iloc[rows]) for rows in ([0, 2], [1, 3])]
    joined = parts[0].joined(parts[1].with_gold({("x", "y"): "left"}))
    assert joined.pairs.loc[list(whole.tasks)].equals(whole.pairs)
    assert sorted(items_said(joined)) == sorted(items_said(whole))
    assert joined.gold.tolist() == [1, -1, -1]  # left of y and x is y
    shown = sorted(zip(joined.to_frame()["worker"], joined.mirrored, strict=True))
    assert shown == [("ann", False), ("ann", False), ("bob", False), ("bob", True)]
    first, other = (Annotations.from_comparisons(ROWS.iloc[[row]].assign(q=1), task="q") for row in (0, 3))
    with pytest.raises(AnnotationError, match=r"the task 1 compares 'x' with 'y' here, and 'x' with 'z'"):
        first.joined(other)
    with pytest.raises(AnnotationError, match=r"only one of both .*from_comparisons"):
        first.joined(other.replace(sides=None))


@pytest.mark.filterwarnings("ignore:the prior outweighs")
def test_items_go_wherever_the_annotations_go(tmp_path):
    annotations = Annotations.from_comparisons(ROWS)
    some = some_tasks(annotations, np.array([False, True, True]))
    assert some.pairs.to_numpy().tolist() == [["y", "z"], ["x", "z"]]
    assert padded(annotations).sides[:3].tolist() == annotations.sides.tolist()
    assert annotations.without_workers().pairs.equals(annotations.pairs)
    fit = cp.fit("dawid_skene", annotations, progress=False)
    assert list(fit.labels.index) == list(annotations.tasks)
    pairs, labels = annotations.pairs, fit.labels
    said = [pairs[label].iloc[i] if label in pairs else "tie" for i, label in enumerate(labels["label"])]
    assert labels["better"].tolist() == said
    fit.write_labels(tmp_path / "labels.csv", to="csv")
    written = pd.read_csv(tmp_path / "labels.csv")
    assert written[["left", "right"]].to_numpy().tolist() == pairs.to_numpy().tolist()
    assert written["better"].tolist() == said
    assert "prompt" not in written
    asked = Annotations.from_comparisons(ROWS.assign(question="what?"), prompt="question")
    cp.fit("majority_vote", asked).write_labels(tmp_path / "asked.csv", to="csv")
    asked_of = pd.read_csv(tmp_path / "asked.csv")
    assert asked_of["prompt"].tolist() == ["what?"] * 3
    assert asked_of["task"].tolist() == ["what? · x · y", "what? · y · z", "what? · x · z"]  # as terminal and report
    known = cp.read(ROWS.assign(question="what?"), gold=tmp_path / "asked.csv", tell=False)
    assert [known.classes[k] for k in known.gold] == asked_of.set_index("task")["label"][
        [" · ".join(task) for task in known.tasks]
    ].tolist()
    fit.write_labels(tmp_path / "labels.jsonl", to="jsonl")
    assert pd.read_json(tmp_path / "labels.jsonl", lines=True)["better"].tolist() == said
    fit.save(tmp_path / "fit")
    assert cp.load_fit(tmp_path / "fit").annotations.pairs.equals(annotations.pairs)
    with pytest.raises(AnnotationError, match=r"from_comparisons"):
        _ = Annotations.from_dict({"t": {"a": 1, "b": 2}}).pairs


def test_what_one_number_means_makes_the_others_ask_for_theirs():
    rows = pd.DataFrame({"left": ["a", "b"], "right": ["b", "a"], "worker": "x", "label": [0, 1]})
    with pytest.raises(AnnotationError, match=r"column 'label', row 1: 1 is neither a side"):
        Annotations.from_comparisons(rows, meaning={0: "left"})
    with pytest.raises(AnnotationError, match=r"meaning=\{0: 'left', 1: 'left'\}"):
        Annotations.from_comparisons(rows, meaning={0: "left", 1: "left"})


def test_pairs_that_a_worker_saw_in_both_orders_are_no_table_that_was_appended_to_itself(recwarn):
    orders = [("p", "q"), ("q", "p"), ("q", "r"), ("r", "q"), ("r", "p"), ("p", "r")] * 20
    rows = pd.DataFrame([(*order, f"w{i // 6}", min(order)) for i, order in enumerate(orders)])
    rows.columns = ["left", "right", "worker", "winner"]
    both = Annotations.from_comparisons(rows, label="winner")
    assert np.asarray(both.mirrored).sum() == len(rows) // 2
    assert not [one for one in recwarn if "appended to itself" in str(one.message)]
    with pytest.warns(AnnotationWarning, match="appended to itself"):
        Annotations.from_comparisons(pd.concat([rows, rows]), label="winner")


def test_a_meaning_that_no_row_needs_is_refused_by_name():
    table = ROWS.assign(label=[0, 1, 1, 0])
    with pytest.raises(AnnotationError, match=r"no row has the label '2'; column 'label' has 0, 1"):
        Annotations.from_comparisons(table, meaning={0: "left", 1: "right", 2: "tie"})


def test_rows_that_lack_something_are_dropped_where_that_is_asked_and_errors_name_the_rows_of_the_table():
    lacking = pd.concat([ROWS.assign(label=None).head(1), ROWS], ignore_index=True)
    with pytest.raises(AnnotationError, match=r"row 0.*missing='drop'"):
        Annotations.from_comparisons(lacking)
    with pytest.warns(AnnotationWarning, match="left out 1 of 5 rows"):
        annotations = Annotations.from_comparisons(lacking, missing="drop")
    assert items_said(annotations) == items_said(Annotations.from_comparisons(ROWS))
    itself = lacking.assign(right=[*lacking["right"][:4], "x"])
    with pytest.raises(AnnotationError, match="row 4: 'x' is compared with itself"), pytest.warns(AnnotationWarning):
        Annotations.from_comparisons(itself, missing="drop")


def test_gold_labels_may_name_the_better_item():
    gold = {("x", "y"): "y", ("x", "z"): "left", ("y", "z"): "tie"}
    annotations = Annotations.from_comparisons(ROWS, gold=gold)
    assert annotations.gold.tolist() == [1, 2, 0]
    assert annotations.without_gold().with_gold(gold).gold.tolist() == [1, 2, 0]
    table = pd.DataFrame({"task": pd.Series(list(gold), dtype=object), "label": list(gold.values())})
    assert annotations.with_gold(table).gold.tolist() == [1, 2, 0]
    with pytest.raises(AnnotationError, match="compares 'x' with 'y', and not 'z'"):
        annotations.with_gold({("x", "y"): "z"})


def test_columns_of_known_names_are_found_where_the_defaults_are_not_there():
    names = {"left": "model_a", "right": "model_b", "worker": "rater", "label": "winner"}
    whole, found = (Annotations.from_comparisons(rows) for rows in (ROWS, ROWS.rename(columns=names)))
    assert items_said(found) == items_said(whole)
    assert list(found.workers) == list(whole.workers)
    with pytest.raises(AnnotationError, match="no column 'left'"):
        Annotations.from_comparisons(ROWS.rename(columns={"left": "one", "right": "other"}))


ABOUT = pd.DataFrame({"item": list("wzyx"), "length": [4.0, 3.0, 2.0, 1.0], "new": [1, 0, 0, 1]})


def test_features_of_items_are_in_the_order_of_the_items_and_an_item_may_have_no_comparison():
    by_column, by_index = (
        Annotations.from_comparisons(ROWS, item_features=of) for of in (ABOUT, ABOUT.set_index("item"))
    )
    by_item = Annotations.from_comparisons(ROWS, item_features={"x": [1, 1], "y": [2, 0], "z": [3, 0], "w": [4, 1]})
    for annotations in (by_column, by_index, by_item):
        assert list(annotations.items) == list("wxyz")
        assert annotations.item_features.tolist() == [[4, 1], [1, 1], [2, 0], [3, 0]]
        assert annotations.pairs.equals(Annotations.from_comparisons(ROWS).pairs)
    assert list(by_column.item_feature_names) == ["length", "new"]
    assert not len(by_item.item_feature_names)
    read = cp.read(ROWS, item_features=ABOUT, tell=False)
    assert read.item_features.tolist() == by_column.item_features.tolist()


def test_items_with_features_are_comparable_without_a_chain_of_comparisons(recwarn):
    parts = pd.DataFrame([("x", "y", "ann", "left"), ("w", "z", "ann", "left")], columns=ROWS.columns)
    Annotations.from_comparisons(parts, item_features=ABOUT)
    assert not [one for one in recwarn if "parts" in str(one.message)]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (ABOUT[1:3], r"item_features: item 'x' has no features \(1 of 3 items\)"),
        (ABOUT.assign(length=[4.0, None, 2.0, 1.0]), r"item_features, item 'z', column 'length': nan is not a finite"),
        (
            ABOUT.assign(new=["a", "b", "b", "a"]),
            r"item_features, column 'new': expected numbers, got values of type .* such as 'a'",
        ),
        (np.ones((4, 2)), r"item_features: a ndarray does not say of which items .* column 'item'"),
        ({"x": [1, 2], "y": [1], "z": [1, 2]}, r"item_features: item 'y' has shape \(1,\), but item 'x' has \(2,\)"),
        (pd.concat([ABOUT, ABOUT[:1]]), r"item_features, items.*'w'"),
    ],
)
def test_features_of_items_that_cannot_be_used_are_refused_by_item_and_column(given, message):
    with pytest.raises(AnnotationError, match=message):
        Annotations.from_comparisons(ROWS, item_features=given)


def test_a_new_item_brings_its_features():
    first = Annotations.from_comparisons(ROWS, item_features=ABOUT[1:])
    more = pd.DataFrame([("w", "x", "ann", "left")], columns=ROWS.columns)
    with pytest.raises(AnnotationError, match=r"features of the items, and none of 'w', which is new"):
        first.joined(Annotations.from_comparisons(more))
    turned = ABOUT[["item", "new", "length"]]
    joined = first.joined(Annotations.from_comparisons(more, item_features=turned[::3]))
    assert list(joined.items) == list("xyzw")
    assert joined.item_features.tolist() == [[1, 1], [2, 0], [3, 0], [4, 1]]
    assert first.joined(Annotations.from_comparisons(ROWS)).item_features.tolist() == first.item_features.tolist()


def test_features_of_prompts_are_those_of_their_tasks():
    asked = ROWS.assign(q=["a", "b", "b", "a"])
    about = pd.DataFrame({"hard": [1.0, 0.0]}, ["a", "b"])
    for features in (about, about.reset_index(names="q"), {"a": [1.0], "b": [0.0]}):
        annotations = Annotations.from_comparisons(asked, prompt="q", features=features)
        assert list(annotations.tasks) == [("a", "x", "y"), ("b", "x", "y"), ("b", "y", "z"), ("a", "x", "z")]
        assert annotations.features.tolist() == [[1], [0], [0], [1]]
    for features, message in (
        ({"a": [1.0]}, r"features: prompt 'b' has no features"),
        ({"a": [1.0], "b": [1.0], "c": [1.0]}, r"features: prompt 'c' is not among .*; leave it out"),
        (np.ones((2, 1)), r"features: a ndarray does not say of which prompts .* column 'q'"),
    ):
        with pytest.raises(AnnotationError, match=message):
            Annotations.from_comparisons(asked, prompt="q", features=features)


def test_a_pair_that_is_added_has_the_features_of_its_prompt():
    asked = pd.DataFrame(
        [("q1", "x", "y", "ann", "left"), ("q2", "x", "z", "bob", "right")],
        columns=["q", "left", "right", "worker", "label"],
    )
    first = Annotations.from_comparisons(asked, prompt="q", features={"q1": [0.5], "q2": [-0.5]})
    more = pd.DataFrame([("q2", "y", "new", "ann", "right")], columns=asked.columns)
    joined = first.joined(Annotations.from_comparisons(more, prompt="q", classes=first.classes))
    assert joined.features[joined.tasks.index_of([("q2", "new", "y"), ("q2", "y", "new")]).max()].tolist() == [-0.5]
    with pytest.raises(AnnotationError, match=r"features of the tasks, and none of \('q3', "):
        first.joined(Annotations.from_comparisons(more.assign(q="q3"), prompt="q", classes=first.classes))


def test_preferences_are_tasks_of_their_own_and_have_no_true_label():
    own = Annotations.from_comparisons(ROWS, preferences=True)
    assert list(own.tasks) == [f"preference {number}" for number in range(1, len(ROWS) + 1)]
    assert own.pairs.to_numpy().tolist() == ROWS[["left", "right"]].to_numpy().tolist()
    for options in ({"gold": {0: "left"}}, {"count": "n"}):
        with pytest.raises(AnnotationError, match=f"{next(iter(options))}= is of comparisons with a true label"):
            Annotations.from_comparisons(ROWS.assign(n=1), preferences=True, **options)
    with pytest.raises(AnnotationError, match="preferences=1"):
        Annotations.from_comparisons(ROWS, preferences=1)
    frame = ROWS.assign(task=1)
    assert cp.read(frame, preferences=True, tell=False).n_tasks == len(ROWS)
    with pytest.raises(AnnotationError, match="preferences=True is of comparisons; leave it out"):
        cp.read(frame, preferences=True, comparisons=False)


@pytest.mark.parametrize("name", ["battle_id", "comparison", "match ID", "trial", "pair_id"])
def test_read_takes_the_number_of_a_comparison_for_its_task(name):
    """Without it all comparisons of two models would be one."""
    rows = [(i, f"m{i % 3}", f"m{(i + 1) % 3}", f"w{j}", "left") for i in range(6) for j in range(2)]
    table = pd.DataFrame(rows, columns=[name, "model_a", "model_b", "judge", "winner"])
    assert cp.read(table, tell=False).n_tasks == 6


CRITERIA = pd.DataFrame(
    {
        "prompt": ["p", "p", "p", "p", "q", "q"],
        "model_a": ["x", "x", "y", "y", "x", "x"],
        "model_b": ["y", "y", "x", "x", "z", "z"],
        "judge": ["ann", "ann", "bob", "bob", "ann", "ann"],
        "criterion": ["helpful", "safe", "helpful", "safe", "helpful", "safe"],
        "winner": ["model_a", "model_b", "model_b", "model_a", "tie", "model_a"],
    }
)


def test_criteria_of_comparisons_are_questions_and_their_verdicts_are_not_mixed():
    annotations = cp.read(CRITERIA, tell=False)
    assert list(annotations.questions) == ["helpful", "safe"]
    helpful, safe = (annotations.of_question(name) for name in ("helpful", "safe"))
    assert helpful.votes().tolist() == [[2, 0, 0], [0, 0, 1]]
    assert safe.votes().tolist() == [[0, 2, 0], [1, 0, 0]]
    assert safe.pairs.loc[[("p", "x", "y")]].to_numpy().tolist() == [["x", "y"]]


def test_a_column_question_is_what_items_are_compared_by_beside_prompts_and_asked_about_alone():
    table = CRITERIA.rename(columns={"criterion": "question"})
    assert list(cp.read(table, tell=False).questions) == ["helpful", "safe"]
    alone = table.drop(columns="prompt")
    with pytest.raises(cp.AnnotationError, match=r"'helpful', 'safe'.*question='question'.*task='question'"):
        cp.read(alone)
    assert list(cp.read(alone, question="question", tell=False).questions) == ["helpful", "safe"]
    assert not len(cp.read(alone, task="question", tell=False).questions)


@pytest.mark.parametrize("prompt", ["prompt", "question"])
def test_a_column_for_each_criterion_is_what_a_column_of_criteria_is(prompt):
    long = cp.Annotations.from_comparisons(CRITERIA, prompt="prompt", question="criterion")
    keys = ["prompt", "model_a", "model_b", "judge"]
    wide = CRITERIA.pivot(index=keys, columns="criterion", values="winner").reset_index()
    wide = wide.rename(columns={"prompt": prompt})
    named = ["helpful", "safe"]
    for annotations in (
        cp.Annotations.from_comparisons(wide, prompt=prompt, question=named),
        cp.read(wide, question=named, tell=False),
        cp.read(wide, question=named, comparisons=True, tell=False),
    ):
        assert list(annotations.tasks) == list(long.tasks)
        assert annotations.pairs.to_numpy().tolist() == long.pairs.to_numpy().tolist()
        assert annotations.votes().tolist() == long.votes().tolist()
    classes = cp.read(wide, question=named, comparisons=False, tell=False)
    assert classes.sides is None
    wrong = wide.assign(safe=[*wide["safe"][:1], "best", *wide["safe"][2:]])
    with pytest.raises(cp.AnnotationError, match=r"row 1, column 'safe': 'best'.*neither a side nor an item"):
        cp.Annotations.from_comparisons(wrong, question=named)
    with pytest.raises(cp.AnnotationError, match=r"question=\['helpful', 'safe'\]"):
        cp.Annotations.from_comparisons(wide)


def test_criteria_that_are_not_used_are_warned_of_with_the_option_that_uses_them():
    with pytest.warns(AnnotationWarning, match="question='criterion'"):
        annotations = cp.Annotations.from_comparisons(CRITERIA, prompt="prompt")
    assert not len(annotations.questions)


@pytest.mark.parametrize(
    ("beside", "mend"),
    [
        ({"score_a": [5, 2, 3], "score_b": [1, 4, 3]}, r"np\.sign\(table\['score_b'\] - table\['score_a'\]\)"),
        ({"rank_1": list("xyx"), "rank_2": list("yxz"), "rank_3": list("zzy")}, r"combinations\(\['rank_1', 'rank_2'"),
    ],
)
def test_two_scores_and_rankings_are_refused_with_what_makes_comparisons_of_them(beside, mend):
    table = pd.DataFrame({"prompt": ["p", "q", "r"], "judge": ["a", "a", "b"], **beside})
    with pytest.raises(cp.AnnotationError, match=mend) as refused:
        cp.read(table)
    if "rank_1" in beside:
        text = str(refused.value)
        code = text[text.index("pd.concat") : text.index(", for cp.Annotations")]
        made = cp.read(eval(code, {"pd": pd, "itertools": __import__("itertools"), "table": table}), tell=False)
        assert made.n_annotations == 9
        assert ("a", "x") in items_said(made)
        assert made.pairs.to_numpy().tolist()[:1] == [["x", "y"]]


def test_a_table_without_a_row_is_refused_for_that():
    with pytest.raises(cp.AnnotationError, match="no row"):
        cp.Annotations.from_comparisons(ROWS.iloc[:0])


def test_scores_of_items_are_by_one_question():
    annotations = cp.Annotations.from_comparisons(CRITERIA, prompt="prompt", question="criterion")
    with pytest.raises(cp.StoryError, match=r"'helpful', 'safe'.*of_question\('helpful'\)"):
        cp.fit("dawid_skene", annotations, progress=False)
    fit = cp.fit("dawid_skene", annotations.of_question("safe"), progress=False)
    assert len(fit.ranking) == 3
    every = cp.fit("dawid_skene", annotations, truth_prior=cp.Prevalence(), progress=False)
    assert len(every.labels) == 4


def test_gold_labels_of_criteria_are_by_pair_and_question():
    gold = {(("p", "x", "y"), "safe"): "y"}
    annotations = cp.Annotations.from_comparisons(CRITERIA, prompt="prompt", question="criterion", gold=gold)
    given = annotations.tasks.index_of(list(gold))[0]
    assert annotations.gold[given] == 1
    assert (np.delete(np.asarray(annotations.gold), given) == -1).all()


def test_more_comparisons_by_criterion_are_joined_by_it():
    annotations = cp.Annotations.from_comparisons(CRITERIA, prompt="prompt", question="criterion")
    more = annotations.joined(CRITERIA.assign(judge="cy"))
    assert more.n_annotations == 12
    assert more.of_question("safe").votes().tolist() == [[0, 4, 0], [2, 0, 0]]


def test_preferences_are_known_for_it_however_their_tasks_are_called_and_added_as_new_ones():
    table = CRITERIA.drop(columns="criterion")
    annotations = cp.Annotations.from_comparisons(table, preferences=True)
    assert annotations.preferences
    both = annotations.joined(table)
    assert both.preferences
    assert both.n_tasks == both.n_annotations == 12
    named = cp.Annotations.from_comparisons(table.assign(task=[f"preference {n}" for n in range(1, 7)]), task="task")
    assert not named.preferences
    with pytest.raises(cp.AnnotationError, match="only one of both"):
        annotations.joined(named)


def arena(n_battles, n_again=0):
    """Battles of five models on prompts of their own by one judge each, of which the last ones have a second judge."""
    rows = [(f"q{b}", f"m{b % 5}", f"m{(b + 1 + b % 3) % 5}", f"j{b % 7}", "ab"[b % 3 > 0]) for b in range(n_battles)]
    rows += [(*row[:3], "j9", "b") for row in rows[n_battles - n_again :]]
    return pd.DataFrame(rows, columns=["question_id", "model_a", "model_b", "judge", "winner"])


@pytest.mark.parametrize("n_again", [0, 3])
def test_battles_of_nearly_one_judge_each_are_preferences_which_is_said_with_what_refuses_it(tmp_path, capsys, n_again):
    path = tmp_path / "battles.csv"
    arena(30, n_again).to_csv(path, index=False)
    annotations = cp.read(path)
    said = capsys.readouterr().err
    assert annotations.preferences
    assert annotations.n_tasks == annotations.n_annotations == 30 + n_again
    assert "each is a preference of its own (preferences=False" in said
    assert said.count("\n") == 1
    refused = cp.read(path, preferences=False)
    assert "preference" not in capsys.readouterr().err
    assert (refused.preferences, refused.n_tasks) == (False, 30)
    with pytest.warns(AnnotationWarning, match="preferences=False"):
        made = Annotations.from_comparisons(arena(30, n_again), prompt="question_id")
    pd.testing.assert_frame_equal(made.to_frame(), annotations.to_frame())


@pytest.mark.parametrize(
    ("table", "options"),
    [
        (arena(30, 15), {}),  # half of the battles have two
        (arena(19), {}),  # too few to tell
        (arena(30), {"gold": {("q0", "m0", "m1"): "left"}}),
        (arena(30).assign(n=2), {"count": "n"}),
        (pd.concat([arena(30), arena(30).assign(judge="j9")]), {}),
        (pd.concat([arena(30), arena(30).rename(columns={"model_a": "model_b", "model_b": "model_a"})]), {}),
    ],
)
def test_battles_of_several_judges_or_with_gold_labels_or_counts_are_no_preferences_by_themselves(table, options):
    assert not cp.read(table, tell=False, **options).preferences


def test_several_preferences_of_one_prompt_are_said_to_count_as_independent_with_the_mend():
    six = pd.concat([arena(30).assign(judge=f"j{j}") for j in range(6)])
    with pytest.warns(AnnotationWarning, match="one pair and 'question_id', and count as independent.*keep one row"):
        assert cp.read(six, preferences=True, tell=False).n_tasks == 180
    for table, asked in ((six.drop_duplicates("question_id"), True), (six, False), (arena(30), None)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            cp.read(table, preferences=asked, tell=False)


def test_battles_that_are_added_are_preferences_where_the_first_ones_are(tmp_path):
    arena(4, 4).to_csv(tmp_path / "more.csv", index=False)
    arena(40).to_csv(tmp_path / "alone.csv", index=False)
    of_errors, own = cp.read(arena(30, 30), tell=False), cp.read(arena(30), tell=False)
    assert own.joined(read_more(own, tmp_path / "more.csv", tell=False)).n_tasks == 38
    assert of_errors.joined(read_more(of_errors, tmp_path / "alone.csv", tell=False)).n_tasks == 40


def test_battles_by_criterion_of_one_judge_each_are_preferences_by_themselves():
    both = arena(30).rename(columns={"winner": "safe"}).assign(helpful=lambda rows: rows["safe"].iloc[::-1].to_list())
    annotations = cp.read(both, question=["safe", "helpful"], tell=False)
    assert annotations.preferences
    assert annotations.of_question("safe").n_tasks == 30


@pytest.mark.parametrize("slip", ["x ", "X"])
def test_items_that_differ_by_blanks_or_case_are_told_with_the_mend(slip):
    rows = ROWS.assign(left=[slip, *ROWS["left"][1:]])
    with pytest.warns(AnnotationWarning, match=r"items: names differ.*tidy=True"):
        assert len(Annotations.from_comparisons(rows).items) == 4


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("blank", ["", " "])
def test_an_item_without_a_name_is_a_missing_value(side, blank):
    rows = ROWS.assign(**{side: [*ROWS[side][:2], blank, *ROWS[side][3:]]})
    with pytest.raises(AnnotationError, match=rf"column '{side}': the value is missing in row 2"):
        Annotations.from_comparisons(rows)
    with pytest.warns(AnnotationWarning, match="left out 1 of 4 rows"):
        assert len(Annotations.from_comparisons(rows, missing="drop").items) == 3


def winners_and_losers():
    """Of 40 prompts two pairs each, of which the better item is known, by two workers without an error."""
    score = {"x": 3, "y": 2, "z": 1}
    pairs = [(f"q{i}", *pair) for i in range(40) for pair in (("x", "y"), ("z", "y"))]
    rows = [(q, worker, *sorted(pair, key=score.get, reverse=True)) for q, *pair in pairs for worker in ("ann", "bob")]
    return pd.DataFrame(rows, columns=["prompt", "worker", "winner", "loser"])


def test_winners_and_losers_are_comparisons_whose_sides_are_drawn_and_said_to_be(tmp_path):
    rows = winners_and_losers()
    rows.to_csv(tmp_path / "won.csv", index=False)
    with pytest.warns(AnnotationWarning, match="'winner' and 'loser' do not say .* no position bias can be told"):
        read = cp.read(tmp_path / "won.csv", tell=False)
    with pytest.warns(AnnotationWarning, match="no position bias can be told"):
        made = Annotations.from_comparisons(rows, prompt="prompt")
    pd.testing.assert_frame_equal(read.to_frame(), made.to_frame())
    assert read.n_tasks == 80
    assert items_said(read) == list(zip(rows["worker"], rows["winner"], strict=True))
    assert 25 < (np.asarray(read.label)[::2] == 0).sum() < 55  # of 80 tasks
    assert read.mirrored is made.mirrored is None
    both = read.joined(rows.iloc[:4].assign(worker="cy"))
    assert [better for worker, better in items_said(both) if worker == "cy"] == rows["winner"].iloc[:4].to_list()
    assert both.mirrored is None
    shown = rows.assign(left=rows["winner"], right=rows["loser"], label="left").drop(columns=["winner", "loser"])
    assert not read.joined(shown).kind.shows_sides
    assert not Annotations.from_comparisons(shown, prompt="prompt").joined(read).kind.shows_sides


def test_winners_and_losers_that_were_said_to_be_no_comparisons_are_classes(tmp_path):
    rows = winners_and_losers()
    assert cp.read(rows, comparisons=False, label="winner", tell=False).sides is None


def test_a_column_of_prompts_that_is_not_used_is_named_with_the_argument():
    rows = ROWS.assign(instruction=["p", "q", "p", "q"])
    with pytest.warns(AnnotationWarning, match=r"column 'instruction'.*not used.*prompt='instruction'.*task=None"):
        assert Annotations.from_comparisons(rows).n_tasks == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Annotations.from_comparisons(rows, prompt="instruction").n_tasks == 4
        assert Annotations.from_comparisons(rows, task=None).n_tasks == 3


def test_a_column_prompt_is_one_of_prompts_unless_it_is_said_that_tasks_are_pairs_or_named():
    rows = ROWS.assign(prompt=["p", "q", "p", "q"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Annotations.from_comparisons(rows).n_tasks == 4
        assert Annotations.from_comparisons(rows, task=None).n_tasks == 3
        named = rows.assign(task=[1, 1, 2, 3])
        assert list(Annotations.from_comparisons(named, prompt=None).tasks) == [1, 2, 3]
        assert Annotations.from_comparisons(named, prompt="prompt").n_tasks == 4


@pytest.mark.parametrize(
    "named",
    [{}, {"prompt": ["p", "q", "p", "q", "q"]}, {"task": [7, 7, 8, 9, 9]}],
    ids=["by pair", "by prompt and pair", "by name"],
)
def test_a_frame_of_comparisons_makes_the_same_annotations_in_memory_and_from_a_file(named, tmp_path):
    rows = pd.concat([ROWS, ROWS.iloc[[3]].assign(left="z", right="x")]).assign(**named)  # bob again, the other way
    annotations = Annotations.from_comparisons(rows)
    frame = annotations.to_frame()
    assert list(frame.columns) == [*named, "left", "right", "worker", "label"]
    frame.to_csv(tmp_path / "frame.csv", index=False)
    for again in (Annotations.from_comparisons(frame), cp.read(tmp_path / "frame.csv", tell=False)):
        assert (again.tasks, again.workers, again.items) == (annotations.tasks, annotations.workers, annotations.items)
        for name in ("task", "worker", "label", "sides", "mirrored"):
            np.testing.assert_array_equal(getattr(again, name), getattr(annotations, name), name)


@pytest.mark.parametrize("words", [("A>B", "[[B>>A]]", "A=B"), ("1>2", "1 < 2", "2=1"), ("[[A]]", "[[B]]", "[[C]]")])
def test_signs_between_the_sides_and_judges_letters_in_brackets_are_known(words):
    table = pd.DataFrame({"left": "x", "right": "y", "worker": list("abc"), "label": words})
    found = Annotations.from_comparisons(table)
    assert found.votes().tolist() == [[1, 1, 1]]
    with pytest.raises(AnnotationError, match="'A>A' is neither a side nor an item"):
        Annotations.from_comparisons(table.assign(label=[*words[:2], "A>A"]))
    with pytest.raises(AnnotationError, match="'C' is neither a side nor an item"):
        Annotations.from_comparisons(table.assign(label=[*words[:2], "C"]))


def test_gold_labels_may_have_the_columns_of_the_comparisons_in_either_order_of_the_sides(tmp_path):
    """A file of gold labels with the columns of the annotations was refused, since no column names the tasks."""
    rng = np.random.default_rng(0)
    rows = []
    for i in range(12):
        one, other = rng.choice([7, 8, 9], 2, replace=False)
        rows += [(f"q{i}", one, other, judge, rng.choice(["A", "B", "tie"])) for judge in "xyz"]
    table = pd.DataFrame(rows, columns=["prompt", "model_a", "model_b", "judge", "winner"])
    table.to_csv(tmp_path / "pairs.csv", index=False)
    gold = table.drop_duplicates("prompt").drop(columns="judge").iloc[:6].assign(winner=["A", "B", "tie"] * 2)
    better = dict(zip(gold["prompt"], [gold["model_a"].iloc[0]] * 6, strict=True))
    better |= {row.prompt: {"A": row.model_a, "B": row.model_b, "tie": "tie"}[row.winner] for row in gold.itertuples()}
    turned = gold.rename(columns={"model_a": "model_b", "model_b": "model_a"})
    turned["winner"] = turned["winner"].map({"A": "B", "B": "A", "tie": "tie"})
    turned.to_csv(tmp_path / "gold.csv", index=False)
    for source, known_labels in (
        (table, gold),
        (tmp_path / "pairs.csv", tmp_path / "gold.csv"),
        (tmp_path / "pairs.csv", turned),
    ):
        annotations = cp.read(source, gold=known_labels, tell=False)
        known = {
            task[0]: "tie" if side == 2 else annotations.items[int(pair[side])]
            for task, pair, side in zip(annotations.tasks, annotations.sides, annotations.gold, strict=True)
            if side >= 0
        }
        assert known == better
    with pytest.raises(AnnotationError, match="has two labels"):
        cp.read(table, gold=pd.concat([gold, turned.assign(winner="A")]), tell=False)
    with pytest.raises(AnnotationError, match=r"'q99', 7, 8.* is not among the annotated tasks"):
        cp.read(table, gold=gold.iloc[:1].assign(prompt="q99", model_a=7, model_b=8), tell=False)
