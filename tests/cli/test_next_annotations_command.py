"""crowdppl next-annotations and next-comparisons: what they print and write, and what they refuse."""

import pandas as pd
import pytest
from command_line import crowdppl, refused

import crowdppl as cp

ROWS = [(*pair, worker) for pair in ("ab", "bc", "cd", "ad") for worker in (7, 8, 9)]
PAIRS = pd.DataFrame(ROWS, columns=["left", "right", "worker"]).assign(label=["left", "left", "right"] * 4)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("next")
    annotations, _ = cp.simulate(
        "one_coin", n_tasks=30, n_workers=6, annotations_per_task=3, right=9.0, wrong=1.0, seed=0
    )
    cp.fit("one_coin", annotations.without_gold(), progress=False).save(folder / "fit")
    PAIRS.to_csv(folder / "pairs.csv", index=False)
    annotations = cp.read(folder / "pairs.csv", tell=False)
    cp.fit("one_coin", annotations, seed=0, progress=False).save(folder / "pairs")
    return folder


def test_annotations_are_those_of_python_and_written_to_be_filled_in(saved, tmp_path):
    out = tmp_path / "asked.csv"
    options = ("--ask", 1, "--ask", 4, "--per-task", 2, "--most-per-worker", 4, "--out", out)
    done = crowdppl("next-annotations", saved / "fit", "-n", 6, *options)
    assert done.exit_code == 0, done.output
    fit = cp.load_fit(saved / "fit")
    expected = cp.next_annotations(fit, 6, workers=[1, 4], repeats=2, most_per_worker=4)
    written = pd.read_csv(out)
    assert written.columns.tolist() == ["task", "worker", "label", "expected_gain", "entropy", "annotations"]
    pd.testing.assert_frame_equal(written[expected.columns], expected, check_dtype=False)
    assert done.stdout.count("\n") > len(expected)
    both = pd.concat([fit.annotations.to_frame(), written.assign(label=1)])
    assert cp.Annotations.from_frame(both).n_rows == fit.annotations.n_rows + 6


def test_any_worker_may_be_asked_and_a_typical_one_has_an_empty_column(saved, tmp_path):
    fit = cp.load_fit(saved / "fit")
    for name, options, workers in (("all", ["--ask-all"], range(6)), ("typical", [], None)):
        out = tmp_path / f"{name}.csv"
        done = crowdppl("next-annotations", saved / "fit", "-n", 5, *options, "-o", out)
        assert done.exit_code == 0, done.output
        written, expected = pd.read_csv(out), cp.next_annotations(fit, 5, workers=workers)
        pd.testing.assert_frame_equal(written[expected.columns], expected, check_dtype=False)
        assert written["worker"].isna().all() == (workers is None)


def test_comparisons_are_those_of_python_of_a_saved_fit_and_of_a_file(saved, tmp_path):
    expected = cp.next_comparisons(cp.load_fit(saved / "pairs"), 3, workers=[7, 9], seed=5)
    for name, options in ((saved / "pairs", ()), (saved / "pairs.csv", ("--story", "one_coin"))):
        out = tmp_path / f"{name.name}.asked.csv"
        done = crowdppl("next-comparisons", name, "-n", 3, "--ask", 7, "--ask", 9, "--seed", 5, "-o", out, *options)
        assert done.exit_code == 0, done.output
        written = pd.read_csv(out)
        assert written.columns.tolist()[:4] == ["left", "right", "worker", "label"]
        if not options:
            pd.testing.assert_frame_equal(written[expected.columns], expected, check_dtype=False)
    both = pd.concat([PAIRS, written.assign(label="left")])
    assert cp.Annotations.from_comparisons(both).n_rows == len(PAIRS) + 3


def test_annotations_of_comparisons_are_asked_with_their_items(saved, tmp_path):
    out = tmp_path / "asked.csv"
    done = crowdppl("next-annotations", saved / "pairs", "-n", 2, "-o", out)
    assert done.exit_code == 0, done.output
    written, pairs = pd.read_csv(out), cp.load_fit(saved / "pairs").annotations.pairs
    assert written.columns.tolist()[:5] == ["task", "left", "right", "worker", "label"]
    known = {f"{left} · {right}": [left, right] for left, right in pairs.to_numpy()}
    assert written[["left", "right"]].to_numpy().tolist() == [known[task] for task in written["task"]]
    done = crowdppl("next-annotations", saved / "pairs", "--ask-all")
    assert "has annotated every task" in done.stdout


def test_what_they_cannot_use_is_refused_with_what_would_do(saved, tmp_path):
    fit, pairs = saved / "fit", saved / "pairs"
    assert "unknown worker of --ask '6'. There are: 0, 1, 2, 3, 4" in refused("next-annotations", fit, "--ask", 6)
    assert "give --ask WORKER or --ask-all" in refused("next-annotations", fit, "--most-per-worker", 2)
    assert "leave it out, or --ask" in refused("next-comparisons", pairs, "--ask", 7, "--ask-all")
    assert "must end in .csv" in refused("next-comparisons", pairs, "--out", tmp_path / "asked.txt")
    assert "have no items to rank" in refused("next-comparisons", fit)
    assert str(tmp_path / "none.csv") in refused("next-annotations", tmp_path / "none.csv")
    pd.DataFrame({"yes": [2, 3, 1], "no": [1, 0, 2]}, [f"t{i}" for i in range(3)]).to_csv(tmp_path / "counts.csv")
    options = ("--columns", "classes", "--story", "annotator_groups", "--ask", "yes")
    assert "name no workers" in refused("next-annotations", tmp_path / "counts.csv", *options)


@pytest.mark.parametrize("command", ["next-annotations", "next-comparisons", "next-gold", "judge"])
def test_options_of_a_new_fit_are_refused_beside_a_saved_one(saved, command):
    assert "leave out --story, or give the annotations" in refused(command, saved / "fit", "--story", "auto")
    assert "leave out --label, or give the annotations" in refused(command, saved / "fit", "--label", "mark")


def test_columns_are_refused_beside_a_saved_fit_whose_agreement_is_asked(saved):
    assert "leave out --task, or give the annotations" in refused("agreement", saved / "fit", "--task", "item")


@pytest.mark.parametrize("command", ["next-annotations", "next-gold", "judge"])
def test_a_fit_that_names_tasks_reads_the_models_probabilities(saved, tmp_path, command):
    cp.load_fit(saved / "fit").annotations.to_frame().to_csv(tmp_path / "marks.csv", index=False)
    (tmp_path / "gpt.csv").write_text("task,perhaps\n0,1\n")
    options = ("--story", "one_coin", "--probabilities", tmp_path / "gpt.csv")
    assert "'perhaps' is no class" in refused(command, tmp_path / "marks.csv", *options)


def test_a_panel_is_not_told_the_gold_labels(saved, tmp_path):
    cp.load_fit(saved / "fit").annotations.to_frame().to_csv(tmp_path / "marks.csv", index=False)
    pd.DataFrame({"task": [0, 1], "label": [0, 1]}).to_csv(tmp_path / "gold.csv", index=False)
    assert "--use-gold" in refused("judge", tmp_path / "marks.csv", "--gold", tmp_path / "gold.csv", "--use-gold")


@pytest.mark.parametrize("width", [50, 200])
def test_all_figures_of_agreement_are_printed_however_narrow_the_terminal_is(saved, width):
    done = crowdppl("agreement", saved / "fit", width=width)
    assert done.exit_code == 0, done.output
    printed = set(done.stdout.split())
    found = cp.agreement(cp.load_fit(saved / "fit").annotations)
    assert {f"{value:.3f}" for value in found.by_class["alpha"]} <= printed
    assert {f"{value:.3f}" for value in found.by_worker["kappa"]} <= printed


@pytest.mark.parametrize(
    "command",
    ["next-gold", "next-annotations", "next-comparisons", "agreement", "estimate"],
)
def test_a_file_that_was_filled_in_is_replaced_only_on_request(saved, tmp_path, command):
    """Twenty labels filled in by hand were lost when the same command was given again."""
    fit = saved / ("pairs" if command == "next-comparisons" else "fit")
    out, filled = tmp_path / "asked.csv", "task,label\n0,1\n1,0\n2,1\n"
    out.write_text(filled)
    given = (command, fit, *[out] * (command == "estimate"), "--out", out)
    assert "name a new file, or give --overwrite" in refused(*given)
    assert out.read_text() == filled
    done = crowdppl(*given, "--overwrite")
    assert done.exit_code == 0, done.output
    assert out.read_text() != filled


@pytest.mark.parametrize("command", ["next-gold", "next-annotations", "next-comparisons"])
def test_a_quiet_command_writes_its_table_and_prints_none(saved, tmp_path, command):
    fit = saved / ("pairs" if command == "next-comparisons" else "fit")
    done = crowdppl(command, fit, "-n", 2, "--out", tmp_path / "asked.csv", "--quiet")
    assert (done.exit_code, done.output) == (0, "")
    assert len(pd.read_csv(tmp_path / "asked.csv")) == 2
