"""The guide's lines on PyTorch and Pyro run as they stand."""

import re
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra pyro is not installed")
pytest.importorskip("pyro", reason="the extra pyro is not installed")

import crowdppl as cp

GUIDE = (Path(__file__).parents[2] / "docs" / "howto" / "classifier.md").read_text(encoding="utf-8")


def test_the_guides_block_trains_a_torch_module_on_the_digits():
    (block,) = [found for found in re.findall(r"```py\n(.*?)```", GUIDE, flags=re.DOTALL) if "manual_seed" in found]
    x, y = cp.load_split("digits", "test")
    names = {"cp": cp, "images": cp.load_dataset("digits"), "x_test": x}
    exec(compile(block, "classifier.md", "exec"), names)
    accuracy = np.mean(names["fit"].predict_proba(x).argmax(-1) == y)
    assert accuracy > 0.8  # the crowd's plurality is right of 0.77 of the training images


def test_the_guides_block_runs_pyros_svi_on_a_story():
    import pyro

    (block,) = [found for found in re.findall(r"```py\n(.*?)```", GUIDE, flags=re.DOTALL) if "pyro.infer.SVI(" in found]
    names = {"images": cp.load_dataset("digits")}
    with pyro.get_param_store().scope():
        exec(compile(block, "classifier.md", "exec"), names)
    assert names["losses"][-1] < names["losses"][0]
