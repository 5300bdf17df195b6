"""cp.agreement against irrCAC's stored figures, krippendorff, scikit-learn, and what must hold of intervals."""

import json
from pathlib import Path

import krippendorff
import numpy as np
import pandas as pd
import pytest
from command_line import crowdppl
from sklearn.metrics import cohen_kappa_score

import crowdppl as cp

STORED = json.loads((Path(__file__).parent / "agreement_figures.json").read_text())
METRICS = ["nominal", "ordinal", "interval"]
WEIGHTS = {"nominal": None, "interval": "quadratic"}


def crowd(matrix):
    values = np.array([[0 if one is None else one for one in row] for row in matrix])
    return cp.Annotations.from_matrix(values, missing=0)


@pytest.fixture(scope="module")
def skewed():
    parameters = {"ability": np.tile([0.05, 0.95], (5, 1)), "prevalence": np.array([0.95, 0.05])}
    made, _ = cp.simulate("one_coin", n_tasks=400, n_workers=5, annotations_per_task=5, parameters=parameters, seed=0)
    return made


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("stored", STORED, ids=["published", "skewed"])
def test_fleiss_kappa_and_gwets_ac_are_those_of_irrcac_with_missing_annotations(stored, metric):
    table = cp.agreement(crowd(stored["matrix"]), metric=metric, draws=2).table
    for name, figure in stored["figures"][metric].items():
        assert table.loc[name, "estimate"] == pytest.approx(figure, abs=1e-6), name


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("stored", STORED, ids=["published", "skewed"])
def test_alpha_is_that_of_krippendorff(stored, metric):
    matrix = np.array(stored["matrix"], dtype=float)
    expected = krippendorff.alpha(matrix.T, level_of_measurement=metric)
    found = cp.agreement(crowd(stored["matrix"]), metric=metric, draws=2).table.loc["alpha", "estimate"]
    assert found == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("metric", WEIGHTS)
def test_a_pairs_kappa_is_cohens_of_the_tasks_that_both_annotated_and_the_headline_their_mean(metric):
    matrix = STORED[1]["matrix"]
    found = cp.agreement(crowd(matrix), metric=metric, draws=2)
    expected = []
    for first, second in found.pairs.index:
        both = [(row[first], row[second]) for row in matrix if row[first] and row[second]]
        expected.append(cohen_kappa_score(*zip(*both, strict=True), labels=range(1, 5), weights=WEIGHTS[metric]))
        assert found.pairs.loc[(first, second), "tasks"] == len(both)
    np.testing.assert_allclose(found.pairs["kappa"], expected, atol=1e-9)
    assert found.table.loc["cohen_kappa", "estimate"] == pytest.approx(np.mean(expected))


def test_of_two_workers_each_has_the_kappa_of_the_pair():
    found = cp.agreement(crowd([row[:2] for row in STORED[1]["matrix"] if row[0] and row[1]]), draws=2)
    np.testing.assert_allclose(found.by_worker["kappa"], found.pairs["kappa"].iloc[0])


def test_by_default_the_distance_is_that_of_the_kind_of_labels():
    frame = crowd(STORED[1]["matrix"]).to_frame()
    ordered = cp.Annotations.from_frame(frame, ordered=[1, 2, 3, 4])
    found = cp.agreement(ordered, draws=2)
    assert found.metric == "interval"
    assert found.table.loc["alpha", "estimate"] == ordered.krippendorff_alpha()
    pd.testing.assert_frame_equal(found.table, cp.agreement(ordered, metric="interval", draws=2).table)


def test_intervals_are_those_of_a_bootstrap_by_task_written_out(skewed):
    found = cp.agreement(skewed, draws=400, seed=1).table
    votes, rng, again = skewed.votes(), np.random.default_rng(7), []
    for _ in range(400):
        n = votes[rng.integers(len(votes), size=len(votes))]
        agree = (n * (n - 1)).sum(1) / 20
        share = n.sum(0) / n.sum()
        again.append([agree.mean(), (agree.mean() - (share**2).sum()) / (1 - (share**2).sum())])
    low, high = np.quantile(again, [0.05, 0.95], axis=0)
    # 400 resamples leave an end of a 90 % interval uncertain by about a tenth of the interval's width
    for i, name in enumerate(["observed", "fleiss_kappa"]):
        width = high[i] - low[i]
        assert found.loc[name, ["low", "high"]].tolist() == pytest.approx([low[i], high[i]], abs=0.15 * width)
    pd.testing.assert_frame_equal(found, cp.agreement(skewed, draws=400, seed=1).table)
    assert not found.equals(cp.agreement(skewed, draws=400, seed=2).table)


def test_intervals_of_many_tasks_are_as_wide_as_those_of_tasks_drawn_one_by_one():
    workers = {"ability": np.tile([0.2, 0.8], (40, 1)), "prevalence": np.full(2, 0.5)}
    sizes = {"n_tasks": 5000, "n_workers": 40, "annotations_per_task": 4}
    many, _ = cp.simulate("one_coin", parameters=workers, seed=0, **sizes)
    found = cp.agreement(many, draws=1000)
    n = many.votes()
    agree = (n * (n - 1)).sum(1) / 12
    # an end of 1,000 resamples and of 2,000 groups is uncertain by 4 and 2 % of the width
    width = 2 * 1.645 * agree.std() / np.sqrt(len(agree))
    assert found.table.loc["observed", "high"] - found.table.loc["observed", "low"] == pytest.approx(width, rel=0.15)
    share = (n[many.task, many.label] - 1) / 3  # of the others of a task who gave the same
    by_worker = pd.Series(share).groupby(many.worker).agg(["std", "size"])
    widths = 2 * 1.645 * by_worker["std"] / np.sqrt(by_worker["size"])
    assert (found.by_worker["agreement_high"] - found.by_worker["agreement_low"]).mean() == pytest.approx(
        widths.mean(), rel=0.05
    )


def test_a_worker_without_others_is_in_no_pair():
    alone = pd.DataFrame({"task": [0, 0, 1, 1], "worker": "ann", "label": [0, 1, 1, 1]})
    found = cp.agreement(cp.Annotations.from_frame(alone), draws=5)
    assert found.pairs.empty
    assert found.table.loc["observed", "estimate"] == 0.5


def test_a_rare_class_has_its_own_agreement_by_the_definition(skewed):
    found = cp.agreement(skewed, draws=50).by_class
    n = skewed.votes()
    for k, name in enumerate(skewed.classes):
        pairs = n[:, k] * (n[:, k] - 1)
        assert found.loc[name, "specific"] == pytest.approx(pairs.sum() / (n[:, k] * 4).sum())
        binary = np.stack([n[:, k], n.sum(1) - n[:, k]], 1)
        expected = krippendorff.alpha(value_counts=binary, level_of_measurement="nominal")
        assert found.loc[name, "alpha"] == pytest.approx(expected)


def test_a_fit_says_when_the_shares_of_classes_make_kappa_small(skewed):
    fit = cp.fit("one_coin", skewed.without_gold(), progress=False)
    found = cp.agreement(skewed, fit, draws=50)
    kappa = found.table.loc["fleiss_kappa"]
    assert found.misleads
    assert kappa["even_classes"] == pytest.approx(0.81, abs=0.12)  # (.905 − .5) / .5 of workers right in 95 %
    assert kappa["estimate"] < 0.5
    assert kappa["expected_low"] - 0.1 < kappa["estimate"] < kappa["expected_high"] + 0.1
    assert f"{kappa['even_classes']:.2f}" in str(found)
    assert 1 <= found.n_effective <= 5
    workers = {"ability": np.tile([0.05, 0.95], (5, 1)), "prevalence": np.array([0.5, 0.5])}
    even, _ = cp.simulate("one_coin", n_tasks=400, n_workers=5, annotations_per_task=5, parameters=workers, seed=1)
    assert not cp.agreement(even, cp.fit("one_coin", even.without_gold(), progress=False), draws=5).misleads
    ax = cp.plot_agreement(found)
    drawn = {label.get_text(): line for label, line in zip(ax.get_yticklabels(), ax.get_yticks(), strict=True)}
    points = ax.collections[1].get_offsets()
    assert points[int(drawn["Fleiss' kappa"])][0] == pytest.approx(kappa["estimate"])
    assert ax.get_xlim()[0] < found.table["expected_low"].min()  # so that no band looks cut


def test_groups_of_tasks_have_the_figures_of_their_tasks_alone(skewed):
    group = {task: "a" if i < 150 else "b" for i, task in enumerate(skewed.tasks)}
    found = cp.agreement(skewed, by=group, draws=20)
    frame = skewed.to_frame()
    for name in "ab":
        alone = cp.Annotations.from_frame(frame[frame["task"].map(group) == name], classes=list(skewed.classes))
        expected = cp.agreement(alone, draws=20).table["estimate"]
        np.testing.assert_allclose(found.by_group.loc[name, "estimate"], expected.loc[found.by_group.loc[name].index])
    with pytest.raises(cp.AnnotationError, match="nowhere"):
        cp.agreement(skewed, by={"nowhere": 1})


def test_what_says_no_group_of_each_task_is_refused_with_what_is_there_without_it(skewed):
    with pytest.raises(TypeError, match=r"by='worker'.*by_worker"):
        cp.agreement(skewed, by="worker")


def test_tasks_of_no_or_a_missing_group_are_in_no_group(skewed):
    group = dict.fromkeys(range(200), "first")
    alone = cp.agreement(skewed, by=group, draws=2).by_group
    for missing in (None, float("nan"), pd.NA):
        pd.testing.assert_frame_equal(
            cp.agreement(skewed, by=group | dict.fromkeys(range(200, 300), missing), draws=2).by_group, alone
        )


def test_groups_of_strange_tasks_are_refused_with_the_mend(skewed):
    named = cp.Annotations.from_frame(
        pd.DataFrame({"task": ["a", "a"], "worker": ["x", "y"], "question": "tone", "label": [1, 2]}),
        question="question",
    )
    with pytest.raises(cp.AnnotationError, match=r"'a'.*pairs of a task and a question, such as \('a', 'tone'\)"):
        cp.agreement(named, by={"a": 1})
    with pytest.raises(cp.AnnotationError, match="task 0, which has no annotations"):
        cp.agreement(named.of_question("tone"), by={0: 1})
    with pytest.raises(cp.AnnotationError, match="task 3 in two groups, 'one' and 'other'"):
        cp.agreement(skewed, by=pd.Series(["one", "other"], index=[3, 3]))


def test_questions_are_groups_of_their_own_by_default(skewed):
    frame = skewed.to_frame()
    several = pd.concat([frame.assign(question="one"), frame.iloc[:500].assign(question="two")])
    found = cp.agreement(cp.Annotations.from_frame(several, question="question", ordered=False), draws=5).by_group
    expected = cp.agreement(skewed, draws=5).table["estimate"]
    assert list(found.index.unique("group")) == ["one", "two"]
    np.testing.assert_allclose(found.loc["one", "estimate"], expected.loc[found.loc["one"].index])


@pytest.fixture(scope="module")
def noise():
    """Three questions of the same classes with other shares, which four workers answer whatever the task."""
    rng, rows = np.random.default_rng(0), []
    for name, share in (("rare", 0.05), ("even", 0.5), ("usual", 0.95)):
        rows += [(f"t{i}", f"w{j}", name, int(rng.random() < share)) for i in range(200) for j in range(4)]
    return pd.DataFrame(rows, columns=["task", "worker", "question", "label"])


def test_shares_that_differ_from_question_to_question_are_no_agreement(noise):
    annotations = cp.Annotations.from_frame(noise, question="question")
    found = cp.agreement(annotations, draws=100)
    pooled = krippendorff.alpha(value_counts=annotations.votes(), level_of_measurement="nominal")
    assert pooled > 0.5
    # 600 tasks with six pairs each: alpha of noise has a standard deviation of about 1 / sqrt(3600), less than .02.
    for name in ("alpha", "fleiss_kappa", "cohen_kappa"):
        assert abs(found.table.loc[name, "estimate"]) < 0.05
    assert annotations.krippendorff_alpha() == pytest.approx(found.table.loc["alpha", "estimate"])
    for name, own in noise.groupby("question"):
        matrix = own.pivot(index="worker", columns="task", values="label").to_numpy(float)
        expected = krippendorff.alpha(matrix, level_of_measurement="nominal")
        assert found.by_group.loc[(name, "alpha"), "estimate"] == pytest.approx(expected, abs=1e-6)
    assert "means over the questions" in str(found)


def test_a_fit_says_of_each_question_what_it_says_of_it_alone(noise):
    rng = np.random.default_rng(1)
    truth = {(task, name): rng.random() < 0.05 for task in noise["task"].unique() for name in ("rare", "even")}
    table = noise[noise["question"] != "usual"].copy()
    right = rng.random(len(table)) < 0.95
    units = zip(table["task"], table["question"], strict=True)
    table["label"] = [int(truth[unit] == ok) for unit, ok in zip(units, right, strict=True)]
    annotations = cp.Annotations.from_frame(table, question="question")
    fit = cp.fit("one_coin", annotations, progress=False)
    found = cp.agreement(annotations, fit, draws=20)
    kappa = found.table.loc["fleiss_kappa"]
    assert found.misleads
    assert kappa["even_classes"] == pytest.approx(0.81, abs=0.12)  # (.905 − .5) / .5 of workers right in 95 %
    assert kappa["expected_low"] - 0.1 < kappa["estimate"] < kappa["expected_high"] + 0.1
    assert "· 0'" in str(found)


def test_without_names_there_are_figures_of_the_crowd_and_its_classes_alone(skewed):
    named, unnamed = cp.agreement(skewed, draws=20), cp.agreement(skewed.without_workers(), draws=20)
    rest = ["observed", "alpha", "fleiss_kappa", "gwet_ac"]
    pd.testing.assert_frame_equal(unnamed.table.loc[rest], named.table.loc[rest])
    assert unnamed.by_worker.empty
    assert unnamed.pairs.empty
    assert np.isnan(unnamed.table.loc["cohen_kappa", "estimate"])


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"metric": "cubic"}, cp.UnknownNameError, "cubic"),
        ({"draws": 0}, ValueError, "draws=0"),
        ({"interval": 2}, ValueError, "2"),
    ],
)
def test_what_it_cannot_use_is_refused_by_name(skewed, options, error, said):
    with pytest.raises(error, match=said):
        cp.agreement(skewed, **options)


def test_the_mean_of_kappas_of_pairs_with_few_common_tasks_has_an_interval_that_holds():
    workers = {"ability": np.tile([0.3, 0.7], (12, 1)), "prevalence": np.full(4, 0.25)}
    sizes = {"n_tasks": 300, "n_workers": 12, "n_classes": 4, "annotations_per_task": 4}  # pairs share 27 tasks
    by_chance = 0.25
    kappa = (0.7**2 + 0.3**2 / 3 - by_chance) / (1 - by_chance)
    held = []
    for seed in range(20):
        crowd, _ = cp.simulate("one_coin", parameters=workers, seed=seed, **sizes)
        low, high = cp.agreement(crowd, draws=60, seed=seed).table.loc["cohen_kappa", ["low", "high"]]
        held.append(low <= kappa <= high)
    assert np.mean(held) >= 0.8  # quantiles hold it in 13 of 20


def test_annotations_of_one_class_have_agreement_and_no_coefficient_beyond_chance():
    annotations = cp.Annotations.from_matrix(np.ones((20, 3), int), missing=0, classes=[1, 2])
    found = cp.agreement(annotations, draws=5)
    assert found.table.loc["observed", ["estimate", "low", "high"]].tolist() == [1, 1, 1]
    assert found.table.loc[["alpha", "fleiss_kappa", "cohen_kappa"], "estimate"].isna().all()
    assert found.by_class.loc[2, ["specific", "alpha"]].isna().all()
    assert "nan" not in str(found)


def test_tasks_with_one_annotation_each_have_no_agreement():
    with pytest.raises(cp.AnnotationError, match="no task has two annotations"):
        cp.agreement(cp.Annotations.from_dict({"a": {"x": 0}, "b": {"y": 1}}))


def test_the_command_prints_and_writes_what_python_gives(tmp_path):
    out = tmp_path / "agreement.csv"
    done = crowdppl("agreement", "anesthesia", "--metric", "ordinal", "--out", out)
    assert done.exit_code == 0, done.output
    expected = cp.agreement(cp.load_dataset("anesthesia"), metric="ordinal")
    assert f"{expected.table.loc['alpha', 'estimate']:.3f}" in done.stdout
    written = pd.read_csv(out)
    np.testing.assert_allclose(written["estimate"], expected.to_frame()["estimate"])


def test_the_command_takes_the_order_of_the_classes_and_the_mass_of_intervals(tmp_path):
    table = crowd(STORED[1]["matrix"]).to_frame()
    table["label"] = table["label"].map({1: "bad", 2: "poor", 3: "fair", 4: "good"})
    table.to_csv(tmp_path / "scores.csv", index=False)
    order = ["bad", "poor", "fair", "good"]
    options = ["--ordered", "--classes", ",".join(order), "--interval", "0.5", "--out", tmp_path / "out.csv"]
    done = crowdppl("agreement", tmp_path / "scores.csv", *options)
    assert done.exit_code == 0, done.output
    expected = cp.agreement(cp.Annotations.from_frame(table, ordered=order), interval=0.5)
    assert expected.metric == "interval"
    np.testing.assert_allclose(pd.read_csv(tmp_path / "out.csv")["high"], expected.to_frame()["high"])
    assert "50% interval" in done.stdout


@pytest.mark.parametrize(
    ("labels", "options", "said"),
    [
        ([1, 1, 1, 1], [], "1"),
        ([1, 2, 1, 2], ["--interval", "1.5"], "interval=1.5"),
        (["a", "b", "a", "b"], ["--ordered"], "have no order of their own"),
    ],
    ids=["one class", "interval", "no order"],
)
def test_the_command_refuses_what_it_cannot_measure(tmp_path, labels, options, said):
    table = pd.DataFrame({"task": [0, 0, 1, 1], "worker": ["x", "y"] * 2, "label": labels})
    table.to_csv(tmp_path / "scores.csv", index=False)
    done = crowdppl("agreement", tmp_path / "scores.csv", *options)
    assert done.exit_code == 2
    assert said in " ".join(done.output.split())


def test_agreement_takes_what_a_fit_takes(tmp_path):
    annotations = cp.load_dataset("anesthesia")
    frame, path = annotations.to_frame(), tmp_path / "ratings.csv"
    frame.to_csv(path, index=False)
    for given in (frame, path, str(path)):
        table = cp.agreement(given, metric="nominal", draws=20).table
        pd.testing.assert_frame_equal(table, cp.agreement(annotations, metric="nominal", draws=20).table)
    with pytest.raises(TypeError, match="got a int"):
        cp.agreement(3)


@pytest.mark.parametrize("asked", [["w0", "w2", "w3"], ("w3", "w0", "w2"), pd.Index(["w2", "w3", "w0"])])
def test_of_some_workers_it_is_what_annotations_of_them_alone_have(asked):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.integers(0, 3, (80, 5)), columns=[f"w{j}" for j in range(5)]).rename_axis("task")
    table["w2"] = np.where(rng.random(80) < 0.6, table["w0"], table["w2"])
    found = cp.agreement(cp.Annotations.from_matrix(table), workers=asked, draws=20)
    alone = cp.agreement(cp.Annotations.from_matrix(table[["w0", "w2", "w3"]]), draws=20)
    for name in ("table", "by_class", "by_worker", "pairs"):
        pd.testing.assert_frame_equal(getattr(found, name), getattr(alone, name))


def test_of_some_workers_a_fit_says_what_its_story_expects_of_them(skewed):
    fit = cp.fit("one_coin", skewed.without_gold(), progress=False)
    annotations = fit.annotations
    every = list(annotations.workers)
    pd.testing.assert_frame_equal(
        cp.agreement(annotations, fit, workers=every, draws=20).table, cp.agreement(annotations, fit, draws=20).table
    )
    found = cp.agreement(annotations, fit, workers=every[:3], draws=20)
    assert found.n_effective is None
    # replicates of three workers scatter more than those of five do
    table = cp.agreement(annotations, fit, draws=20).table
    wide, narrow = (one["expected_high"] - one["expected_low"] for one in (found.table, table))
    assert wide["alpha"] > narrow["alpha"]
    assert found.table.loc["alpha", "expected"] == pytest.approx(table.loc["alpha", "expected"], abs=0.1)


def test_workers_of_several_questions_and_of_numbers_are_found_by_name_and_others_refused(tmp_path):
    rows = [(i, w, q, (i + w + len(q)) % 2) for i in range(20) for w in (7, 8, 9) for q in ("safe", "helpful")]
    table = pd.DataFrame(rows, columns=["task", "worker", "question", "label"])
    annotations = cp.Annotations.from_frame(table, question="question")
    for one in (annotations, annotations.by_question()):
        assert list(cp.agreement(one, workers=[7, "9"], draws=2).pairs.index) == [(7, 9)]
    with pytest.raises(cp.UnknownNameError, match="unknown worker 'anne'; did you mean 'ann'"):
        cp.agreement({"t1": {"ann": "x", "bob": "y"}, "t2": {"ann": "x", "bob": "x"}}, workers=["anne", "bob"])
    with pytest.raises(cp.AnnotationError, match="agreement is of two workers or more"):
        cp.agreement(annotations, workers=[7])
    with pytest.raises(TypeError, match="a list of names is needed"):
        cp.agreement(annotations, workers="7,8")
    path = tmp_path / "a.csv"
    table.to_csv(path, index=False)
    done = crowdppl("agreement", path, "--workers", "9,7", "--out", tmp_path / "out.csv")
    assert done.exit_code == 0, done.output
    written = pd.read_csv(tmp_path / "out.csv")
    assert set(written.loc[written["of"] == "worker", "name"]) == {"7", "9"}
    refused = crowdppl("agreement", path, "--workers", "7,10")
    assert refused.exit_code == 2
    assert "unknown worker" in refused.output
