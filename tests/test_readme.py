"""The README's Python runs as it stands, and its figures are those that the demo prints."""

import re
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import pytest

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


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
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    names: dict = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    expected = np.array(["no", "yes"])[truth]
    assert (names["fit"].labels["label"].to_numpy() == expected).mean() > 0.9
    assert (names["mine"].labels["label"].to_numpy() == expected).mean() > 0.9
    right = names["learnt"].predict_proba(names["x_test"]).argmax(1) == names["y_test"]
    assert right.mean() > 0.8  # the crowd's plurality is right of three quarters of the training images
    assert {"accuracy_low", "accuracy_high"} <= set(names["sampled"].workers)
    assert (tmp_path / "my-fit" / "posterior.nc").exists()


@pytest.mark.slow
def test_the_demo_prints_what_the_readme_shows(tmp_path):
    from typer.testing import CliRunner

    from crowdppl.cli import app

    printed = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "demo")]).stdout
    (shown,) = re.findall(r"```text\n(.*?)```", README, flags=re.DOTALL)
    said = [" ".join(line.split()) for line in printed.splitlines()]
    for line in shown.splitlines():
        assert " ".join(line.split()) in said
