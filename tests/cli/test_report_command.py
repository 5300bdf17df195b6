"""crowdppl report: the page it writes, and what it refuses; and crowdppl fit --story auto."""

import os

import numpy as np
import pandas as pd
import pytest
from command_line import crowdppl, refused
from report_pages import Page

import crowdppl as cp
from crowdppl import fit
from crowdppl.cli.output import files_of_fit
from crowdppl.inference.comparison import default_set, weights


@pytest.fixture
def crowd(tmp_path):
    rng = np.random.default_rng(0)
    rows = [(f"t{t}", f"w{w}", "ab"[t % 2 if rng.random() < 0.8 else 1 - t % 2]) for t in range(8) for w in range(3)]
    path = tmp_path / "crowd.csv"
    pd.DataFrame(rows, columns=["item", "rater", "annotation"]).to_csv(path, index=False)
    return path


COLUMNS = ("--task", "item", "--worker", "rater", "--label", "annotation")


def sections(path):
    page = Page(path.read_text(encoding="utf-8"))
    return page, [e["id"] for e in page.all("section")]


def test_report_writes_the_page_of_the_fit_that_was_asked_for(crowd, tmp_path):
    gold = tmp_path / "gold.csv"
    gold.write_text("item,annotation\nt0,a\nt1,b\n")
    out = tmp_path / "page.html"
    options = ("--set", "diagonal=3", "--gold", gold, "--no-checks", "--title", "Mine & yours")
    done = crowdppl("report", crowd, *COLUMNS, *options, "--out", out)
    assert done.exit_code == 0, done.output
    assert "dawid_skene fitted by EM" in done.stdout
    assert str(out) in done.stdout
    page, found = sections(out)
    expected = ["labels", "votes", "workers", "agreement", "gold", "next", "data", "prior", "story", "reproduce"]
    expected += ["convergence"]
    assert found == expected
    assert page.all("h1")[0]["text"] == "Mine & yours"
    annotations = cp.Annotations.from_csv(crowd, task="item", worker="rater", label="annotation")
    fit = cp.fit("dawid_skene", annotations, diagonal=3, progress=False)
    labels = {row[0]: row[2] for row in page.table("Labels")[1:]}
    assert labels == fit.labels["label"].to_dict()
    assert "diagonal=3" in page.all("pre")[0]["text"]


@pytest.mark.slow
def test_report_compares_and_averages_several_stories(crowd, tmp_path):
    out = tmp_path / "page.html"
    stories = ("--story", "one_coin", "--story", "two_coin", "--method", "em", "--no-checks", "--quiet")
    done = crowdppl("report", crowd, *COLUMNS, *stories, "--out", out)
    assert done.exit_code == 0, done.output
    assert done.stdout == ""
    page, found = sections(out)
    assert "comparison" in found
    assert sorted(row[0] for row in page.table("Stories, the best first")[1:]) == ["one_coin", "two_coin"]


def test_report_refuses_before_it_fits(crowd, tmp_path):
    page = tmp_path / "page.html"
    assert "there is no folder" in refused("report", crowd, *COLUMNS, "--out", tmp_path / "nowhere" / "page.html")
    assert "is a folder; name a file in it" in refused("report", crowd, *COLUMNS, "--out", tmp_path)
    assert "x.pdf must end in .html or .htm, such as" in refused("report", crowd, *COLUMNS, "--out", tmp_path / "x.pdf")
    both = ("--story", "auto", "--story", "mace")
    assert "--story auto takes a default set of stories" in refused("report", crowd, *COLUMNS, *both, "--out", page)
    assert "'dawid_skene'" in refused("report", crowd, *COLUMNS, "--story", "dawid_skeen", "--out", page)
    assert "--use-gold" in refused("report", crowd, *COLUMNS, "--use-gold", "--out", page)
    assert os.listdir(tmp_path) == ["crowd.csv"]


def few_stories(story, annotations, **options):
    """Return an average of two stories, which is quicker than the default set."""
    assert (story, options.pop("method")) == ("auto", "em")
    fits = [fit(name, annotations, **options) for name in ("dawid_skene", "one_coin")]
    return cp.stack(fits, weights={"dawid_skene": 0.25, "one_coin": 0.75})


def test_fit_auto_writes_the_average_and_its_weights(crowd, tmp_path, monkeypatch):
    monkeypatch.setattr(cp, "fit", few_stories)
    out = tmp_path / "results"
    done = crowdppl("fit", crowd, *COLUMNS, "--story", "auto", "--out", out)
    assert done.exit_code == 0, done.output
    assert sorted(os.listdir(out)) == [
        "comparison.csv",
        "labels.csv",
        "manifest.json",
        "posterior.nc",
        "posterior_1.nc",
        "workers.csv",
    ]
    assert all(str(out / name) in done.stdout for name in os.listdir(out))
    weights = pd.read_csv(out / "comparison.csv", index_col="story")["weight"]
    assert weights.to_dict() == {"dawid_skene": 0.25, "one_coin": 0.75}
    labels = pd.read_csv(out / "labels.csv", index_col="task")
    np.testing.assert_allclose(labels[["p_a", "p_b"]].sum(axis=1), 1, rtol=1e-5)
    monkeypatch.undo()
    again = crowdppl("fit", crowd, *COLUMNS, "--out", out, "--overwrite", "--quiet")
    assert again.exit_code == 0, again.output
    assert sorted(os.listdir(out)) == ["labels.csv", "manifest.json", "posterior.nc", "workers.csv"]


def test_files_of_stories_are_listed_by_their_numbers():
    names = ["posterior_10.nc", "posterior_2.nc", "others.txt", "posterior.nc", "labels.csv"]
    assert list(files_of_fit(names)) == ["labels.csv", "posterior.nc", "posterior_2.nc", "posterior_10.nc"]


@pytest.mark.slow
def test_fit_auto_writes_its_weights(crowd, tmp_path, monkeypatch):
    shares = {"one_coin": 0.6, "two_coin": 0.4}
    monkeypatch.setattr(default_set, "DEFAULT_SET", {"one_coin": {}, "two_coin": {}})
    monkeypatch.setattr(default_set, "DEFAULT_SHARES", shares)
    monkeypatch.setattr(weights, "BY_PROBABILITY", 0.0)
    out = tmp_path / "results"
    done = crowdppl("fit", crowd, *COLUMNS, "--story", "auto", "--method", "em", "--out", out)
    assert done.exit_code == 0, done.output
    comparison = pd.read_csv(out / "comparison.csv", index_col="story")
    assert comparison["weight"].to_dict() == pytest.approx(shares)


def saved(kind, folder):
    """Save a fit, an average or a baseline of one crowd, with its posterior."""
    annotations, _ = cp.simulate("one_coin", n_tasks=12, n_workers=4, seed=0)
    annotations = annotations.without_gold()
    if kind == "baseline":
        result = fit("majority_vote", annotations)
    else:
        result = fit("one_coin", annotations, progress=False)
    if kind == "stack":
        result = cp.stack({"one": result, "two": fit("dawid_skene", annotations, progress=False)}, {"one": 1, "two": 2})
    result.save(folder)
    return result


def no_fit(*arguments, **options):
    raise AssertionError("it fits again")


@pytest.mark.parametrize("kind", ["fit", "stack", "baseline"])
def test_report_of_a_saved_fit_is_the_page_of_that_fit_without_fitting_again(kind, tmp_path, monkeypatch):
    result = saved(kind, tmp_path / "fit")
    monkeypatch.setattr(cp, "fit", no_fit)
    done = crowdppl("report", tmp_path / "fit", "--no-checks", "--title", "Ours", "--out", tmp_path / "page.html")
    assert done.exit_code == 0, done.output
    assert str(tmp_path / "page.html") in done.stdout
    folder = str(tmp_path / "fit")
    cp.load_fit(folder).report(tmp_path / "python.html", checks=False, title="Ours", folder=folder)
    by_command, by_python = ((tmp_path / name).read_text(encoding="utf-8") for name in ("page.html", "python.html"))
    assert by_command == by_python
    page, _ = sections(tmp_path / "page.html")
    assert {row[0]: row[2] for row in page.table("Labels")[1:]} == {
        str(task): str(label) for task, label in result.labels["label"].items()
    }


def test_a_page_that_is_there_is_replaced_only_where_that_is_asked_for(tmp_path):
    saved("fit", tmp_path / "fit")
    page, figures = tmp_path / "page.html", tmp_path / "figures.json"
    for name in (page, figures):
        name.write_text("mine")
    commands = [
        ("report", tmp_path / "fit", "--no-checks", "--quiet", "--out", page),
        ("judge", tmp_path / "fit", "--quiet", "--out", page),
        ("judge", tmp_path / "fit", "--quiet", "--json", figures),
        ("next-gold", tmp_path / "fit", "-n", 2, "--quiet", "--page", page),
    ]
    for command in commands:
        assert "has something in it; name a new file, or give --overwrite" in refused(*command)
        assert (page.read_text(), figures.read_text()) == ("mine", "mine")
    for command in commands:
        done = crowdppl(*command, "--overwrite")
        assert done.exit_code == 0, done.output
        assert command[-1].read_text() != "mine"
        command[-1].write_text("mine")


def test_the_page_of_a_saved_fit_takes_gold_labels_and_pseudonyms(tmp_path):
    saved("fit", tmp_path / "fit")
    (tmp_path / "gold.csv").write_text("task,label\n0,0\n1,1\n")
    (tmp_path / "key").write_bytes(b"0" * 32)
    shared = ("report", tmp_path / "fit", "--no-checks", "--gold", tmp_path / "gold.csv", "--out")
    done = crowdppl(*shared, tmp_path / "hash.html", "--workers", "hash", "--key", tmp_path / "key")
    assert done.exit_code == 0, done.output
    page, found = sections(tmp_path / "hash.html")
    assert "gold" in found
    assert all(row[0].startswith("w") for row in page.table("Workers")[1:])
    assert crowdppl(*shared, tmp_path / "drop.html", "--workers", "drop").exit_code == 0
    page, _ = sections(tmp_path / "drop.html")
    assert not [caption for caption in page.all("figcaption") if caption["text"] == "Workers"]


def test_a_folder_that_no_page_can_be_of_is_refused_with_what_is_accepted(crowd, tmp_path):
    saved("fit", tmp_path / "fit")
    page = ("--out", tmp_path / "page.html")
    for option in (("--method", "svi"), ("--task", "task"), ("--story", "mace"), ("--use-gold",)):
        message = refused("report", tmp_path / "fit", *option, *page)
        assert f"leave out {option[0]}, or give the annotations in place of the folder" in message
    (tmp_path / "empty").mkdir()
    assert "the folder of a saved fit, too" in refused("report", tmp_path / "empty", *page)
    (tmp_path / "streamed").mkdir()
    (tmp_path / "streamed" / "parameters.nc").write_bytes(b"")
    assert "is the folder of a streamed fit: labels/ and workers.csv have its results" in refused(
        "report", tmp_path / "streamed", *page
    )
    (tmp_path / "fit" / "manifest.json").write_text("{}")
    assert str(tmp_path / "fit") in refused("report", tmp_path / "fit", *page)
    assert not (tmp_path / "page.html").exists()
