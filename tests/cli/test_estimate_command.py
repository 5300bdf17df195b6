"""crowdppl estimate: what it prints and writes of a saved fit, and what it refuses."""

import numpy as np
import pandas as pd
import pytest
from command_line import crowdppl, refused

import crowdppl as cp


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("estimate")
    annotations, _ = cp.simulate("one_coin", n_tasks=90, n_workers=8, annotations_per_task=3, seed=0)
    cp.fit("one_coin", annotations.without_gold(), progress=False).save(folder / "fit")
    drawn = np.random.default_rng(0).choice(90, 40, replace=False)
    gold = pd.DataFrame({"task": drawn, "label": np.asarray(annotations.gold)[drawn]})
    gold.to_csv(folder / "gold.csv", index=False)
    return folder


@pytest.mark.filterwarnings("ignore:the gold label contradicts")
@pytest.mark.parametrize("method", ["ppi", "rogan_gladen", "classical"])
def test_it_prints_and_writes_what_python_gives(saved, tmp_path, method):
    out = tmp_path / "estimate.csv"
    options = ("--method", method, "--of", "population", "--width", 0.1, "--out", out)
    done = crowdppl("estimate", saved / "fit", saved / "gold.csv", *options)
    assert done.exit_code == 0, done.output
    fit = cp.load_fit(saved / "fit")
    expected = cp.estimate(fit, saved / "gold.csv", method=method, of="population")
    written = pd.read_csv(out, index_col=["quantity", "of"])
    np.testing.assert_allclose(written, expected.table)
    text = " ".join(done.stdout.split())
    assert " ".join(str(expected).split()) in text
    assert f"{expected.accuracy['low']:.3f}–{expected.accuracy['high']:.3f}" in text
    assert str(cp.gold_needed(fit, 0.1, gold=saved / "gold.csv")) in text


def test_what_it_cannot_use_is_refused_with_what_would_do(saved, tmp_path):
    fit, gold = saved / "fit", saved / "gold.csv"
    assert f"there is no file {saved / 'gild.csv'}; did you mean" in refused("estimate", fit, saved / "gild.csv")
    assert "unknown value of --method 'ppj'; did you mean 'ppi'" in refused("estimate", fit, gold, "--method", "ppj")
    assert "must end in .csv" in refused("estimate", fit, gold, "--out", tmp_path / "table.txt")
    assert str(tmp_path / "nothing") in refused("estimate", tmp_path / "nothing", gold)
    (tmp_path / "gold.csv").write_text("task,label\n1000,0\n")
    assert "task 1000 is not among the annotated tasks" in refused("estimate", fit, tmp_path / "gold.csv")


@pytest.mark.filterwarnings("ignore:the gold label contradicts")
def test_next_gold_writes_the_table_that_is_filled_in_and_estimated_from(saved, tmp_path):
    out = tmp_path / "asked.csv"
    done = crowdppl("next-gold", saved / "fit", "-n", 25, "--seed", 3, "--out", out)
    assert done.exit_code == 0, done.output
    fit = cp.load_fit(saved / "fit")
    expected = cp.next_gold(fit, 25, seed=3)
    written = pd.read_csv(out)
    assert written.columns.tolist() == ["task", "label", "inclusion_probability", "why"]
    pd.testing.assert_frame_equal(written.drop(columns="label"), expected, check_dtype=False)
    assert "stories disagree" in done.stdout
    written["label"] = 1
    written.to_csv(out, index=False)
    done = crowdppl("estimate", saved / "fit", out)
    assert done.exit_code == 0, done.output
    assert " ".join(str(cp.estimate(fit, expected.assign(label=1))).split()) in " ".join(done.stdout.split())
    assert "must end in .csv" in refused("next-gold", saved / "fit", "--out", tmp_path / "asked.txt")
