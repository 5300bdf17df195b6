"""What every experiment of a paper keeps: runs that are kept, honest verdicts, a page."""

import json
import os
import warnings
from dataclasses import replace

import pandas as pd
import pytest
from matplotlib.figure import Figure
from typer.testing import CliRunner

import crowdppl as cp
from crowdppl.benchmarks.papers import __main__ as papers_command
from crowdppl.benchmarks.papers import experiments
from crowdppl.benchmarks.papers.experiment import Claim, Experiment, Finding, above, mean_sd
from crowdppl.benchmarks.papers.kept_cells import cell_frame, run_cells
from crowdppl.data.errors import StorageError, UnknownNameError

STORE = "coin.jsonl"


def coin(ran=None):
    """Two methods of which the first is better by one, and a measure that grows with the seed."""

    def run(seed, method):
        if ran is not None:
            ran.append((seed, method))
        return {"accuracy": 80 + seed + (method == "first")}

    def tables(frame):
        return {"Accuracy": frame.groupby("method")["accuracy"].agg(mean_sd).to_frame("ours").assign(paper=[1, 2])}

    def figures(frame):
        figure = Figure()
        figure.subplots().plot(frame["accuracy"])
        return {"figure_1": figure}

    def better(frame):
        return above(frame, "accuracy", {"method": "first"}, {"method": "second"})

    def cells(seeds):
        return [{"method": method, "seed": seed} for seed in range(seeds) for method in ("first", "second")]

    claims = (Claim("The first is better.", "table 1", "1 against 2", better),)
    return Experiment("coin", "Two methods.", "Nobody 2026", cells, run, tables, figures, claims)


def test_runs_are_kept_and_are_not_run_again(tmp_path):
    ran = []
    assert run_cells(coin(ran), tmp_path / STORE, 2, show=False) == 4
    assert run_cells(coin(ran), tmp_path / STORE, 3, show=False) == 2
    assert len(ran) == len(set(ran)) == 6
    frame = cell_frame(coin(), tmp_path / STORE, 3)
    assert list(frame.columns) == ["method", "seed", "accuracy", "warnings"]
    assert frame["accuracy"].tolist() == [81, 80, 82, 81, 83, 82]


def test_what_was_done_before_a_failure_is_kept(tmp_path):
    def fails_once(seed, method):
        if seed == 1:
            raise FloatingPointError("no")
        return {"accuracy": 1}

    broken = Experiment("coin", "", "", coin().cells, fails_once, coin().tables, coin().figures, ())
    with pytest.raises(FloatingPointError):
        run_cells(broken, tmp_path / STORE, 2, show=False)
    assert run_cells(coin(), tmp_path / STORE, 2, show=False) == 2


@pytest.mark.parametrize("warned", [False, True])
def test_ctrl_c_says_how_to_go_on_and_a_run_that_it_cut_short_is_not_kept(tmp_path, warned):
    """NUTS gives the draws so far with a warning, which are no run of the experiment."""
    done = []

    def stops(**cell):
        done.append(1)
        if len(done) == 2:
            if not warned:
                raise KeyboardInterrupt
            warning = cp.Finding("interrupted", "draws", "warning", "these are 3 draws").warning
            warnings.warn_explicit(warning, cp.ConvergenceWarning, "x", 1, module="crowdppl")
        return coin().run(**cell)

    stopped = Experiment("coin", "", "", coin().cells, stops, coin().tables, coin().figures, ())
    with pytest.raises(KeyboardInterrupt, match=r"goes on from .*coin\.jsonl"):
        run_cells(stopped, tmp_path / STORE, 2, show=False)
    assert run_cells(coin(), tmp_path / STORE, 2, show=False) == 3


def test_a_line_that_was_cut_off_is_run_again_and_a_damaged_one_is_named(tmp_path):
    run_cells(coin(), tmp_path / STORE, 2, show=False)
    path = tmp_path / STORE
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:3]) + lines[3][:10])
    assert run_cells(coin(), tmp_path / STORE, 2, show=False) == 1
    path.write_text("nonsense\n" + "".join(lines))
    with pytest.raises(StorageError, match="line 1 is no cell"):
        run_cells(coin(), tmp_path / STORE, 2, show=False)


def test_runs_of_another_version_are_run_again(tmp_path):
    run_cells(coin(), tmp_path / STORE, 1, show=False)
    path = tmp_path / STORE
    old = [json.loads(line) | {"version": "0.0.1"} for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(line) + "\n" for line in old))
    assert run_cells(coin(), tmp_path / STORE, 1, show=False) == 2


def of_other_sources(path, n_changed, n_unknown):
    """Write the runs of a file as if some were of other sources, and some of before digests were kept."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines[:n_changed]:
        line["sources"]["models"] = "00000000"
    for line in lines[n_changed : n_changed + n_unknown]:
        del line["sources"]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_runs_of_other_sources_are_run_again_where_that_is_asked(tmp_path):
    path = tmp_path / STORE
    run_cells(coin(), path, 2, show=False)
    of_other_sources(path, 1, 1)
    assert run_cells(coin(), path, 2, show=False) == 0
    assert run_cells(coin(), path, 2, show=False, stale=True) == 2
    assert run_cells(coin(), path, 2, show=False, stale=True) == 0


def test_the_command_says_how_many_runs_are_of_other_sources(tmp_path, monkeypatch):
    monkeypatch.setattr("crowdppl.benchmarks.papers.__main__.experiment", lambda name: coin())
    run_cells(coin(), tmp_path / STORE, 2, show=False)
    of_other_sources(tmp_path / STORE, 2, 1)
    said = "2 of 4 runs are of other sources than today's: models (2); of 1 no digests were kept"
    stored = "coin", "--seeds", 2, "--out", tmp_path, "--stored"
    assert command(*stored, "--stale").output == f"coin: {said}\n"
    assert said in words(command(*stored))
    assert command(*stored[:-1], "--stale").exit_code == 0
    assert command(*stored, "--stale").output == "coin: 0 of 4 runs are of other sources than today's\n"
    refused = command("--stale")
    assert refused.exit_code == 2
    assert "--stale are of experiments" in words(refused)


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        ([3, 4, 5], [1, 2, 3], "holds"),
        ([1, 2, 3], [3, 4, 5], "fails"),
        ([1, 5, 3], [2, 3, 3], "fails"),
        ([3], [1], "not tested: two seeds are needed to tell"),
        ([], [], "not tested: the cells have not been run"),
    ],
)
def test_a_comparison_holds_beyond_twice_its_standard_error(first, second, verdict):
    rows = [("a", i, value) for i, value in enumerate(first)] + [("b", i, value) for i, value in enumerate(second)]
    frame = pd.DataFrame(rows, columns=["method", "seed", "accuracy"])
    assert above(frame, "accuracy", {"method": "a"}, {"method": "b"}).verdict == verdict
    assert above(pd.DataFrame(), "accuracy", {"method": "a"}, {"method": "b"}).verdict.startswith("not tested")


def test_less_is_judged_in_the_direction_of_the_claim():
    frame = pd.DataFrame({"method": list("aaabbb"), "seed": [0, 1, 2] * 2, "error": [1.0, 2, 3, 4, 5, 6.5]})
    finding = above(frame, "error", {"method": "a"}, {"method": "b"}, less=True)
    assert finding == Finding("2.0 ± 1.0 against 5.2 ± 1.3; difference -3.2 ± 0.3, n = 3", "holds")
    assert above(frame, "error", {"method": "b"}, {"method": "a"}, less=True).verdict == "fails"


def test_a_verdict_is_one_of_five():
    Finding("", "holds if the prior is flat")
    Finding("", "reproduced")
    with pytest.raises(ValueError, match="verdict='perhaps'"):
        Finding("", "perhaps")


def test_figures_of_seeds_have_their_deviation():
    assert mean_sd([1.0, 2.0, 3.0]) == "2.0 ± 1.0"
    assert (mean_sd([2.0], 2), mean_sd([float("nan")])) == ("2.00", "–")


def words(result):
    """What a command printed, whatever the width that it was wrapped to: also in the frame of an error."""
    return " ".join(result.output.replace("│", " ").split())


def command(*arguments, env=None):
    return CliRunner().invoke(papers_command.app, list(map(str, arguments)), env=env)


def test_the_command_runs_shows_and_writes(tmp_path, monkeypatch):
    monkeypatch.setattr("crowdppl.benchmarks.papers.__main__.experiment", lambda name: coin())
    done = command("coin", "--seeds", 2, "--out", tmp_path, "--page", tmp_path / "page.md")
    assert done.exit_code == 0, done.output
    assert "The first is better." in done.output
    assert "holds" in done.output
    assert sorted(os.listdir(tmp_path / "coin")) == [
        "claims.csv",
        "figure_1.png",
        "rows.csv",
        "table_1.csv",
    ]
    assert (tmp_path / STORE).exists()
    assert (tmp_path / "page.md").exists()
    assert command("coin", "--seeds", 2, "--out", tmp_path, "--stored").output == done.output.partition("\nThe page")[0]


def test_what_cannot_be_run_says_so(tmp_path):
    wrong = command("dascc")
    assert wrong.exit_code == 2
    assert "dasc" in wrong.output
    needs = Experiment("x", "", "", coin().cells, coin().run, coin().tables, coin().figures, (), needs=("labelme",))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("crowdppl.benchmarks.papers.__main__.experiment", lambda name: needs)
        patch.delenv("CROWDPPL_DATA", raising=False)
        lacking = command("x", "--out", tmp_path)
        assert lacking.exit_code == 2
        assert "needs the dataset labelme" in words(lacking)
        everything = command("all", "--out", tmp_path)
        assert "x is left out" in words(everything)
        patch.setattr("crowdppl.benchmarks.papers.__main__.experiment", lambda name: coin())
        empty = command("coin", "--stored", "--out", tmp_path)
        assert empty.exit_code == 2
        assert "holds no runs" in words(empty)


def test_what_is_stored_of_all_is_shown_where_some_have_no_runs_and_needs_no_data(tmp_path, monkeypatch):
    def named(name):
        return replace(coin(), name=name, needs=("labelme",))

    monkeypatch.setattr("crowdppl.benchmarks.papers.__main__.experiment", named)
    monkeypatch.delenv("CROWDPPL_DATA", raising=False)
    nothing = command("all", "--stored", "--out", tmp_path)
    assert nothing.exit_code == 2
    assert "no runs of any experiment" in words(nothing)
    run_cells(named("dasc"), tmp_path / "dasc.jsonl", 2, show=False)
    some = command("all", "--stored", "--seeds", 2, "--out", tmp_path, "--page", tmp_path / "page.md")
    assert some.exit_code == 0
    assert "lecture is left out" in words(some)
    assert "The first is better." in some.output
    assert "## dasc\n" in (tmp_path / "page.md").read_text()


def test_an_unknown_experiment_is_refused():
    with pytest.raises(UnknownNameError):
        experiments.experiment("dascc")
