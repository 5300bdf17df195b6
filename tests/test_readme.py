"""The README's Python runs as it stands, and its figures are those that it and the demo print."""

import os
import re
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from textwrap import dedent

import matplotlib
import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def lines(text: str) -> list[str]:
    """The lines of a text, blanks of any number as one."""
    return [" ".join(line.split()) for line in text.splitlines()]


@pytest.mark.filterwarnings("ignore")
def test_every_python_block_runs_on_a_readers_own_table(tmp_path, monkeypatch):
    matplotlib.use("Agg")
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 60)
    task, worker = np.indices((60, 6)).reshape(2, -1)
    right = rng.random(len(task)) < np.linspace(0.6, 0.95, 6)[worker]
    label = np.where(right, truth[task], 1 - truth[task])
    pd.DataFrame({"task": task, "worker": worker, "label": np.array(["no", "yes"])[label]}).to_csv(
        tmp_path / "annotations.csv", index=False
    )
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for block in blocks("python"):
        exec(compile(block, "README.md", "exec"), names)
    expected = np.array(["no", "yes"])[truth]
    assert (names["fit"].labels["label"].to_numpy() == expected).mean() > 0.9
    assert {"accuracy_low", "accuracy_high"} <= set(names["sampled"].workers)
    assert (tmp_path / "my-fit" / "posterior.nc").exists()


IN_RST = r"\.\. code-block:: {}\n\n((?:   .*\n|\n)+)"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("page", ["README.md", "docs/index.rst"])
def test_the_first_example_prints_what_stands_below_it(page):
    if page == "README.md":
        example, shown = blocks("python")[0], blocks("output")[0]
    else:
        text = (ROOT / page).read_text(encoding="utf-8")
        example, shown = (dedent(re.findall(IN_RST.format(kind), text)[0]) for kind in ("python", "none"))
    printed = StringIO()
    with redirect_stdout(printed):
        exec(compile(example, page, "exec"), {})
    assert lines(printed.getvalue()) == lines(shown.rstrip())


def test_files_that_the_readme_links_to_exist():
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", README)
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_table_of_stories_has_each_of_them_once():
    from crowdppl import list_stories

    page = (ROOT / "docs" / "stories.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"\n\| story .*?\n\n", page, flags=re.DOTALL)
    assert sorted(re.findall(r"^\| `(\w+)`", table, flags=re.MULTILINE)) == sorted(list_stories().index)


NUMBER = re.compile(r"\b\d+\.\d+\b")


def test_the_demo_prints_what_the_readme_shows_without_a_warning(tmp_path):
    """Word by word, and numbers up to 0.02: draws follow the processor's rounding."""
    # in a process of its own: the draws of programs that the tests compile with less optimisation have other digits
    users = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"} | {"PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-c", "from crowdppl.cli import app; app()", "demo", "--out", str(tmp_path / "demo")]
    ran = subprocess.run(command, env=users, capture_output=True, encoding="utf-8", check=True)
    assert "arning" not in ran.stdout + ran.stderr
    printed = [(NUMBER.sub("#", line), [float(found) for found in NUMBER.findall(line)]) for line in lines(ran.stdout)]
    (shown,) = blocks("text")
    for line in lines(shown):
        numbers = [float(found) for found in NUMBER.findall(line)]
        same = [found for words, found in printed if words == NUMBER.sub("#", line)]
        assert any(np.allclose(numbers, found, rtol=0, atol=0.02) for found in same), line
