"""The page to give true labels on: what it shows, and that what a person chooses is what it saves, in a browser."""

import json
import re
import time

import numpy as np
import pandas as pd
import pytest
from browser import CHROMIUM, browser

import crowdppl as cp
from crowdppl.data.errors import AnnotationWarning, StorageError

in_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed: apt install chromium")
CLASSES = ["negative", "=neutral", 'po"s, itive']
PIXEL = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def fit():
    """120 tasks by four of nine workers each; names that CSV, HTML and spreadsheets take for something else."""
    annotations, _ = cp.simulate("dawid_skene", n_tasks=120, n_workers=9, annotations_per_task=4, n_classes=3, seed=3)
    table = annotations.to_frame()
    table["label"] = [CLASSES[label] for label in table["label"]]
    table["task"] = [f"</script> doc, {task}" for task in table["task"]]
    return cp.fit("one_coin", cp.Annotations.from_frame(table, classes=CLASSES), progress=False)


@pytest.fixture(scope="module")
def page(fit, tmp_path_factory):
    path = tmp_path_factory.mktemp("gold") / "page.html"
    return path, cp.gold_page(fit, path, 20)


def saved(folder):
    """The table that the page has saved, once it is there."""
    for _ in range(200):
        if (folder / "gold.csv").is_file():
            return pd.read_csv(folder / "gold.csv")
        time.sleep(0.05)
    raise AssertionError("nothing was saved")


@in_chromium
def test_twenty_tasks_are_labelled_by_keyboard_and_the_file_is_what_was_pressed(fit, page, tmp_path):
    path, asked = page
    keys = np.random.default_rng(0).choice(list("123"), 20)
    with browser(tmp_path) as chromium:
        chromium.open(path)
        for key in keys:
            chromium.press(key)
        assert chromium.run("document.getElementById('status').textContent").startswith("Task 20 is ")
        chromium.press("s")
        saved(tmp_path)
    written = cp.Annotations.with_gold(fit.annotations, tmp_path / "gold.csv")
    found = {task: CLASSES[label] for task, label in zip(written.tasks, written.gold, strict=True) if label >= 0}
    assert found == {task: CLASSES[int(key) - 1] for task, key in zip(asked["task"], keys, strict=True)}
    estimated = cp.estimate(fit, tmp_path / "gold.csv")
    assert str(estimated) == str(cp.estimate(fit, asked.assign(label=[found[task] for task in asked["task"]])))
    table = pd.read_csv(tmp_path / "gold.csv")
    assert table.columns.tolist() == ["task", "label", "inclusion_probability", "why"]
    np.testing.assert_array_equal(table["inclusion_probability"], asked["inclusion_probability"])


@in_chromium
def test_clicks_moves_and_labels_taken_back_are_kept_when_the_page_is_closed(page, tmp_path):
    path, asked = page
    with browser(tmp_path) as chromium:
        chromium.size(400)
        chromium.open(path)
        chromium.click(".choices button:nth-child(3)")  # the first task
        chromium.click("#next")
        chromium.click(".choices button:nth-child(1)")  # the third
        chromium.press("ArrowLeft")
        chromium.click(".choices button:nth-child(2)")  # the third again
        chromium.press("2")
        chromium.press("ArrowLeft")
        chromium.press("Backspace")
    with browser(tmp_path) as chromium:
        chromium.open(path)
        status = chromium.run("document.getElementById('status').textContent")
        assert re.search(r"2 of 20", status)
        chromium.press("Tab")  # from the page's begin to the first button that is shown
        chromium.press("s")
        table = saved(tmp_path)
    assert table["task"].tolist() == asked["task"].tolist()[0:3:2]
    assert table["label"].tolist() == [CLASSES[2], "'=neutral"]  # as spreadsheets take it for text


@in_chromium
def test_a_screen_reader_is_told_of_tasks_labels_and_what_is_pressed(page, tmp_path):
    path, asked = page
    with browser(tmp_path) as chromium:
        chromium.open(path)
        told = chromium.roles()
        name = asked["task"][0]
        for one in (
            ("heading", f"Task 1 of 20 {name}"),
            ("group", f"True label of task {name}"),
            *(("button", label) for label in CLASSES),
            ("progressbar", "Tasks with a label"),
            ("navigation", "Tasks"),
            ("button", "Save gold.csv"),
        ):
            assert one in told
        assert not [text for _, text in told if "Task 2 of" in text], "tasks are told one at a time"
        chromium.press("1")
        assert chromium.run("document.activeElement.textContent").startswith("Task 2 of 20")
        chromium.press("ArrowLeft")
        pressed = "[...document.querySelectorAll('.task:not([hidden]) [aria-pressed]')].map(one => one.ariaPressed)"
        assert chromium.run(pressed) == ["true", "false", "false"]


@in_chromium
@pytest.mark.parametrize("width", [400, 1280])
def test_it_is_as_wide_as_the_window_with_buttons_that_a_finger_hits(page, tmp_path, width):
    path, _ = page
    with browser(tmp_path) as chromium:
        chromium.size(width)
        chromium.open(path)
        assert chromium.run("document.documentElement.scrollWidth") <= width
        heights = "[...document.querySelectorAll('button')].filter(b => b.checkVisibility()).map(b => b.offsetHeight)"
        assert min(chromium.run(heights)) >= 44  # pixels, as the guidelines on accessibility have it
        bottom = (
            "Math.max(...[...document.querySelectorAll('.choices button')].map(b => b.getBoundingClientRect().bottom))"
        )
        assert chromium.run(bottom) <= 900


def test_the_page_has_the_tasks_with_their_annotations_and_nothing_of_the_fit(fit, page):
    path, asked = page
    text = path.read_text(encoding="utf-8")
    pd.testing.assert_frame_equal(asked, cp.next_gold(fit, 20))
    assert text.count('<section class="task"') == 20
    assert text.count("<script>") == text.count("</script>") == 1
    given = fit.annotations.to_frame()
    first = given[given["task"] == asked["task"][0]]
    card = text.split("<section")[1]
    assert re.findall(r"<li><span>(.*?)</span>", card) == [str(worker) for worker in first["worker"]]
    folded = card.partition("<details>")[2].partition("</details>")[0]
    assert re.findall(r"<b>(.*?)</b>", folded) == [str(label) for label in first["label"]]
    assert not re.search(r"https?://", text)


def test_content_is_text_links_and_pictures_of_the_columns_that_are_of_tasks(fit, tmp_path):
    (tmp_path / "cat.png").write_bytes(PIXEL)
    asked = cp.next_gold(fit, 4)
    table = pd.DataFrame(
        {
            "task": np.repeat(asked["task"], 2),
            "text": np.repeat(["<b>one</b>", "two", "three", None], 2),
            "picture": np.repeat(["cat.png", "cat.png", "dog.png", "a note"], 2),
            "source_url": np.repeat([f"https://example.org/{i}" for i in range(4)], 2),
            "clicked_at": range(8),
            "label": np.repeat(["SECRET"], 8),
            "gold": np.repeat(["SECRET"], 8),
            "rater": np.repeat(["SECRET"], 8),
        }
    )
    path = tmp_path / "page.html"
    with pytest.warns(AnnotationWarning, match=r"there is no picture .*dog\.png"):
        cp.gold_page(fit, path, asked, content=table, folder=tmp_path)
    text = path.read_text(encoding="utf-8")
    assert "&lt;b&gt;one&lt;/b&gt;" in text
    assert text.count("data:image/png;base64,iVBORw0KGgo=") == 2
    assert "dog.png" in text
    assert '<a href="https://example.org/1"' in text
    assert "SECRET" not in text
    assert "clicked_at" not in text


def test_comparisons_show_the_items_and_questions_their_names(tmp_path):
    pairs = pd.DataFrame(
        [("w1", "apple", "pear", "left"), ("w2", "apple", "pear", "right"), ("w1", "pear", "plum", "left")],
        columns=["worker", "left", "right", "label"],
    )
    fit = cp.fit("majority_vote", cp.Annotations.from_comparisons(pairs), progress=False)
    cp.gold_page(fit, tmp_path / "pairs.html", 2)
    text = (tmp_path / "pairs.html").read_text(encoding="utf-8")
    assert "<dt>left</dt><dd>apple</dd>" in text
    assert "<dt>right</dt><dd>plum</dd>" in text

    rows = [(task, worker, "yes", "no" if task else "yes") for task in range(3) for worker in "ab"]
    frame = pd.DataFrame(rows, columns=["task", "worker", "polite", "true"])
    asked = cp.Annotations.from_frame(frame, question=["polite", "true"])
    cp.gold_page(cp.fit("majority_vote", asked, progress=False), tmp_path / "asked.html", 6)
    text = (tmp_path / "asked.html").read_text(encoding="utf-8")
    assert 'data-head="task,question,label,inclusion_probability,why"' in text
    assert 'data-before="2,true"' in text


@pytest.mark.parametrize("option", ["title", "seed"])
def test_every_option_changes_the_page(fit, page, tmp_path, option):
    path, _ = page
    cp.gold_page(fit, tmp_path / "other.html", 20, **{option: {"title": "Which mood?", "seed": 1}[option]})
    assert (tmp_path / "other.html").read_bytes() != path.read_bytes()


def test_what_cannot_be_used_is_refused(fit, tmp_path):
    with pytest.raises(StorageError, match=r"must end in \.html"):
        cp.gold_page(fit, tmp_path / "page.txt")
    with pytest.raises(cp.AnnotationError, match="'nobody' is not in the annotations"):
        cp.gold_page(fit, tmp_path / "page.html", pd.DataFrame({"task": ["nobody"]}))
    with pytest.raises(cp.AnnotationError, match="content"):
        cp.gold_page(fit, tmp_path / "page.html", content=pd.DataFrame({"x": [1]}))
    assert json.dumps([file.name for file in tmp_path.iterdir()]) == "[]"
