"""Kinds of labels: what each says of classes, and that everything asks the kind."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import crowdppl as cp
from crowdppl.data import AnnotationError, Annotations, Ids
from crowdppl.data.kinds import KINDS, NOMINAL, Kind, Nominal, Ordered, Pairwise
from crowdppl.inference.fitted.confusion_scores import scores
from crowdppl.inference.fitted.decisions import decide, expected_scores
from crowdppl.models.parts.starts import soft_votes

COUNTS = arrays.arrays(np.int64, st.tuples(st.integers(1, 6), st.integers(2, 5)), elements=st.integers(0, 4))
ROWS = pd.DataFrame(
    [("t1", "ann", "low"), ("t1", "bob", "mid"), ("t1", "cy", "high"), ("t1", "dan", "high"), ("t2", "ann", "low")],
    columns=["task", "worker", "label"],
)
GRADES = ["low", "mid", "high"]


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
@given(counts=COUNTS)
def test_votes_of_every_kind_are_probabilities_and_equal_without_annotations(kind, counts):
    for votes in (kind.votes(counts.astype(float)), kind.majority(counts)):
        assert votes.shape == counts.shape
        assert votes.sum(-1) == pytest.approx(1)
        assert votes[counts.sum(-1) == 0] == pytest.approx(1 / counts.shape[1])
        assert not votes[(counts == 0) & (counts.sum(-1, keepdims=True) > 0)].any()


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
@given(counts=COUNTS)
def test_the_label_of_every_kind_is_the_one_of_least_expected_cost(kind, counts):
    weights = counts + np.linspace(1, 1.01, counts.shape[1])
    posterior = weights / weights.sum(-1, keepdims=True)
    cost = posterior @ kind.costs(range(posterior.shape[1]))
    rows = np.arange(len(posterior))
    assert cost[rows, kind.label(posterior)] == pytest.approx(cost.min(-1))


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_distances_of_every_kind_are_those_of_a_metric(kind):
    distance = kind.distance(3)
    assert (distance == distance.T).all()
    assert ((distance > 0) == ~np.eye(3, dtype=bool)).all()
    assert (distance[:, None] <= distance[:, :, None] + distance[None]).all()


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
@given(counts=COUNTS, most=st.integers(1, 6))
def test_the_classes_that_every_kind_shows_are_those_of_the_greatest_weights(kind, counts, most):
    shown = kind.shown(counts[0], most)
    assert len(set(shown)) == len(shown) == min(most, counts.shape[1])
    assert sorted(counts[0][shown]) == sorted(counts[0])[-most:]


@given(counts=COUNTS)
def test_votes_and_labels_of_ordered_classes_are_those_of_nominal_ones(counts):
    assert (Ordered().majority(counts) == NOMINAL.majority(counts)).all()
    assert (Ordered().label(counts) == NOMINAL.label(counts)).all()


def test_the_median_is_the_first_class_with_half_of_the_probability_up_to_it():
    posterior = np.array([[0.5, 0.0, 0.5], [0.2, 0.2, 0.6], [0.4, 0.2, 0.4]])
    assert Ordered.median(posterior).tolist() == [0, 2, 1]
    assert Ordered.median(posterior.astype(np.float32)).tolist() == [0, 2, 1]


def test_bias_and_mean_absolute_error_of_workers_without_errors_one_step_high_and_with_abstentions():
    shares = np.full(3, 1 / 3)
    right, high = np.eye(3), np.array([[0, 1, 0], [0, 0, 1], [0, 0, 1]])
    half_silent = np.column_stack([high / 2, np.full(3, 0.5)])
    found = Ordered().worker_scores(np.stack([right, high]), shares)
    assert found["bias"] == pytest.approx([0, 2 / 3])
    assert found["mean_absolute_error"] == pytest.approx([0, 2 / 3])
    assert Ordered().worker_scores(half_silent[None], shares)["bias"] == pytest.approx([2 / 3])
    assert np.isnan(Ordered().worker_scores(np.zeros((1, 3, 3)), shares)["bias"]).all()


def test_ordered_classes_are_those_listed_and_their_kind_goes_wherever_the_annotations_go():
    annotations = Annotations.from_frame(ROWS, ordered=GRADES)
    assert (annotations.kind, annotations.classes) == (Ordered(), Ids(GRADES))
    assert annotations.joined(ROWS.assign(task="t3")).kind == Ordered()
    assert annotations.replace(gold=None).kind == annotations.of_classes().kind == Ordered()
    assert annotations.without_workers().kind == Ordered()
    assert annotations.joined(Annotations.from_frame(ROWS.assign(task="t3"), classes=GRADES)).kind == Ordered()
    with pytest.raises(AnnotationError, match=r"\['low', 'mid', 'high'\].*\['high', 'mid', 'low'\].*ordered="):
        annotations.joined(Annotations.from_frame(ROWS.assign(task="t3"), ordered=GRADES[::-1]))
    with pytest.raises(AnnotationError, match=r"classes= and ordered="):
        Annotations.from_frame(ROWS, ordered=GRADES, classes=GRADES)


@pytest.mark.parametrize("labels", [[3, 1, 2], pd.Categorical(["b", "a", "c"], ["c", "b", "a"])])
def test_numbers_and_categories_have_an_order_and_text_needs_one(labels):
    frame = pd.DataFrame({"task": [1, 2, 3], "worker": "w", "label": labels})
    nominal = Annotations.from_frame(frame)
    column = cp.data.columns.encode(frame["label"], "column 'label'")
    assert Ordered().with_classes(column, None).ids == nominal.classes
    text = cp.data.columns.encode(pd.Series(["b", "a"]), "column 'label'")
    with pytest.raises(AnnotationError, match=r"column 'label'.*'b'.*ordered="):
        Ordered().with_classes(text, None)


def test_scores_with_halves_are_listed_by_the_error_and_whole_ones_among_them_are_the_same_numbers():
    frame = pd.DataFrame({"task": [0, 0, 1, 1], "worker": [0, 1, 0, 1], "label": [1.0, 1.5, 2.0, 2.5]})
    with pytest.raises(cp.AnnotationError, match=r"ordered=\[1\.0, 1\.5, 2\.0, 2\.5\]"):
        cp.Annotations.from_frame(frame, ordered=True)
    given = cp.Annotations.from_frame(frame, ordered=[1, 1.5, 2, 2.5])
    assert list(given.classes) == [1.0, 1.5, 2.0, 2.5]
    assert given.kind.in_order
    assert given.to_frame()["label"].tolist() == frame["label"].tolist()


@pytest.mark.parametrize(
    ("classes", "values"),
    [
        ([1.0, 1.5, 3.0], [1.0, 1.5, 3.0]),
        (["1", "2", "10"], [1.0, 2.0, 10.0]),
        ([3, 2, 1], [0.0, 1.0, 2.0]),
        (["low", "2", "3"], [0.0, 1.0, 2.0]),
    ],
)
def test_expected_scores_are_in_the_units_of_classes_that_are_rising_numbers(classes, values):
    assert Ordered().values(classes).tolist() == values


def test_agreement_of_ordered_labels_is_krippendorffs_of_interval_data():
    # Krippendorff (2011), section D: alpha of the example's reliability data is 0.849 with the interval metric.
    rows = """1 2 3 3 2 1 4 1 2 . . .
    1 2 3 3 2 2 4 1 2 5 . 3
    . 3 3 3 2 3 4 2 2 5 1 .
    1 2 3 3 2 4 4 1 2 5 1 ."""
    cells = [line.split() for line in rows.split("\n")]
    frame = pd.DataFrame([(i, j, int(y)) for j, row in enumerate(cells) for i, y in enumerate(row) if y != "."])
    frame.columns = ["task", "worker", "label"]
    assert Annotations.from_frame(frame, ordered=range(1, 6)).krippendorff_alpha() == pytest.approx(0.849, abs=5e-4)


def test_costs_by_name_choose_the_median_and_the_class_next_to_the_mean():
    probabilities = pd.DataFrame([[0.45, 0.0, 0.0, 0.35, 0.2]], columns=[0, 1, 2, 3, 10])
    by_costs = {name: decide(probabilities, costs=name, kind=Ordered()) for name in (None, "absolute", "squared")}
    assert {name: frame["label"].tolist() for name, frame in by_costs.items()} == {
        None: [0],
        "absolute": [3],
        "squared": [3],
    }
    assert by_costs["absolute"]["expected_cost"].tolist() == pytest.approx([0.45 * 3 + 0.2 * 7])
    assert by_costs["squared"]["expected_cost"].tolist() == pytest.approx([0.45 * 9 + 0.2 * 49])
    with pytest.raises(cp.UnknownNameError, match=r"cubed.*absolute"):
        decide(probabilities, costs="cubed", kind=Ordered())
    with pytest.raises(AnnotationError, match=r"no order.*ordered="):
        decide(probabilities, costs="absolute")


def test_expected_scores_are_means_of_positions_or_of_the_whole_numbers_themselves():
    probabilities = pd.DataFrame([[0.25, 0.5, 0.25], [0.98, 0.0, 0.02]], index=["a", "b"])
    for classes, values in ((GRADES, [0, 1, 2]), ([0, 10, 20], [0, 10, 20]), ([3, 2, 1], [0, 1, 2])):
        frame = expected_scores(probabilities.set_axis(classes, axis=1), Ordered())
        assert frame["expected"].to_numpy() == pytest.approx([values[1], 0.02 * values[2]])
        assert frame["expected_low"].tolist() == [values[0], values[0]]
        assert frame["expected_high"].to_numpy() == pytest.approx([values[2], 0.02 * values[2]])
        assert frame["median"].tolist() == [classes[1], classes[0]]
    narrow = expected_scores(probabilities.set_axis(GRADES, axis=1), Ordered(), 0.4)
    assert narrow.loc["a", ["expected_low", "expected_high"]].tolist() == [1, 1]
    with pytest.raises(ValueError, match=r"interval=1"):
        expected_scores(probabilities, Ordered(), 1)


def test_a_fit_has_expected_scores_of_ordered_classes_and_says_how_to_state_an_order():
    fit = cp.fit("naive_soft", Annotations.from_frame(ROWS, ordered=GRADES))
    assert fit.expected.loc["t1", "expected"] == pytest.approx(0.25 + 2 * 0.5)
    with pytest.raises(AnnotationError, match=r"'low'.*ordered=\[\.\.\.\]"):
        cp.fit("naive_soft", Annotations.from_frame(ROWS, classes=GRADES)).expected  # noqa: B018


def test_scores_of_ordered_labels_are_those_by_hand():
    probabilities = np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [0.2, 0.6, 0.2]])
    by_name = Ordered().label_scores(probabilities, np.array([1, 2, 0]), [0, 10, 30])
    assert by_name["mae"].tolist() == [10, 0, 10]  # medians 0 and 2 and 1
    assert by_name["ranked_probability"] == pytest.approx([(0.25 + 0.04) / 2, (0.01 + 0.09) / 2, (0.64 + 0.04) / 2])
    # Labels 0, 2, 1 and gold 1, 2, 0: squared differences 1, 0, 1; of all nine pairs 1 4 0, 1 0 4, 0 1 1.
    assert by_name["weighted_kappa"] == pytest.approx(1 - (2 / 3) / (12 / 9))
    assert by_name["spearman"] == pytest.approx(0.5)  # means 9, 23, 12 against 10, 30, 0
    flat = Ordered().label_scores(np.array([[1.0, 0.0]] * 2), np.array([0, 0]), ["a", "b"])
    assert np.isnan([flat["weighted_kappa"], flat["spearman"]]).all()
    assert NOMINAL.label_scores(probabilities, np.array([1, 2, 0]), GRADES) == {}


def test_score_has_the_scores_of_order_for_ordered_annotations_alone():
    gold = {"t1": "mid", "t2": "low"}
    ordered = cp.score(cp.fit("naive_soft", Annotations.from_frame(ROWS, ordered=GRADES, gold=gold)))
    assert (ordered["mae"], ordered["ranked_probability"]) == pytest.approx((0.0, (0.25**2 + 0.5**2) / 4))
    nominal = cp.score(cp.fit("naive_soft", Annotations.from_frame(ROWS, classes=GRADES, gold=gold)))
    assert set(ordered.index) - set(nominal.index) == {
        "mae",
        "mae_se",
        "ranked_probability",
        "ranked_probability_se",
        "weighted_kappa",
        "spearman",
    }


WHOLE = {"t1": {"ann": 10, "bob": 2}, "t2": {"ann": 5}}


@pytest.mark.parametrize(
    "make",
    [
        lambda folder, **options: Annotations.from_dict(WHOLE, **options),
        lambda folder, **options: Annotations.from_frame(long_table(), **options),
        lambda folder, **options: Annotations.from_matrix([[10, 2], [5, -1]], **options),
        lambda folder, **options: Annotations.from_csv(long_file(folder), **options),
        lambda folder, **options: cp.read(long_file(folder), tell=False, **options),
    ],
    ids=["dict", "frame", "matrix", "csv", "read"],
)
def test_every_constructor_takes_an_order(make, tmp_path):
    assert make(tmp_path, ordered=False).kind == make(tmp_path, classes=[2, 5, 10]).kind == NOMINAL
    assert (make(tmp_path, ordered=True).kind, make(tmp_path, ordered=True).classes) == (Ordered(), Ids([2, 5, 10]))
    assert make(tmp_path, ordered=[10, 5, 2, 0]).classes == Ids([10, 5, 2, 0])
    with pytest.raises(AnnotationError, match=r"10 is not in ordered=\[2, 5\].*add it to ordered"):
        make(tmp_path, ordered=[2, 5])


def test_whole_numbers_of_a_list_are_those_of_the_labels_whatever_their_type(tmp_path):
    """1.0 was none of the labels 1, 2 and 3, and '3' none of the gold labels of 3.0."""
    (tmp_path / "whole.csv").write_text("task,worker,label\n1,a,1\n1,b,2\n2,a,3\n")
    for listed in ([1.0, 2.0, 3.0], [1.0, 1.5, 2.0, 3.0]):
        found = cp.read(tmp_path / "whole.csv", ordered=listed, tell=False)
        assert found.classes == Ids([int(value) if value.is_integer() else value for value in listed])
    (tmp_path / "half.csv").write_text("task,worker,label\n1,a,1.5\n1,b,2.0\n2,a,3\n")
    (tmp_path / "gold.csv").write_text("task,label\n1,1.5\n2,3\n")
    halves = cp.read(tmp_path / "half.csv", ordered=[1, 1.5, 2, 3], gold=tmp_path / "gold.csv", tell=False)
    assert [halves.classes[k] for k in halves.gold] == [1.5, 3.0]
    with pytest.raises(AnnotationError, match=r"1\.5 is not in ordered=\[1\.0, 2\.0, 3\.0\]; add it to ordered$"):
        cp.read(tmp_path / "half.csv", ordered=[1.0, 2.0, 3.0], tell=False)


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        ([10, 2, 5], Ordered()),
        ([-1, 0, 1], Ordered()),
        ([1.0, 2.0, 3.0], Ordered()),
        ([1, 2, 1], NOMINAL),
        ([1, 2, 101], NOMINAL),
        (range(21), NOMINAL),
        (["1", "2", "3"], NOMINAL),
        ([1, 2, "3"], NOMINAL),
        (pd.Categorical([1, 2, 3]), NOMINAL),
    ],
    ids=str,
)
def test_three_to_twenty_whole_numbers_are_ordered_by_themselves_which_is_said_once(labels, kind, recwarn):
    frame = pd.DataFrame({"task": range(len(labels)), "worker": "w", "label": labels})
    annotations = Annotations.from_frame(frame)
    assert annotations.kind == kind
    said = [str(each.message) for each in recwarn if "taken as ordered" in str(each.message)]
    assert len(said) == (kind == Ordered())
    if said:
        assert "column 'label'" in said[0]
        assert "ordered=True" in said[0]
        assert "ordered=False" in said[0]
        assert list(annotations.classes) == sorted(annotations.classes)
    recwarn.clear()
    for options in ({"ordered": False}, {"classes": sorted(set(labels), key=str)}):
        assert Annotations.from_frame(frame, **options).kind == NOMINAL
    assert not recwarn.list


def test_abstentions_are_no_scores():
    frame = pd.DataFrame({"task": range(4), "worker": "w", "label": [0, 1, 2, 999]})
    assert Annotations.from_frame(frame).kind == NOMINAL
    with pytest.warns(cp.data.errors.AnnotationWarning, match=r"0, 1, 2 are taken as ordered"):
        assert Annotations.from_frame(frame, abstain=iter([999])).kind == Ordered()
    frame["label"] = [0, 1, 1, 2]
    assert Annotations.from_frame(frame, abstain=2).kind == NOMINAL


@pytest.mark.filterwarnings("ignore:column 'label'")
def test_a_part_with_two_of_four_scores_joins_and_updates_the_others():
    rows = [(task, worker, 1 + (task + worker) % 4) for task in range(6) for worker in range(4)]
    frame = pd.DataFrame(rows, columns=["task", "worker", "label"])
    whole = Annotations.from_frame(frame)
    more = frame[frame["label"] < 3].assign(task=lambda rows: rows["task"] + 10)
    part = Annotations.from_frame(more)
    assert (whole.kind, part.kind) == (Ordered(), NOMINAL)
    for added in (part, more):
        both = whole.joined(added)
        assert (both.kind, both.classes) == (Ordered(), Ids([1, 2, 3, 4]))
        assert both.votes()[6:].tolist() == [[*row, 0, 0] for row in part.votes().tolist()]
        assert cp.fit("one_coin", whole, progress=False).update(added).annotations.kind == Ordered()
    refused = Annotations.from_frame(frame, ordered=False)
    assert refused.joined(whole.replace(tasks=Ids(range(10, 16)))).kind == NOMINAL


def long_table():
    return pd.DataFrame([(task, worker, y) for task, by in WHOLE.items() for worker, y in by.items()]).set_axis(
        ["task", "worker", "label"], axis=1
    )


def long_file(folder):
    long_table().to_csv(folder / "rows.csv", index=False)
    return folder / "rows.csv"


def test_an_ordered_categorical_is_ordered_by_itself_unless_that_is_refused():
    stated = pd.CategoricalDtype(GRADES, ordered=True)
    frame = ROWS.astype({"label": stated})
    annotations = Annotations.from_frame(frame)
    assert (annotations.kind, annotations.classes) == (Ordered(), Ids(GRADES))
    assert "from the least to the greatest" in repr(annotations)
    assert Annotations.from_frame(frame, ordered=False).kind == NOMINAL
    assert "least" not in repr(Annotations.from_frame(frame, ordered=False))
    assert Annotations.from_frame(frame, abstain="high").classes == Ids(["low", "mid"])
    assert Annotations.from_frame(ROWS.astype({"label": pd.CategoricalDtype(GRADES)})).kind == NOMINAL
    assert Annotations.from_frame(ROWS, classes=GRADES).joined(frame.assign(task="t3")).kind == NOMINAL
    with pytest.raises(AnnotationError, match=r"column 'label'.*\['low', 'mid', 'high'\].*as_unordered"):
        Annotations.from_frame(frame, ordered=GRADES[::-1])


ORDERS = {"low to high": GRADES, "high to low": GRADES[::-1], "without mid": ["low", "high"]}


@pytest.mark.parametrize(
    "make",
    [
        lambda table: Annotations.from_matrix(table, missing=None),
        lambda table: Annotations.from_frame(table.assign(task=[1, 2]), worker=None, question=list(table.columns)),
    ],
    ids=["workers", "questions"],
)
def test_columns_of_one_table_have_one_order_or_are_refused_with_both(make):
    columns = {name: pd.Categorical(["high", "low"], order, ordered=True) for name, order in ORDERS.items()}
    table = pd.DataFrame(columns)
    annotations = make(table[["without mid", "low to high"]])
    assert (annotations.kind, annotations.classes) == (Ordered(), Ids(GRADES))
    with pytest.raises(
        AnnotationError, match=r"'low to high'.*\['low', .*'high to low'.*\['high', .*reorder_categories"
    ):
        make(table)


def test_a_label_outside_of_the_stated_order_is_refused_by_the_name_of_the_option():
    frame = pd.DataFrame({"task": [1, 2, 3], "worker": "w", "label": [1, 9, 3]})
    for option, options in (
        ("ordered", {"ordered": [1, 2, 3]}),
        ("classes", {"ordered": True, "classes": [1, 2, 3]}),
        ("ordered", {"ordered": [1, 2, 3], "abstain": 2}),
    ):
        expected = "2 is in ordered=" if "abstain" in options else rf"row 1: 9 is not in {option}=\[1, 2, 3\]"
        with pytest.raises(AnnotationError, match=expected):
            Annotations.from_frame(frame, **options)


def test_the_order_of_text_is_never_the_alphabets():
    for labels in (ROWS["label"], ROWS["label"].astype("category")):
        with pytest.raises(AnnotationError, match=r"column 'label'.*no order.*ordered=\[\.\.\.\]"):
            Annotations.from_frame(ROWS.assign(label=labels), ordered=True)
    written = ROWS.assign(label=["10", "9", "9", "2", "10"])
    assert Annotations.from_frame(written, ordered=True).classes == Ids(["2", "9", "10"])
    assert Annotations.from_frame(ROWS, classes=GRADES, ordered=True).classes == Ids(GRADES)


def test_the_kind_is_saved_with_a_fit(tmp_path):
    for options in ({"ordered": GRADES}, {"classes": GRADES}):
        fit = cp.fit("majority_vote", Annotations.from_frame(ROWS, **options))
        fit.save(tmp_path / "fit", overwrite=True)
        assert cp.load_fit(tmp_path / "fit").annotations.kind == fit.annotations.kind


def test_a_pair_in_the_other_order_has_left_for_right():
    for classes in (["left", "right"], ["left", "right", "tie"]):
        column = cp.data.columns.encode(pd.Series(["right", "left", "right"]), "column 'label'")
        coded = Pairwise().with_classes(column, classes)
        assert list(coded.ids) == classes
        mirror = Pairwise().mirror(len(classes))
        assert [classes[k] for k in mirror[coded.codes]] == ["left", "right", "left"]
        assert (mirror[mirror] == np.arange(len(classes))).all()


def test_a_mean_of_sides_is_refused_with_what_has_the_scores():
    pairs = pd.DataFrame(
        {"left": ["a", "b"] * 3, "right": ["b", "c"] * 3, "worker": [*"xxyyzz"], "winner": ["left"] * 6}
    )
    fit = cp.fit("one_coin", cp.Annotations.from_comparisons(pairs), progress=False)
    for mean in (lambda: fit.expected, lambda: fit.decide(costs="absolute")):
        with pytest.raises(cp.AnnotationError, match=r"'left', 'right' are the sides .* fit\.ranking has the scores"):
            mean()


@pytest.mark.parametrize(("labels", "classes"), [(["left", "both"], None), (["left", "right"], ["right", "left"])])
def test_comparisons_with_other_classes_are_refused(labels, classes):
    column = cp.data.columns.encode(pd.Series(labels), "column 'label'")
    with pytest.raises(AnnotationError, match=r"'tie'"):
        Pairwise().with_classes(column, classes)


FRACTIONS = pd.DataFrame({"task": [1, 2, 3, 3], "worker": [1, 1, 1, 2], "label": [1.0, 2.0, 2.5, 0.5]})


@pytest.mark.parametrize(
    ("make", "place"),
    [
        (lambda folder: Annotations.from_frame(FRACTIONS), r"column 'label', row 2: 2\.5"),
        (lambda folder: Annotations.from_dict({1: {"a": 1}, 2: {"a": 2.5}}), r"task 2, worker 'a': 2\.5"),
        (lambda folder: Annotations.from_matrix([[1, 0.5], [2, 1]]), r"cell \(task 0, worker 1\): 0\.5"),
        (lambda folder: in_csv(folder, abstain="none"), r"column 'label', row 3 \(line 5 of rows\.csv\): '2\.5'"),
        (lambda folder: cp.read(in_csv(folder, read=False), tell=False), r"column 'label', row 3 .*: '2\.5'"),
        (lambda folder: scanned(folder), r"row group 0, row 2, column 'label': 2\.5"),
    ],
    ids=["frame", "dict", "matrix", "csv", "read", "scan"],
)
def test_a_label_that_is_a_fraction_is_refused_with_its_place_and_advice(make, place, tmp_path):
    with pytest.raises(AnnotationError, match=rf"{place}.*round.*bin.*rank.*classes="):
        make(tmp_path)


def in_csv(folder, read=True, **options):
    path = folder / "rows.csv"
    path.write_text(f"task,worker,label\n1,a,{'none' if read else '1'}\n2,a,1\n3,a,2.0\n3,b,2.5\n")
    return Annotations.from_csv(path, **options) if read else path


def scanned(folder):
    FRACTIONS.to_parquet(folder / "rows.parquet")
    return cp.fit("dawid_skene", cp.scan(folder / "rows.parquet"), progress=False)


def test_fractions_that_are_listed_are_classes_and_whole_floats_are_numbers():
    listed = Annotations.from_frame(FRACTIONS, classes=[0.5, 1.0, 2.0, 2.5])
    assert listed.votes().sum(0).tolist() == [1, 1, 1, 1]
    assert Annotations.from_frame(FRACTIONS, ordered=[0.5, 1.0, 2.0, 2.5]).classes == listed.classes
    categories = FRACTIONS.assign(label=FRACTIONS["label"].astype("category"))
    assert Annotations.from_frame(categories).n_classes == 4
    assert Annotations.from_frame(FRACTIONS, abstain=[0.5, 2.5]).classes == Ids([1.0, 2.0])
    assert Annotations.from_frame(FRACTIONS.assign(label=[1.0, 2.0, 2.0, 1.0])).classes == Ids([1, 2])


@dataclass(frozen=True)
class Circular(Nominal):
    """Classes around a circle, such as the hours of a clock: the toy kind of CONTRIBUTING."""

    name: ClassVar[str] = "circular"

    def distance(self, n_classes):
        steps = np.abs(np.arange(n_classes)[:, None] - np.arange(n_classes))
        return np.minimum(steps, n_classes - steps).astype(float)

    def votes(self, counts):
        return NOMINAL.votes(counts + 0.25)

    def majority(self, counts):
        return NOMINAL.majority(-(counts @ self.distance(counts.shape[-1])))

    def label(self, posterior):
        return (posterior @ self.distance(posterior.shape[-1])).argmin(-1)

    def costs(self, classes, name=None):
        return self.distance(len(classes))

    def worker_scores(self, confusions, shares):
        distance = self.distance(shares.shape[-1])
        return {"mean_distance": np.einsum("...kl,kl,...k->...", confusions, distance, shares)}


def test_a_new_kind_needs_its_class_alone(monkeypatch, tmp_path):
    """CONTRIBUTING, "A new kind of label": everything that depends on it asks the class."""
    kind: Kind = Circular()
    monkeypatch.setitem(KINDS, kind.name, kind)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"task": np.repeat(np.arange(20), 3), "worker": np.tile(["a", "b", "c"], 20)})
    frame["label"] = (frame["task"] + rng.integers(0, 2, 60)) % 4
    nominal = Annotations.from_frame(frame, gold={0: 0, 1: 1})
    annotations = nominal.replace(kind=kind)
    assert annotations.krippendorff_alpha() != nominal.krippendorff_alpha()
    assert annotations.describe()["Krippendorff's alpha"] == annotations.krippendorff_alpha()
    assert np.asarray(soft_votes(annotations)).min() > 0 == np.asarray(soft_votes(nominal)).min()
    fit = cp.fit("one_coin", annotations, progress=False)
    assert fit.labels["label"].tolist() == kind.label(fit.probabilities.to_numpy()).tolist()
    costs = fit.probabilities.to_numpy() @ kind.distance(4)
    assert fit.decide()["expected_cost"].to_numpy() == pytest.approx(costs.min(-1), abs=1e-6)
    assert "mean_distance" in fit.workers
    assert "mean_distance" in scores(np.eye(4)[None], np.full(4, 0.25), kind)
    rule = cp.fit("majority_vote", annotations)
    assert rule.probabilities.to_numpy() == pytest.approx(kind.majority(annotations.votes()))
    rule.save(tmp_path / "rule")
    assert cp.load_fit(tmp_path / "rule").annotations.kind == kind
    monkeypatch.delitem(KINDS, kind.name)
    with pytest.raises(cp.StorageError, match=r"kind='circular'.*nominal"):
        cp.load_fit(tmp_path / "rule")


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_renamings_are_permutations_that_undo_themselves_and_keep_an_order_or_turn_it_round(kind):
    names = kind.renamings(4)
    assert (np.sort(names, -1) == np.arange(4)).all()
    assert (np.take_along_axis(names, names, -1) == np.arange(4)).all()
    assert len(names) == (1 if kind.in_order else 6)
    assert kind.renamings(2).tolist() == [[1, 0]]


@pytest.mark.parametrize("ordered", ["yes", 1, 3.0, {"a": 1}])
def test_what_says_nothing_of_an_order_is_refused_with_what_does(ordered):
    frame = pd.DataFrame({"task": [1, 1], "worker": ["a", "b"], "label": ["x", "y"]})
    with pytest.raises(AnnotationError, match=r"ordered=.*: True, False or None .*list of all classes"):
        Annotations.from_frame(frame, ordered=ordered)


def test_a_set_has_no_order():
    with pytest.raises(AnnotationError, match="a list of all classes"):
        Annotations.from_frame(ROWS, ordered=set(GRADES))


@given(
    posterior=arrays.arrays(
        float, st.tuples(st.integers(1, 5), st.sampled_from([2, 5, 6, 7, 10, 17])), elements=st.floats(0.01, 1)
    )
)
def test_a_label_is_certain_by_its_probability_and_on_a_long_scale_by_that_of_a_tenth_around_it(posterior):
    posterior = posterior / posterior.sum(-1, keepdims=True)
    n_classes = posterior.shape[1]
    for kind in KINDS.values():
        if not kind.in_order:
            assert kind.certainty(posterior) == pytest.approx(posterior.max(-1))
    near = {2: 0, 5: 0, 6: 0, 7: 1, 10: 1, 17: 2}[n_classes]
    assert Ordered().near(n_classes) == near
    for row, certain in zip(posterior, Ordered().certainty(posterior), strict=True):
        label = int(row.argmax())
        assert certain == pytest.approx(row[max(label - near, 0) : label + near + 1].sum())


def test_certainty_goes_by_the_kind_of_each_question():
    rows = [
        (task, question, f"w{w}", (task + w) % size)
        for task in range(6)
        for w in range(3)
        for question, size in (("long", 10), ("yes", 2))
    ]
    frame = pd.DataFrame(rows, columns=["task", "question", "worker", "label"])
    frame["label"] = frame["label"].astype(str)
    stated = {"long": list(map(str, range(10))), "yes": ["0", "1"]}
    annotations = Annotations.from_frame(
        frame, question="question", ordered={"long": stated["long"]}, classes={"yes": stated["yes"]}
    )
    posterior = np.full((annotations.n_tasks, 10), 0.0)
    asked = np.array([question == "long" for _, question in annotations.tasks])
    posterior[asked, 3:6], posterior[~asked, :2] = [0.2, 0.5, 0.3], [0.6, 0.4]
    found = annotations.kind.certainty(posterior, annotations.question)
    assert found[asked] == pytest.approx(1.0)
    assert found[~asked] == pytest.approx(0.6)
    assert annotations.kind.near(annotations.n_classes) == 1
