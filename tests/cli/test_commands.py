"""The command line: what it writes, what it prints, and what it refuses."""

import json
import os
import re
import shlex
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import crowdppl, refused
from netcdf import load_netcdf
from picked_findings import findings_of
from typer.testing import CliRunner

import crowdppl as cp
from crowdppl.benchmarks.support.crowd_shapes import copies
from crowdppl.cli import commands as cli
from crowdppl.cli import demo
from crowdppl.cli.arguments import read_annotations
from crowdppl.cli.request import Request
from crowdppl.inference.storage import folder as storage
from crowdppl.inference.storage.arviz_groups import group

FILES = {"labels.csv", "workers.csv", "posterior.nc", "manifest.json"}
UNICODE = """task,worker,label
naïve,Ωμέγα,猫
naïve,b,猫
naïve,"c, d",犬
🦊,Ωμέγα,犬
🦊,b,犬
🦊,"c, d",犬
007,b,猫
007,Ωμέγα,犬
"""


@pytest.fixture
def crowd(tmp_path):
    path = tmp_path / "crowd.csv"
    path.write_text(UNICODE, encoding="utf-8")
    return path


@pytest.fixture
def out(tmp_path):
    return tmp_path / "results"


def only(folder, *names):
    """Assert that a folder holds files of these names and no others, hidden ones included."""
    assert sorted(os.listdir(folder)) == sorted(names)


def test_fit_writes_the_same_results_as_python_with_the_same_seed(crowd, out):
    done = crowdppl(
        "fit", crowd, "--method", "svi", "--seed", 7, "--set", "draws=50", "--set", "diagonal=3", "--plot", "--out", out
    )
    assert done.exit_code == 0, done.output
    only(out, *FILES, "workers.png")
    annotations = cp.Annotations.from_csv(crowd)
    fit = cp.fit("dawid_skene", annotations, method="svi", seed=7, draws=50, diagonal=3, progress=False)
    labels = pd.read_csv(out / "labels.csv", dtype={"task": str}).set_index("task")
    assert labels.index.tolist() == ["naïve", "🦊", "007"]
    assert labels.columns.tolist() == ["label", "probability", "entropy", "p_犬", "p_猫"]
    assert labels["label"].tolist() == fit.labels["label"].tolist()
    np.testing.assert_allclose(labels[["p_犬", "p_猫"]], fit.probabilities, rtol=1e-5)  # float32, as text
    workers = pd.read_csv(out / "workers.csv", index_col="worker")
    assert workers.index.tolist() == ["Ωμέγα", "b", "c, d"]
    np.testing.assert_allclose(workers["accuracy_low"], fit.workers["accuracy_low"], rtol=1e-5)
    posterior = group(load_netcdf(out / "posterior.nc"), "posterior")
    np.testing.assert_allclose(posterior["confusion"], fit.outcome.draws["confusion"])
    assert (out / "workers.png").read_bytes().startswith(b"\x89PNG")


def test_fit_prints_the_summary_and_where_the_files_are(crowd, out):
    done = crowdppl("fit", crowd, "--story", "one_coin", "--out", out)
    assert "one_coin fitted by EM" in done.stdout
    assert "3 tasks, 3 workers, 2 classes, 8 annotations" in done.stdout
    assert all(str(out / name) in done.stdout for name in FILES)
    assert done.stderr == ""


def test_fit_prints_the_prior_as_numbers_and_warns_where_it_outweighs_the_annotations(crowd, out):
    """Two rows of 4 + 1 pseudo-annotations; workers gave three at the most."""
    done = crowdppl("fit", crowd, "--set", "diagonal=4", "--set", "off_diagonal=1", "--out", out)
    assert "10 pseudo-annotations a worker, expected accuracy 0.80" in done.stdout
    assert "Warning: the prior outweighs the annotations of 3 of 3 workers" in done.stderr
    assert "diagonal=None" not in done.stdout


@pytest.mark.parametrize("method", ["em", "svi"])
def test_python_loads_the_folder_of_a_fit_and_its_posterior_has_the_log_likelihood(crowd, out, method):
    done = crowdppl("fit", crowd, "--method", method, "--set", "max_iterations=50", "--set", "diagonal=3", "--out", out)
    assert done.exit_code == 0, done.output
    loaded = cp.load_fit(out)
    assert (loaded.story, loaded.method, loaded.settings["max_iterations"]) == ("dawid_skene", method, 50)
    labels = pd.read_csv(out / "labels.csv", dtype={"task": str}).set_index("task")
    assert loaded.labels["label"].tolist() == labels["label"].tolist()
    np.testing.assert_allclose(loaded.labels["probability"], labels["probability"], rtol=1e-5)
    likelihood = group(load_netcdf(out / "posterior.nc"), "log_likelihood")["majority_share"]
    expected = group(loaded.to_idata(uncertainty=False), "log_likelihood")["majority_share"]
    assert likelihood.sizes["task"] == loaded.annotations.n_tasks
    np.testing.assert_allclose(likelihood, expected, rtol=1e-5)


def test_annotations_without_workers_need_no_column_of_workers(tmp_path, out):
    path = tmp_path / "crowd.csv"
    path.write_text("task,label\n" + "".join(f"{t},{(t + i % 3 // 2) % 2}\n" for t in range(8) for i in range(6)))
    model = ("--story", "annotator_groups", "--set", "membership=answer", "--no-worker")
    done = crowdppl("fit", path, *model, "--out", out)
    assert done.exit_code == 0, done.output
    only(out, "labels.csv", "posterior.nc", "manifest.json")
    assert all((str(out / name) in done.stdout) == (name in os.listdir(out)) for name in FILES)


def test_annotations_that_are_left_out_are_warned_about(crowd, out):
    crowd.write_text(UNICODE + "007,Ωμέγα,猫\n", encoding="utf-8")
    done = crowdppl("fit", crowd, "--repeats", "first", "--out", out)
    assert done.exit_code == 0, done.output
    assert "Warning: --repeats 'first' left out 1 of 9 annotations" in done.stderr


def test_ids_that_cannot_be_saved_cost_only_the_saved_fit(tmp_path, out):
    path = tmp_path / "crowd.parquet"
    tasks = [b"a", b"a", b"b", b"b"]
    pd.DataFrame({"task": tasks, "worker": list("uvuv"), "label": [0, 1, 1, 1]}).to_parquet(path)
    done = crowdppl("fit", path, "--out", out)
    assert done.exit_code == 0, done.output
    assert (
        "Warning: manifest.json is not written, so that crowdppl report and crowdppl.load_fit cannot read the folder"
        in done.stderr
    )
    only(out, *(FILES - {"manifest.json"}))


def test_a_tab_may_be_given_as_it_is_written_in_python(tmp_path, out):
    path = tmp_path / "crowd.csv"
    path.write_text("task\tworker\tlabel\n1\ta\tx\n1\tb\ty\n2\ta\ty\n2\tb\ty\n")
    assert crowdppl("fit", path, "--separator", "\\t", "--out", out).exit_code == 0


def test_a_separator_is_refused_where_the_file_has_none(tmp_path, out):
    path = tmp_path / "crowd.parquet"
    pd.DataFrame({"task": [0, 1], "worker": ["u", "u"], "label": [0, 1]}).to_parquet(path)
    assert "--separator" in refused("fit", path, "--separator", ";", "--out", out)


def test_quiet_prints_nothing_and_warnings_are_single_lines(out):
    done = crowdppl("fit", "anesthesia", "--out", out, "--quiet", "--set", "max_iterations=1")
    assert done.exit_code == 0
    assert done.stdout == ""
    assert done.stderr.startswith("Warning: EM took 1 iterations, too few to see whether it converged")
    assert done.stderr.count("\n") == 1


def test_columns_and_classes_are_those_asked_for(tmp_path, out):
    path = tmp_path / "crowd.csv"
    path.write_text("item;rater;annotation;n\n1;a;2;3\n1;b;2;1\n2;a;0;1\n2;b;0;2\n")
    columns = ("--task", "item", "--worker", "rater", "--label", "annotation", "--count", "n", "--separator", ";")
    done = crowdppl("fit", path, *columns, "--classes", "2,1,0", "--out", out)
    assert done.exit_code == 0, done.output
    labels = pd.read_csv(out / "labels.csv", index_col="task")
    assert labels.columns.tolist()[-3:] == ["p_2", "p_1", "p_0"]
    assert labels["label"].tolist() == [2, 0]
    assert pd.read_csv(out / "workers.csv", index_col="worker")["annotations"].to_dict() == {"a": 4, "b": 3}


def test_ordered_classes_are_whole_numbers_or_those_listed_and_text_alone_is_refused(tmp_path):
    path = tmp_path / "crowd.csv"
    for labels, options in (("213", ()), ("aba", ("--classes", "b,a"))):
        rows = [f"{task},{worker},{label}" for task, label in enumerate(labels) for worker in "xy"]
        path.write_text("\n".join(["task,worker,label", *rows]) + "\n")
        done = crowdppl("fit", path, "--ordered", *options, "--story", "majority_vote", "--out", tmp_path / labels)
        assert done.exit_code == 0, done.output
        assert cp.load_fit(tmp_path / labels).annotations.kind.name == "ordered"
    path.write_text("task,worker,label\n1,x,1\n2,x,2\n3,x,3\n3,y,1\n")
    for options, kind in (((), "ordered"), (("--no-ordered",), "nominal")):
        out = tmp_path / f"numbers-{kind}"
        done = crowdppl("fit", path, *options, "--story", "majority_vote", "--out", out)
        assert cp.load_fit(out).annotations.kind.name == kind
        said = " ".join(done.output.split())
        assert ("--ordered says so, and --no-ordered that they are names" in said) == (kind == "ordered")
    path.write_text("task,worker,label\n1,x,a\n2,x,b\n")
    done = crowdppl("fit", path, "--ordered", "--out", tmp_path / "refused")
    assert done.exit_code != 0
    assert "--classes A,B,C beside --ordered" in " ".join(done.output.split())


def test_gold_labels_measure_the_fit_and_are_used_in_it_only_on_request(crowd, tmp_path, out):
    gold = tmp_path / "gold.csv"
    gold.write_text("task,label\n🦊,猫\n", encoding="utf-8")
    unseen = crowdppl("fit", crowd, "--gold", gold, "--out", out)
    assert "accuracy 0.0000 (90% interval 0.0000–0.7715) on 1 gold task " in unseen.stdout
    assert "majority vote 0.0000" in unseen.stdout
    used = crowdppl("fit", crowd, "--gold", gold, "--use-gold", "--out", out, "--overwrite")
    assert "accuracy 1.0000 on 1 gold task " in used.stdout
    assert pd.read_csv(out / "labels.csv", index_col="task")["p_猫"]["🦊"] == 1


@pytest.mark.parametrize("error", [OSError("no space left"), RuntimeError("a bug")])
def test_a_failure_while_writing_leaves_no_file(crowd, out, tmp_path, monkeypatch, error):
    def fail(fit):
        assert any(name.startswith(".results.") for name in os.listdir(tmp_path))
        raise error

    monkeypatch.setattr(cp, "plot_confusions", fail)
    assert crowdppl("fit", crowd, "--plot", "--out", out).exit_code == 1
    only(tmp_path, "crowd.csv")


def test_a_failure_leaves_the_earlier_results(crowd, out, tmp_path, monkeypatch):
    crowdppl("fit", crowd, "--out", out)
    before = (out / "labels.csv").read_bytes()
    monkeypatch.setattr(storage, "write_groups", lambda *_: 1 / 0)
    assert crowdppl("fit", crowd, "--out", out, "--overwrite", "--set", "diagonal=9").exit_code == 1
    assert (out / "labels.csv").read_bytes() == before
    only(tmp_path, "crowd.csv", "results")


def test_without_out_the_results_are_in_a_folder_of_the_command(crowd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = crowdppl("fit", crowd)
    assert done.exit_code == 0, done.output
    only(tmp_path, "crowd.csv", "crowdppl-fit")
    only(tmp_path / "crowdppl-fit", *FILES)
    assert "crowdppl-fit has something in it" in " ".join(refused("fit", crowd).split())


@pytest.mark.parametrize("place", ["crowd.csv", "crowd.csv/results"])
def test_an_output_folder_that_cannot_be_made_is_refused_before_the_fit(crowd, tmp_path, monkeypatch, place):
    monkeypatch.setattr(cp, "fit", lambda *_, **__: pytest.fail("the fit has started"))
    assert str(tmp_path / place) in refused("fit", crowd, "--out", tmp_path / place)
    only(tmp_path, "crowd.csv")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_an_output_folder_without_permission_is_refused_before_the_fit(crowd, tmp_path, monkeypatch):
    monkeypatch.setattr(cp, "fit", lambda *_, **__: pytest.fail("the fit has started"))
    tmp_path.chmod(0o500)
    assert "cannot be written: Permission denied" in refused("fit", crowd, "--out", tmp_path / "results")


def test_earlier_results_are_replaced_only_on_request(crowd, out):
    crowdppl("fit", crowd, "--out", out)
    assert "has something in it" in refused("fit", crowd, "--out", out)
    other = crowdppl("fit", crowd, "--out", out, "--overwrite", "--classes", "猫,犬,鳥", "--story", "wawa")
    assert other.exit_code == 0, other.output
    assert "p_鳥" in pd.read_csv(out / "labels.csv").columns


def test_overwriting_never_deletes_what_a_fit_did_not_write(crowd, tmp_path):
    assert "'crowd.csv', which a fit did not write" in refused("fit", crowd, "--out", tmp_path, "--overwrite")
    only(tmp_path, "crowd.csv")


def bad_inputs():
    ok = "task,worker,label\n1,a,x\n1,b,y\n2,a,y\n2,b,y\n"
    return {
        "no column": (ok.replace("worker", "who"), [], ["no column 'worker'", "'who'", "--no-worker"]),
        "one column twice": (ok, ["--label", "worker"], ["column 'worker' is given for both --worker and --label"]),
        "long separator": (ok, ["--separator", ";;"], ["--separator ';;'", "a single character is needed"]),
        "both": (ok, ["--worker", "worker", "--no-worker"], ["--no-worker and --worker cannot be given together"]),
        "task": (ok, ["--task", "tsk"], ["no column 'tsk'", "Did you mean --task 'task'?"]),
        "label": (ok, ["--label", "lable"], ["no column 'lable'", "Did you mean --label 'label'?"]),
        "count": (ok, ["--count", "n"], ["no column 'n'", "its columns are 'task', 'worker', 'label'"]),
        "seconds": (ok, ["--seconds", "took"], ["no column 'took'"]),
        "when": (ok, ["--when", "at"], ["no column 'at'"]),
        "no time": (
            ok.replace("label", "label,at").replace("x\n", "x,1\n").replace("y\n", "y,soon\n"),
            ["--when", "at"],
            ["column 'at', row 1 (line 3 of crowd.csv): 'soon' does not say when"],
        ),
        "column": (ok, ["--worker", "werker"], ["'werker'", "Did you mean --worker 'worker'?"]),
        "separator": (ok.replace(",", ":"), [], ["no column 'task'", "'task:worker:label'"]),
        "empty": ("", [], ["crowd.csv: the file is empty"]),
        "binary": ("\0\1\2", [], ["crowd.csv is no text file"]),
        "missing": (ok + "3,,x\n", [], ["column 'worker'", "missing in row 4 (line 6 of crowd.csv)"]),
        "one class": (ok.replace("x", "y"), [], ["'y'", "list all in --classes A,B,C"]),
        "other class": (ok, ["--classes", "x,z"], ["'y' is not in --classes x,z"]),
        "story": (ok, ["--story", "dawid_skeen"], ["unknown story 'dawid_skeen'", "did you mean 'dawid_skene'?"]),
        "method": (ok, ["--method", "nutz"], ["unknown method 'nutz'", "did you mean 'nuts'?"]),
        "option": (ok, ["--set", "diagnal=2"], ["unknown option 'diagnal'", "did you mean 'diagonal'?"]),
        "elsewhere": (ok, ["--set", "every=10"], ["--set every=10: every has an option of its own, --every"]),
        "no pair": (ok, ["--set", "diagonal"], ["--set diagonal: NAME=VALUE is needed"]),
        "no number": (ok, ["--set", "tolerance=low"], ["--set tolerance=low: a number is needed, such as"]),
        "no count": (ok, ["--set", "restarts=0"], ["restarts=0: a whole number from 1"]),
        "truth value": (ok, ["--set", "max_iterations=true"], ["--set max_iterations=true: a number is needed"]),
        "no number for the story": (
            ok,
            ["--set", "diagonal=big"],
            ["--set diagonal=big: a number is needed, such as 2.0"],
        ),
        "another engine": (ok, ["--set", "draws=50"], ["--set draws=50: draws belongs to svi and nuts, not to em"]),
        "concentration": (ok, ["--set", "diagonal=0"], ["diagonal=0", "number above 0"]),
        "batch": (ok, ["--method", "svi", "--set", "batch_size=0"], ["batch_size=0", "a whole number from 1"]),
        "own option": (ok, ["--set", "seed=3"], ["seed has an option of its own, --seed"]),
        "python only": (ok, ["--set", "truth_prior=3"], ["truth_prior can only be given in Python", "uniform"]),
        "repeats": (ok, ["--repeats", "frist"], ["'frist'", "did you mean 'first'?"]),
        "no gold": (ok, ["--use-gold"], ["--use-gold", "give them with --gold FILE"]),
        "gold file": (ok, ["--gold", "no/gold.csv"], ["--gold: there is no file no/gold.csv"]),
    }


@pytest.mark.parametrize("case", bad_inputs())
def test_bad_input_is_refused_by_name_and_nothing_is_written(tmp_path, out, case):
    content, options, said = bad_inputs()[case]
    path = tmp_path / "crowd.csv"
    path.write_text(content)
    message = refused("fit", path, "--out", out, *options)
    for text in said:
        assert text in message
    only(tmp_path, "crowd.csv")


def test_an_unknown_file_and_an_unknown_dataset_are_refused_differently(crowd, out):
    assert f"there is no file {crowd}x; did you mean {crowd}?" in refused("fit", f"{crowd}x", "--out", out)
    message = refused("fit", "anesthsia", "--out", out)
    assert "there is no file 'anesthsia' here" in message
    assert "did you mean 'anesthesia'?" in message


def test_a_file_of_json_has_no_columns_to_name(tmp_path, out):
    path = tmp_path / "crowd.json"
    path.write_text('{"t": {"a": 0, "b": 1}, "u": {"a": 1, "b": 1}}')
    assert "--task 'item' names a column" in refused("fit", path, "--task", "item", "--out", out)
    assert "--no-worker names a column" in refused("fit", path, "--no-worker", "--out", out)
    assert "--task: there is no file anesthesia" in refused("fit", "anesthesia", "--task", "item", "--out", out)
    assert crowdppl("fit", path, "--out", out).exit_code == 0


def test_datasets_and_stories_are_listed(monkeypatch):
    monkeypatch.delenv("CROWDPPL_DATA", raising=False)
    datasets = crowdppl("datasets").stdout
    assert re.search(r"anesthesia +45 +5 +4 +315", datasets)
    assert "set CROWDPPL_DATA" in datasets
    stories = crowdppl("stories").stdout
    assert all(re.search(rf"^ {name} +[A-Z]\w+ ", stories, re.MULTILINE) for name in cp.list_stories().index)
    assert "`" not in stories


def test_the_command_alone_shows_its_subcommands_and_its_version_is_the_packages():
    alone = crowdppl()
    assert alone.exit_code == 0
    assert all(name in alone.stdout for name in ("fit", "report", "demo", "datasets", "stories"))
    assert crowdppl("--version").stdout.split() == ["crowdppl", version("crowdppl")]


def test_the_demo_shows_three_engines_side_by_side(tmp_path, monkeypatch):
    quick = {"em": {}, "svi": {"max_iterations": 200}, "nuts": {"chains": 2, "warmup": 100, "draws": 100}}
    monkeypatch.setattr(demo, "OPTIONS", quick)
    out = tmp_path / "demo"
    done = crowdppl("demo", "--out", out)
    assert done.exit_code == 0, done.output
    only(out, *FILES, "workers.png")
    assert re.search(r"class +EM \(90% interval\) +SVI \(90% interval\) +NUTS \(90% interval\)", done.stdout)
    bounded = r"0\.\d{3} \(0\.\d{3}–0\.\d{3}\)"
    for row in ("1", "2", "3", "4", r"\d \(best\)", r"\d \(worst\)"):
        assert re.search(rf"^ {row} +{bounded} +{bounded} +{bounded} *$", done.stdout, re.MULTILINE), row
    labels = pd.read_csv(out / "labels.csv", index_col="task")
    uncertain = re.findall(r"^ (\d+) +(?:\d ){7} +EM", done.stdout, re.MULTILINE)
    assert [int(task) for task in uncertain] == labels["probability"].nsmallest(3).index.tolist()
    assert "crowdppl fit your.csv --out results" in done.stdout


def test_the_demo_replaces_only_an_earlier_demo(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "fit", lambda *_, **__: pytest.fail("the fit has started"))
    (tmp_path / "labels.csv").touch()
    (tmp_path / "thesis.tex").touch()
    assert "'thesis.tex', which a fit did not write" in refused("demo", "--out", tmp_path)
    only(tmp_path, "labels.csv", "thesis.tex")


@pytest.mark.slow
def test_the_demo_finds_raters_prevalence_in_two_minutes(tmp_path):
    command = [sys.executable, "-m", "crowdppl", "demo"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True)
    assert done.stderr == ""
    posterior = group(load_netcdf(tmp_path / "crowdppl-demo" / "posterior.nc"), "posterior")
    found = posterior["prevalence"].mean(("chain", "draw"))
    # rater's published means; Monte Carlo error of both is about 0.002
    np.testing.assert_allclose(found, [0.3756, 0.4073, 0.1432, 0.0738], atol=0.005)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("", "the file is empty; expected a header such as task,worker,label and rows below it"),
        ("task,worker,label\n", "but no row; a row for each annotation is needed"),
    ],
)
def test_files_without_annotations_are_refused_and_nothing_is_written(tmp_path, written, said):
    (tmp_path / "a.csv").write_text(written)
    assert said in refused("fit", tmp_path / "a.csv", "--out", tmp_path / "out")
    only(tmp_path, "a.csv")


def test_a_refusal_reaches_the_shell_as_status_2_on_standard_error(tmp_path):
    command = [sys.executable, "-m", "crowdppl", "fit", "no.csv", "--out", "results"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "there is no file no.csv" in done.stderr


@pytest.mark.parametrize("written", [{}, {"sep": ";", "decimal": ","}], ids=["points", "commas"])
def test_a_classifier_learns_from_a_table_of_features(tmp_path, written):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 100)
    task, worker = np.indices((100, 3)).reshape(2, -1)
    label = np.where(rng.random(300) < 0.75, truth[task], 1 - truth[task])
    pd.DataFrame({"task": task, "worker": worker, "label": label}).to_csv(tmp_path / "a.csv", index=False)
    features = pd.DataFrame({"task": range(100), "x": 2.0 * truth + rng.normal(size=100)})
    features["seen"] = np.where(rng.random(100) < 0.8, truth, 1 - truth) == 1  # written as True and False
    features.to_csv(tmp_path / "f.csv", index=False, **written)
    arguments = ["fit", str(tmp_path / "a.csv"), "--out", str(tmp_path / "out"), "--features", str(tmp_path / "f.csv")]
    result = CliRunner().invoke(cli.app, [*arguments, "--classifier", "logistic"])
    assert result.exit_code == 0
    assert "logistic" in result.stdout
    labels = pd.read_csv(tmp_path / "out" / "labels.csv").set_index("task")["label"].sort_index()
    assert (labels.to_numpy() == truth).mean() > 0.85  # three annotations alone are right of 84 in 100


def test_a_models_probabilities_are_read_by_the_files_name(tmp_path):
    (tmp_path / "a.csv").write_text("task,worker,label\n1,a,no\n1,b,no\n2,a,yes\n2,b,no\n3,a,yes\n3,b,yes\n")
    (tmp_path / "gpt.csv").write_text("task,no,yes\n1,0.9,0.1\n3,0.2,0.8\n")
    arguments = ["fit", str(tmp_path / "a.csv"), "--out", str(tmp_path / "out")]
    told = CliRunner().invoke(cli.app, [*arguments, "--probabilities", str(tmp_path / "gpt.csv")])
    assert told.exit_code == 0
    assert cp.load_fit(tmp_path / "out").models["tasks"].to_dict() == {"gpt": 2}
    (tmp_path / "bad.csv").write_text("task,no,perhaps\n1,0.9,0.1\n")
    wrong = CliRunner().invoke(cli.app, [*arguments, "--overwrite", "--probabilities", str(tmp_path / "bad.csv")])
    assert "probabilities of 'bad': the column 'perhaps' is no class" in " ".join(wrong.stderr.split())


def test_items_that_nobody_compared_are_ranked_by_a_table_of_features(tmp_path):
    pairs = [("p", "q"), ("q", "r"), ("p", "r")] * 4
    rows = [f"q{i},{left},{right},{judge},{left}" for i, (left, right) in enumerate(pairs) for judge in "uv"]
    (tmp_path / "battles.csv").write_text("\n".join(["question_id,model_a,model_b,judge,winner", *rows]))
    (tmp_path / "items.csv").write_text("item;size\ns;0,5\nr;1,5\nq;2,5\np;3,5\n")
    arguments = ["--story", "one_coin", "--out", str(tmp_path / "out"), "--item-features", str(tmp_path / "items.csv")]
    result = CliRunner().invoke(cli.app, ["fit", str(tmp_path / "battles.csv"), *arguments, "--plot"])
    assert result.exit_code == 0
    ranked = pd.read_csv(tmp_path / "out" / "ranking.csv")["item"].tolist()
    assert ranked[:2] == ["p", "q"]
    assert set(ranked[2:]) == {"r", "s"}  # which lost to all, and which is the smallest
    assert (tmp_path / "out" / "ranking.png").read_bytes().startswith(b"\x89PNG")
    (tmp_path / "a.csv").write_text("task,worker,label\n1,a,no\n1,b,no\n2,a,yes\n2,b,no\n")
    for source, message in (
        (str(tmp_path / "a.csv"), "--item-features is of comparisons, and these annotations are none"),
        ("anesthesia", "--item-features is of comparisons in a file, and there is no file anesthesia"),
    ):
        wrong = CliRunner().invoke(cli.app, ["fit", source, *arguments, "--overwrite"])
        assert wrong.exit_code != 0
        assert message in " ".join(wrong.output.replace("│", "").split())


def test_preferences_are_fitted_by_their_own_story_and_another_story_s_verdict_says_how(tmp_path, monkeypatch):
    """They were fitted by the story of errors, and no command could be made of a flag without a value."""
    rows = [f"model {i % 3},model {(i + 1 + i % 2) % 3},j{i % 4},model_{'ab'[i % 5 < 2]}" for i in range(60)]
    path, out = tmp_path / "ab.csv", tmp_path / "out"
    path.write_text("\n".join(["model_a,model_b,judge,winner", *rows]))
    given = ["fit", str(path), "--preferences", "--out", str(out)]
    result = CliRunner().invoke(cli.app, given)
    assert "one_coin fitted by EM" in result.stdout
    assert "Each of 60 annotations is a preference, and taken as it was given." in result.stdout
    assert cp.load_fit(out).ranking.index.nunique() == 3
    monkeypatch.setattr(sys, "argv", ["crowdppl", *given, "--story", "dawid_skene", "--overwrite"])
    other = CliRunner().invoke(cli.app, sys.argv[1:])
    assert f"crowdppl fit {path} --overwrite --preferences --story auto --out preferences" in other.stdout


def test_battles_of_one_judge_each_are_fitted_as_preferences_unless_the_shell_refuses_it(tmp_path):
    rows = [f"q{i},model {i % 3},model {(i + 1 + i % 2) % 3},j{i % 4},model_{'ab'[i % 5 < 2]}" for i in range(60)]
    path, out = tmp_path / "ab.csv", tmp_path / "out"
    path.write_text("\n".join(["question_id,model_a,model_b,judge,winner", *rows]))
    result = CliRunner().invoke(cli.app, ["fit", str(path), "--out", str(out)])
    assert "one_coin fitted by EM" in result.stdout
    assert "--no-preferences" in " ".join(result.stderr.split())
    refused = CliRunner().invoke(cli.app, ["fit", str(path), "--no-preferences", "--out", str(out), "--overwrite"])
    assert "dawid_skene fitted by EM" in refused.stdout
    page = CliRunner().invoke(cli.app, ["report", str(path), "--out", str(tmp_path / "page.html")])
    assert "one_coin fitted by EM" in page.stdout


def test_features_that_are_not_there_and_options_that_are_no_truth_values_are_refused(tmp_path):
    pd.DataFrame({"task": [1, 2], "worker": [1, 1], "label": [0, 1]}).to_csv(tmp_path / "a.csv", index=False)
    arguments = ["fit", str(tmp_path / "a.csv"), "--out", str(tmp_path / "out")]
    for more, message in (
        (["--features", str(tmp_path / "f.csv")], "--features: there is no file"),
        (
            ["--classifier", "logistic"],
            "the classifier needs features of the tasks, and the annotations have none; give them with --features FILE",
        ),
        (["--story", "annotator_groups", "--set", "gated=yes"], "true or false is needed"),
    ):
        result = CliRunner().invoke(cli.app, [*arguments, *more])
        assert result.exit_code != 0
        assert message in " ".join(result.output.replace("│", "").split())
        assert not (tmp_path / "out").exists()


def test_a_column_of_seconds_gives_every_worker_a_median_time(tmp_path):
    rows = ["task,worker,label,time", *(f"{t},{w},{t % 2},{3 + w}" for t in range(8) for w in range(3))]
    (tmp_path / "annotations.csv").write_text("\n".join(rows))
    out = tmp_path / "out"
    given = ["fit", str(tmp_path / "annotations.csv"), "--seconds", "time", "--out", str(out), "--quiet"]
    assert CliRunner().invoke(cli.app, given).exit_code == 0
    assert pd.read_csv(out / "workers.csv")["seconds"].tolist() == [3, 4, 5]


def test_a_column_of_when_tells_a_worker_who_changed(tmp_path):
    given = [(t, w, (t + (w == 0 and t >= 60 and t % 4 < 2)) % 2) for t in range(120) for w in range(5)]
    rows = ["task,worker,label,at", *(f"{t},w{w},{label},2024-03-01 {t // 60:02}:{t % 60:02}" for t, w, label in given)]
    (tmp_path / "annotations.csv").write_text("\n".join(rows))
    asked = ["fit", str(tmp_path / "annotations.csv"), "--when", "at", "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(cli.app, asked)
    assert result.exit_code == 0
    assert "workers changed, by the labels that the others give: 'w0' was right in" in " ".join(result.output.split())


STUDIO = [
    {
        "id": task,
        "data": {"text": "x"},
        "annotations": [
            {
                "completed_by": worker,
                "result": [{"from_name": "q", "to_name": "t", "type": "choices", "value": {"choices": [label]}}],
            }
            for worker, label in enumerate(labels)
        ],
    }
    for task, labels in enumerate(["aab", "abb", "aaa", "bbb"])
]


@pytest.mark.parametrize(("tool", "name"), [("label-studio", "label-studio.json"), ("hf", "hf.parquet")])
def test_labels_are_written_for_other_tools(tmp_path, out, tool, name):
    path = tmp_path / "export.json"
    path.write_text(json.dumps(STUDIO))
    done = crowdppl("fit", path, "--to", tool, "--story", "one_coin", "--out", out)
    assert done.exit_code == 0, done.output
    assert "Label Studio export, question 'q': 4 tasks, 3 annotators" in done.output
    only(out, *FILES, name)
    if tool == "hf":
        assert pd.read_parquet(out / name)["label_name"].tolist() == list("abab")
    else:
        tasks = json.loads((out / name).read_text())
        assert [task["data"] for task in tasks] == [{"text": "x"}] * 4
        assert {task["predictions"][0]["result"][0]["from_name"] for task in tasks} == {"q"}
    assert "did you mean 'argilla'" in refused("fit", path, "--to", "argila", "--out", tmp_path / "other")


@pytest.mark.parametrize("options", [["--classes", "2<2.5<3<3.5"], ["--ordered", "--classes", "2,2.5,3,3.5"]])
def test_steps_of_a_half_are_the_numbers_that_a_file_writes_with_a_point(tmp_path, options):
    """'3.0' was none of the classes."""
    path = tmp_path / "half.csv"
    path.write_text("task,worker,label\n1,a,3.5\n1,b,3.0\n2,a,2.0\n2,b,2.5\n3,a,3.0\n3,b,3.0\n")
    done = crowdppl("agreement", path, *options)
    assert done.exit_code == 0, done.output
    expected = cp.agreement(cp.read(path, ordered=[2, 2.5, 3, 3.5], tell=False))
    assert f"alpha: {expected.table.loc['alpha', 'estimate']:.3f}" in done.stdout


@pytest.mark.parametrize("source", ["promptfoo/results.csv", "langsmith"])
def test_logs_in_csv_are_read_as_a_file_or_a_folder(source):
    """A table of promptfoo has names of columns twice, and a folder of tables no .json or .eval file."""
    path = Path(__file__).parents[1] / "data" / "exports" / "experiments" / source
    done = crowdppl("agreement", path)
    assert done.exit_code == 0, done.output
    assert f"1 log of {'promptfoo' if 'promptfoo' in source else 'LangSmith'}" in done.stderr


def test_labels_of_evaluation_logs_are_written_back_beside_the_scores(tmp_path, out):
    logs = Path(__file__).parents[1] / "data" / "exports" / "logs" / "inspect"
    done = crowdppl("fit", logs, "--to", "inspect", "--to", "jsonl", "--story", "one_coin", "--out", out)
    assert done.exit_code == 0, done.output
    only(out, *FILES, "inspect", "labels.jsonl")
    assert "crowdppl" in json.loads((out / "inspect" / "one.json").read_text())["samples"][0]["scores"]
    assert len((out / "labels.jsonl").read_text().splitlines()) == 6
    assert "--log-tasks epoch makes each a task" in done.output
    by_epoch = crowdppl("fit", logs, "--log-tasks", "epoch", "--story", "one_coin", "--out", tmp_path / "epochs")
    assert "9 tasks of 2 models" in by_epoch.output
    hidden = ("fit", logs, "--to", "inspect", "--workers", "drop", "--out", tmp_path / "other")
    assert "copies logs with the workers' names" in refused(*hidden)


@pytest.mark.parametrize("name", ["export.json", "export.jsonl", "export.parquet", "export.csv"])
def test_suggestions_for_argilla_go_to_the_question_that_was_read(tmp_path, out, name):
    """They were written for a question called label, which Argilla does not have."""
    records = [
        {"id": str(task), "quality.responses": list(labels), "quality.responses.users": ["a", "b", "c"]}
        for task, labels in enumerate(["xxy", "xyy", "xxx", "yyy"])
    ]
    table = pd.DataFrame(records)
    if name == "export.parquet":
        table.to_parquet(tmp_path / name)
    elif name == "export.csv":
        lists = ["quality.responses", "quality.responses.users"]
        table.assign(**{column: table[column].map(json.dumps) for column in lists}).to_csv(tmp_path / name, index=False)
    else:
        text = json.dumps(records) if name == "export.json" else "\n".join(map(json.dumps, records))
        (tmp_path / name).write_text(text)
    done = crowdppl("fit", tmp_path / name, "--to", "argilla", "--story", "one_coin", "--out", out)
    assert done.exit_code == 0, done.output
    written = json.loads((out / "argilla.json").read_text())
    assert [record["quality.suggestion"] for record in written] == list("xyxy")


def test_a_folder_of_a_fit_is_no_annotations_and_the_message_says_what_takes_it(crowd, tmp_path, out):
    """It was read as an export in JSON, and with hf.parquet in it as a folder of Parquet files."""
    assert crowdppl("fit", crowd, "--story", "one_coin", "--to", "hf", "--out", out).exit_code == 0
    message = refused("fit", out, "--out", tmp_path / "again")
    assert "is the folder of a fit, and annotations are needed" in message
    assert f"crowdppl report {out} --out page.html" in message
    for command in ("fit", "report"):
        assert "did you mean" not in refused(command, tmp_path / "other.csv", "--out", tmp_path / "page.html")


def test_the_output_names_workers_by_pseudonyms_or_not_at_all(crowd, tmp_path):
    key = tmp_path / "key"
    key.write_bytes(b"0" * 32)
    shared = ("fit", crowd, "--story", "wawa", "--quiet", "--out")
    assert crowdppl(*shared, tmp_path / "hash", "--workers", "hash", "--key", key).exit_code == 0
    found = pd.read_csv(tmp_path / "hash" / "workers.csv", index_col="worker")
    assert found.index.str.fullmatch(r"w[0-9a-f]{20}").all()
    assert crowdppl(*shared, tmp_path / "drop", "--workers", "drop", "--min-group", 2).exit_code == 0
    assert not (tmp_path / "drop" / "workers.csv").exists()
    assert (pd.read_csv(tmp_path / "drop" / "worker_groups.csv")["workers"] >= 2).all()
    for folder in ("hash", "drop"):
        for file in (tmp_path / folder).iterdir():
            assert "Ωμέγα".encode() not in file.read_bytes()
    assert f"--key {tmp_path / 'none'}: there is no such file; make it once" in refused(
        *shared, tmp_path / "x", "--workers", "hash", "--key", tmp_path / "none"
    )
    assert "needs a key" in refused(*shared, tmp_path / "x", "--workers", "hash")
    assert "did you mean 'drop'" in refused(*shared, tmp_path / "x", "--workers", "drops")
    assert "--plot draws the confusion matrix of each worker, and --workers drop" in refused(
        *shared, tmp_path / "x", "--workers", "drop", "--plot"
    )
    assert "the annotations name none; leave it out" in refused(*shared, tmp_path / "x", "--no-worker", "--plot")
    assert "give --workers drop" in refused(*shared, tmp_path / "x", "--min-group", 3)
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("workers", ["hash", "drop"])
def test_what_a_fit_says_on_the_way_names_nobody(tmp_path, workers):
    rows = [(task, name, "xy"[task % 2]) for task in range(6) for name in ("ann@home", "bob@home")]
    pd.DataFrame(rows, columns=["task", "worker", "label"]).to_csv(tmp_path / "a.csv", index=False)
    (tmp_path / "key").write_bytes(bytes(range(32)))
    given = ["--workers", workers, *(["--key", str(tmp_path / "key")] if workers == "hash" else [])]
    draws = ["--set", "warmup=5", "--set", "draws=5", "--set", "chains=2"]  # so few that it warns of parameters
    done = crowdppl("fit", tmp_path / "a.csv", "-o", tmp_path / "o", "--method", "nuts", *draws, *given)
    assert done.exit_code == 0, done.output
    assert "Warning" in done.output
    assert "@home" not in done.output


def test_rows_that_lack_a_label_are_refused_or_dropped(tmp_path):
    path = tmp_path / "gaps.csv"
    path.write_text(
        "task,worker,label\n" + "".join(f"{t},{w},{'xy'[t % 2]}\n" for t in range(4) for w in "uv") + "4,u,\n"
    )
    assert "row 8 (line 10 of gaps.csv); fill it in, or remove the row first; --missing 'drop' leaves" in refused(
        "fit", path, "--out", tmp_path / "no"
    )
    done = crowdppl("fit", path, "--story", "wawa", "--missing", "drop", "--out", tmp_path / "o")
    assert done.exit_code == 0, done.output
    assert "left out 1 of 9 rows" in done.output
    assert len(pd.read_csv(tmp_path / "o" / "labels.csv")) == 4
    assert "--missing" in refused("fit", "anesthesia", "--missing", "drop", "--out", tmp_path / "no")


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (["--shared-error"], "--set shared_error=true"),
        (["--max-iterations", "3"], "--set max_iterations=3"),
        (["--diagonal=4"], "--set diagonal=4"),
        (["--task_difficulty", "--quiet"], "--set task_difficulty=true"),
    ],
)
@pytest.mark.parametrize("command", ["fit", "report"])
def test_a_setting_that_is_given_as_an_option_is_told_how(command, given, meant, tmp_path):
    said = refused(command, "anesthesia", *given, "--out", tmp_path / "o")
    assert f"No such option: {given[0].partition('=')[0]}" in said
    assert f"an option of the engine is given by {meant}" in said


def test_tables_among_the_hyperparameters_are_given_as_files(tmp_path, out):
    """Workers and classes of the file are read as those of the annotations: "true" stays text, "007" too."""
    (tmp_path / "a.csv").write_text("task,worker,label\n1,007,true\n1,8,false\n2,007,true\n2,8,true\n")
    (tmp_path / "before.csv").write_text("worker,truth,label,count\n007,true,true,20\n007,false,false,9\n")
    done = crowdppl("fit", tmp_path / "a.csv", "--set", f"history={tmp_path / 'before.csv'}", "--out", out)
    assert done.exit_code == 0, done.output
    annotations = cp.Annotations.from_csv(tmp_path / "a.csv")
    history = pd.read_csv(tmp_path / "before.csv", dtype={"worker": str, "truth": str, "label": str})
    expected = cp.fit("dawid_skene", annotations, history=history, progress=False)
    np.testing.assert_array_equal(cp.load_fit(out).posterior, expected.posterior)
    (tmp_path / "families.csv").write_text("worker,family\n007,m\n8,f\n")
    given = ("--set", "shared_error=true", "--set", f"worker_families={tmp_path / 'families.csv'}")
    done = crowdppl("fit", tmp_path / "a.csv", *given, "--out", tmp_path / "families")
    assert done.exit_code == 0, done.output
    said = refused("fit", tmp_path / "a.csv", "--set", f"history={tmp_path / 'befor.csv'}", "--out", tmp_path / "no")
    assert "--set history: a file with a table is needed" in said
    assert re.search(r"did you mean \S*before.csv\?", said)


def test_a_misspelt_option_is_suggested(tmp_path):
    said = refused("fit", "anesthesia", "--metod", "em", "--out", tmp_path / "o")
    assert "No such option: --metod; did you mean --method?" in said


def test_the_verdict_comes_first_and_its_commands_run(tmp_path):
    """Trust, labels, workers, next: in this order, and a line of it is a command that works as it stands."""
    folder = tmp_path / "my fit"
    done = crowdppl("fit", "anesthesia", "--out", folder)
    assert done.exit_code == 0, done.output
    verdict = cp.load_fit(folder).verdict
    places = [done.stdout.index(f"\n{heading}\n") for heading in [*verdict.sections, "Next"]]
    assert places == sorted(places)
    commands = [line.partition("  # ")[0] for line in done.stdout.splitlines() if line.startswith("crowdppl ")]
    assert commands == list(verdict.commands(str(folder)))
    written = crowdppl(*shlex.split(commands[0])[1:-1], tmp_path / "gold.html")
    assert written.exit_code == 0, written.output
    assert not re.search(r"\b(cp|fit)\.[a-z_]+\(", done.stdout.partition("Written in")[0])


def test_the_command_that_counts_copies_as_one_has_the_options_of_the_fit_and_runs(tmp_path, monkeypatch):
    data = copies(0.85)(np.random.default_rng(1)).without_gold()
    data.to_frame().rename(columns={"worker": "who"}).to_csv(tmp_path / "a b.csv", index=False)
    given = ("fit", tmp_path / "a b.csv", "--worker", "who", "--story", "one_coin", "--seed", "3", "-o", tmp_path / "1")
    monkeypatch.setattr(sys, "argv", ["crowdppl", *map(str, given)])
    monkeypatch.chdir(tmp_path)
    done = crowdppl(*given)
    command = next(line for line in done.stdout.splitlines() if line.startswith("crowdppl fit ")).partition("  # ")[0]
    again = shlex.split(command)[1:]
    assert again[:6] == [*map(str, given[:4]), "--seed", "3"]
    assert crowdppl(*again).exit_code == 0
    (finding,) = findings_of(cp.load_fit("copies-one"), "copies")
    assert len(finding.values["as_one"]) == 2


@pytest.mark.parametrize(("odd", "options"), [(["Cat ", "DOG"], []), (["none", "n/a", "?"], ["--abstain", "?"])])
def test_the_command_that_mends_names_of_classes_has_the_options_of_the_fit_and_runs(
    odd, options, tmp_path, monkeypatch
):
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=60)
    label = np.array(["cat", "dog"])[np.where(rng.random((60, 4)) < 0.8, truth[:, None], 1 - truth[:, None])]
    table = pd.DataFrame(label).rename_axis("task").melt(var_name="worker", value_name="label", ignore_index=False)
    table["label"] = [*odd, *table["label"].iloc[len(odd) :]]
    table.to_csv(tmp_path / "a b.csv")
    given = ("fit", tmp_path / "a b.csv", *options, "--story", "one_coin", "-o", tmp_path / "1")
    monkeypatch.setattr(sys, "argv", ["crowdppl", *map(str, given)])
    monkeypatch.chdir(tmp_path)
    done = crowdppl(*given)
    assert len(cp.load_fit("1").annotations.classes) == 4
    command = next(line for line in done.stdout.splitlines() if line.startswith("crowdppl fit ")).partition("  # ")[0]
    assert crowdppl(*shlex.split(command)[1:]).exit_code == 0
    mended = cp.load_fit("mended")
    assert (list(mended.annotations.classes), mended.story) == (["cat", "dog"], "one_coin")
    assert not findings_of(mended, "names_alike") + findings_of(mended, "class_of_none")


@pytest.mark.parametrize("task", ["item", "thing"])
def test_the_command_for_a_page_of_gold_labels_shows_what_the_tasks_are_where_the_file_says_it(task, tmp_path):
    rows = [(f"t{i}", f"w{j}", "yes" if i % 2 else "no", f"<tweet {i}>") for i in range(6) for j in range(3)]
    table = pd.DataFrame(rows, columns=[task, "worker", "label", "text"])
    table.to_csv(tmp_path / "a.csv", index=False)
    table.drop(columns="text").to_csv(tmp_path / "b.csv", index=False)
    shown = {}
    for name in "ab":
        done = crowdppl("fit", tmp_path / f"{name}.csv", "--task", task, "--out", tmp_path / name)
        command = next(line for line in done.stdout.splitlines() if line.startswith("crowdppl next-gold "))
        page = tmp_path / f"{name}.html"
        again = [page if part == "gold.html" else part for part in shlex.split(command.partition("  # ")[0])[1:]]
        assert crowdppl(*again).exit_code == 0
        shown[name] = "tweet 3" in page.read_text(encoding="utf-8")
    assert shown == {"a": True, "b": False}


def test_a_table_may_have_a_column_of_labels_for_each_question(tmp_path, out):
    rows = [(task, worker, task != "c", worker == "x") for task in "abc" for worker in "xyz"]
    table = pd.DataFrame(rows, columns=["task", "worker", "clarity", "tone"]).replace({True: "yes", False: "no"})
    table.to_csv(tmp_path / "wide.csv", index=False)
    crowdppl("fit", tmp_path / "wide.csv", "--question", "clarity,tone", "--story", "one_coin", "--out", out)
    labels = pd.read_csv(out / "labels.csv").set_index(["task", "question"])["label"]
    assert labels.unstack().to_dict() == {
        "clarity": {"a": "yes", "b": "yes", "c": "no"},
        "tone": {"a": "no", "b": "no", "c": "no"},
    }
    said = refused("fit", tmp_path / "wide.csv", "--question", "clarity,style", "--out", tmp_path / "other")
    assert "'style'" in said


def test_two_columns_name_the_tasks_on_the_command_line(tmp_path):
    rows = [(f"q{i}", v, w, str(i % 2)) for i in range(6) for v in "AB" for w in "xyz"]
    pd.DataFrame(rows, columns=["question", "variant", "judge", "label"]).to_csv(path := tmp_path / "a.csv")
    done = crowdppl("agreement", path, "--task", "question,variant")
    assert done.exit_code == 0
    assert "36 annotations of 12 tasks" in done.output


def test_the_advice_on_labels_by_criterion_in_cells_can_be_pasted(tmp_path):
    scores = [json.dumps({"fluency": 1 + n % 3, "depth": 1 + n % 2}) for n in range(12)]
    table = pd.DataFrame({"id": [n // 2 for n in range(12)], "judge": ["a", "b"] * 6, "score": scores})
    table.to_csv(tmp_path / "a.csv", index=False)
    fit = ("fit", tmp_path / "a.csv", "--story", "majority_vote", "--out")
    advice = re.findall(r"(--(?:label|question)) '?([\w.,]+[\w])'?", refused(*fit, tmp_path / "refused"))
    assert {option for option, _ in advice} == {"--label", "--question"}
    for number, (option, value) in enumerate(advice):
        out = tmp_path / str(number)
        assert crowdppl(*fit, out, option, value).exit_code == 0
        read = pd.read_csv(out / "labels.csv")
        assert len(read) == (6 if option == "--label" else 12)


def test_scores_of_a_truth_with_other_classes_are_fitted_without_a_story_s_name(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"task": np.repeat(range(20), 3), "worker": ["a", "b", "c"] * 20})
    table.assign(label=rng.integers(0, 4, 60)).to_csv(tmp_path / "scores.csv", index=False)
    request = Request(file=str(tmp_path / "scores.csv"), truth_classes="no,yes")
    assert request.default_story() == request.default_story(read_annotations(request)) == "auto"
    assert Request(file=str(tmp_path / "scores.csv")).default_story() == "dawid_skene"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--truth-classes", "no"], r"--truth-classes no: from 2 to 3 classes"),
        (["--truth-classes", "no,yes", "--abstain", "3"], r"--abstain and --truth-classes do not go together"),
        (
            ["--truth-classes", "no,yes", "--no-ordered"],
            r"--truth-classes is of ordered levels; leave --no-ordered out",
        ),
        (["--truth-classes", "no,yes", "--story", "ebcc"], r"by --story, or leave --truth-classes out"),
        (["--truth-classes", "no,yes", "--gold", "gold.csv"], r"with --truth-classes A,B that include it"),
    ],
)
def test_what_is_wrong_with_classes_of_another_truth_is_said_with_the_option(options, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"task": [1, 1, 2], "worker": ["a", "b", "a"], "label": [1, 2, 3]}).to_csv("scores.csv", index=False)
    (tmp_path / "gold.csv").write_text("task,label\n1,maybe\n")
    assert re.search(message, said := refused("fit", "scores.csv", *options)), said
    assert not re.search(r"\w=[\[{]|\bcp\.|annotations\.", said)


@pytest.mark.parametrize("options", [["--truth-classes", "no,yes"], ["--ordered"], ["--merge", "a=b"]])
def test_what_comparisons_do_not_take_is_said_with_the_option(options, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [("x", "y", "ann", "left"), ("y", "x", "bob", "tie")]
    pd.DataFrame(rows, columns=["left", "right", "worker", "label"]).to_csv("pairs.csv", index=False)
    said = refused("fit", "pairs.csv", *options)
    assert said.startswith(f"Error pairs.csv: {options[0]} cannot be used of comparisons; leave it out;"), said
