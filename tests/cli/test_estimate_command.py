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
    (tmp_path / "gold.csv").write_text("task,label\n1,neither\n")
    mend = "correct it, or read the annotations anew with --classes A,B,C that include it"
    assert mend in refused("estimate", fit, tmp_path / "gold.csv")


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
    assert "label in doubt" in done.stdout
    written["label"] = 1
    written.to_csv(out, index=False)
    done = crowdppl("estimate", saved / "fit", out)
    assert done.exit_code == 0, done.output
    assert " ".join(str(cp.estimate(fit, expected.assign(label=1))).split()) in " ".join(done.stdout.split())
    assert "must end in .csv" in refused("next-gold", saved / "fit", "--out", tmp_path / "asked.txt")


def test_next_gold_of_a_table_writes_a_page_with_its_other_columns(saved, tmp_path):
    annotations = cp.load_fit(saved / "fit").annotations
    table = annotations.to_frame().rename(columns={"task": "case", "label": "mark"})
    table["text"] = [f"What is said of {case}" for case in table["case"]]
    table.to_csv(tmp_path / "marks.csv", index=False)
    page, options = tmp_path / "gold.html", ("--story", "one_coin", "--task", "case", "--label", "mark", "-n", 4)
    done = crowdppl("next-gold", tmp_path / "marks.csv", *options, "--seed", 2, "--page", page)
    assert done.exit_code == 0, done.output
    named = cp.Annotations.from_frame(table, task="case", label="mark")
    asked = cp.next_gold(cp.fit("one_coin", named, seed=2, progress=False), 4, seed=2)
    text = page.read_text(encoding="utf-8")
    for task in asked["task"]:
        assert f"<dd>What is said of {task}</dd>" in text
    assert "<dt>mark</dt>" not in text

    content = tmp_path / "content.csv"
    pd.DataFrame({"task": annotations.tasks, "words": [f"w{i}" for i in range(90)]}).to_csv(content, index=False)
    done = crowdppl("next-gold", saved / "fit", "-n", 4, "--page", page, "--content", content, "--overwrite")
    assert done.exit_code == 0, done.output
    assert str(page) in done.stdout
    assert page.read_text(encoding="utf-8").count("<dt>words</dt>") == 4


def test_next_gold_refuses_what_it_cannot_use_before_it_fits(saved, tmp_path):
    page = tmp_path / "page.html"
    assert "must end in .html" in refused("next-gold", saved / "fit", "--page", tmp_path / "page.pdf")
    assert "give --page" in refused("next-gold", saved / "fit", "--content", saved / "gold.csv")
    assert "did you mean" in refused("next-gold", saved / "fit", "--page", page, "--content", saved / "golt.csv")
    assert not page.exists()
