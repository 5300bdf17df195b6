"""How the command line starts: what it imports, and what it says while it works."""

import json
import os
import pty
import subprocess
import sys

import pytest

from crowdppl.cli.arguments import check_input
from crowdppl.cli.request import Request
from crowdppl.data.errors import AnnotationError

LARGE = {"jax", "numpyro", "pandas", "numpy", "pyarrow", "matplotlib", "arviz"}
ROWS = "task,worker,label\n1,a,x\n1,b,y\n2,a,y\n2,b,y\n"


def modules_after(folder, *arguments):
    """The exit status of a command in a new process, what it printed on standard error, and all modules it has."""
    code = (
        "import json, sys\nfrom crowdppl.cli import app\n"
        "try:\n    app(sys.argv[1:], prog_name='crowdppl')\n"
        "except SystemExit as end:\n    print('\\n' + json.dumps([end.code, sorted(sys.modules)]))"
    )
    command, wide = [sys.executable, "-c", code, *arguments], os.environ | {"COLUMNS": "200"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True, cwd=folder, env=wide)
    status, names = json.loads(done.stdout.splitlines()[-1])
    return status, done.stderr, set(names)


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["--help"], 0, ""),
        (["--version"], 0, ""),
        (["fit", "--help"], 0, ""),
        (["report", "--help"], 0, ""),
        (["fit"], 2, "Missing argument 'FILE'"),
        (["report"], 2, "Missing argument 'FILE'"),
        (["fit", "a.csv", "--stroy", "mace", "-o", "out"], 2, "No such option"),
        (["fit", "no.csv", "-o", "out"], 2, "there is no file no.csv"),
        (
            ["fit", "judged.tsv", "-o", "out"],
            2,
            "there is no file judged.tsv; a table (CSV, TSV, Excel, Parquet, JSON, JSON Lines), an export",
        ),
        (
            ["fit", "none", "-o", "out"],
            2,
            "has no logs of evaluations (.json, .jsonl, .csv or .eval, of inspect_ai, lm-evaluation",
        ),
        (["fit", "a.csv", "--worker", "rater", "-o", "out"], 2, "no column 'rater'"),
        (["fit", "a.csv", "--label", "lable", "-o", "out"], 2, "Did you mean --label 'label'?"),
        (["fit", "a.csv", "--gold", "gold.csv", "-o", "out"], 2, "--gold: there is no file gold.csv"),
        (["fit", "a.csv", "--set", "diagonal", "-o", "out"], 2, "NAME=VALUE is needed"),
        (["report", "no.csv", "-o", "page.html"], 2, "there is no file no.csv"),
    ],
)
def test_help_and_early_refusals_need_neither_jax_nor_pandas(tmp_path, arguments, status, said):
    (tmp_path / "a.csv").write_text(ROWS)
    (tmp_path / "none").mkdir()
    got, stderr, modules = modules_after(tmp_path, *arguments)
    assert got == status, stderr
    assert said in stderr
    assert not modules & LARGE
    assert set(os.listdir(tmp_path)) == {"a.csv", "none"}


def on_a_terminal(folder, *arguments):
    """What a command writes where its standard error is a terminal, and its exit status."""
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "200", "CROWDPPL_CACHE": "off"}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    command = [sys.executable, "-m", "crowdppl", *arguments]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs, cwd=folder, env=environment) as process:
        os.close(theirs)
        written = b""
        try:
            while more := os.read(ours, 4096):
                written += more
        except OSError:  # the other end is closed
            pass
        os.close(ours)
    return written.decode(), process.returncode


def test_a_terminal_is_told_each_stage_and_no_bar_stands_at_nothing_while_a_program_compiles(tmp_path):
    (tmp_path / "a.csv").write_text(ROWS)
    written, status = on_a_terminal(tmp_path, "fit", "a.csv", "-o", "out")
    assert status == 0
    stages = ["starting", "reading a.csv", "fitting dawid_skene by EM", "working out intervals"]
    places = [written.index(stage) for stage in stages]
    assert places == sorted(places)
    assert "compiling (the first time for data of this size)" in written
    assert " 0/1,000" not in written


def test_quiet_says_nothing_to_a_terminal(tmp_path):
    (tmp_path / "a.csv").write_text(ROWS)
    written, status = on_a_terminal(tmp_path, "fit", "a.csv", "--story", "one_coin", "-o", "out", "--quiet")
    assert (written, status) == ("", 0)


def test_a_log_holds_no_progress(tmp_path):
    (tmp_path / "a.csv").write_text(ROWS)
    code = "import crowdppl as cp\nfit = cp.fit('one_coin', cp.Annotations.read('a.csv'), progress=True)\n"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=True, cwd=tmp_path
    )
    assert (done.stdout, done.stderr) == ("", "")


def test_what_the_libraries_made_is_not_looked_through_for_garbage(tmp_path):
    (tmp_path / "a.csv").write_text(ROWS)
    code = (
        "import gc\nfrom crowdppl.cli import app\n"
        "try:\n    app(['fit', 'a.csv', '--quiet', '-o', 'out'])\n"
        "except SystemExit as end:\n    print(end.code, gc.get_freeze_count(), len(gc.get_objects()), gc.isenabled())"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True, cwd=tmp_path)
    status, frozen, others, enabled = done.stdout.split()
    assert (status, enabled) == ("0", "True")
    assert int(frozen) > int(others)


@pytest.mark.parametrize("rows", [ROWS, "task,worker,label\n1,a,1\n1,b,2\n2,a,2\n2,b,2\n3,a,3\n3,b,3\n"])
def test_a_fit_is_written_without_the_libraries_for_pictures_and_posteriors(tmp_path, rows):
    (tmp_path / "a.csv").write_text(rows)
    status, stderr, modules = modules_after(tmp_path, "fit", "a.csv", "--quiet", "-o", "out")
    assert status == 0, stderr
    assert (tmp_path / "out" / "posterior.nc").is_file()
    assert not modules & {"matplotlib", "arviz", "xarray", "dask", "scipy.stats", "sklearn"}


def test_a_folder_of_nothing_but_eval_files_is_one_of_logs(tmp_path):
    (tmp_path / "log.eval").write_bytes(b"")
    check_input(Request(file=str(tmp_path)))
    (tmp_path / "log.eval").rename(tmp_path / "log.txt")
    with pytest.raises(AnnotationError, match=r"no logs of evaluations \(\.json, \.jsonl, \.csv or \.eval"):
        check_input(Request(file=str(tmp_path)))
