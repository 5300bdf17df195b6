"""The page in a browser: no width scrolls sideways, tables sort and filter, and no script of the data runs."""

import base64
import json
import re
import shutil
import subprocess
from html import escape, unescape

import pandas as pd
import pytest
from browser import browser
from markupsafe import Markup
from report_pages import TASKS, WORKERS

import crowdppl as cp
from crowdppl.inference.report.page import page
from crowdppl.inference.report.sections import Section, table

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium to open the page with")
OPTIONS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
OPTIONS += ["--disable-component-update", "--disable-sync", "--disable-extensions", "--hide-scrollbars"]
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
PHONE, DESKTOP = (390, 844), (1280, 900)


@pytest.fixture
def opened(tmp_path):
    """What a page says of itself at some width: the result of a script, put into it, without its ban on scripts."""

    def run(source, size, script="null", *, policy=False):
        asked = f"<script>document.body.dataset.found = JSON.stringify({script});</script></body>"
        if not policy:
            source, n = POLICY.subn("", source)
            assert n == 1
        # Windows have a least width, frames have none.
        frame = f'<iframe style="border:0;width:{size[0]}px;height:{size[1]}px" srcdoc="{escape(source)}"></iframe>'
        frame = frame.replace(escape("</body>"), escape(asked))
        tell = """<script>document.querySelector("iframe").onload = (event) => {
          const inside = event.target.contentDocument;
          document.body.dataset.found = inside.body.dataset.found || "null";
          document.body.dataset.buttons = inside.querySelectorAll("button").length;
        }</script>"""
        file = tmp_path / "opened.html"
        file.write_text(f"<!DOCTYPE html><meta charset=utf-8><body>{frame}{tell}</body>", encoding="utf-8")
        command = [CHROMIUM, *OPTIONS, f"--user-data-dir={tmp_path / 'profile'}"]
        done = subprocess.run([*command, "--dump-dom", file.as_uri()], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        found, buttons = (re.search(f'data-{name}="([^"]*)"', done.stdout) for name in ("found", "buttons"))
        assert found, done.stderr
        return json.loads(unescape(found[1])), int(buttons[1])

    return run


@pytest.mark.parametrize("size", [PHONE, DESKTOP])
def test_no_page_scrolls_sideways_and_no_text_is_cut(evil_path, opened, size):
    script = """(() => {
      const root = document.documentElement;
      for (const one of document.querySelectorAll("details")) one.open = true;
      const boxes = [...document.querySelectorAll("main *")];
      const inBox = (e) => e.closest(".scroll") && !e.matches(".scroll");
      return {
        inner: innerWidth, scroll: root.scrollWidth,
        outside: boxes.filter((e) => !inBox(e) && e.getBoundingClientRect().right > innerWidth + 0.5).length,
        scrolling: boxes.filter((e) => e.matches(".scroll") && e.scrollWidth > e.clientWidth).length,
        images: [...document.images].filter((e) => !e.alt).length,
        heading: document.querySelector("h1").textContent,
        title: document.title,
      };
    })()"""
    found, _ = opened(evil_path.read_text(encoding="utf-8"), size, script)
    assert found["inner"] == size[0]
    assert found["scroll"] <= found["inner"]
    assert found["outside"] == 0
    assert found["images"] == 0
    assert found["title"] == found["heading"] != "run"
    if size == PHONE:
        assert found["scrolling"] > 0  # wide tables scroll in boxes of their own
    else:
        assert found["scrolling"] == 0


def test_a_click_on_a_name_shows_its_details_as_text(evil_path, opened):
    script = """(() => {
      const names = (of) => [...document.querySelectorAll(`#${of} tbody .name`)];
      const dialog = document.querySelector("dialog");
      const found = { before: dialog.open, tasks: [], workers: [] };
      for (const of of ["tasks", "workers"]) {
        for (const button of names(of === "tasks" ? "labels" : of)) {
          button.click();
          const inside = dialog.getBoundingClientRect();
          found[of].push([button.textContent, dialog.open, dialog.querySelector("h2").textContent,
            dialog.querySelectorAll("table").length, dialog.querySelectorAll("script, i, b").length,
            inside.right <= innerWidth + 0.5]);
          dialog.querySelector(".close").click();
          if (dialog.open) found[of].push("still open");
        }
      }
      found.title = document.title;
      return found;
    })()"""
    found, _ = opened(evil_path.read_text(encoding="utf-8"), DESKTOP, script)
    assert not found["before"]
    assert sorted(one[0] for one in found["tasks"]) == sorted(TASKS)
    assert sorted(one[0] for one in found["workers"]) == sorted(WORKERS)
    for of in ("task", "worker"):
        for name, is_open, heading, tables, markup, fits in found[f"{of}s"]:
            assert (is_open, heading, markup, fits) == (True, f"{of} {name}", 0, True)
            assert tables >= 1
    assert found["title"] != "run"


def made_page(frame):
    return page("Title", "Lead", Markup(""), [], [Section("one", "One", table(frame, "Caption"))])


def test_long_names_without_blanks_break_and_the_numbers_beside_them_stand_at_their_top(opened):
    names = ["class_" + "y" * 74, "W" * 80, "正" * 80, "שלום" * 20]
    frame = pd.DataFrame(0.5, index=pd.Index(names, name="class"), columns=names)
    found, _ = opened(
        made_page(frame),
        DESKTOP,
        """(() => {
      const top = (cell) => { const text = document.createRange(); text.selectNodeContents(cell);
        return text.getClientRects()[0].top; };
      const rows = [...document.querySelectorAll("tbody tr")];
      const head = document.querySelector("thead");
      return { sideways: document.documentElement.scrollWidth - innerWidth, head: head.offsetHeight,
        wide: [...head.querySelectorAll("th")].map((cell) => cell.offsetWidth),
        apart: rows.map((row) => Math.abs(top(row.cells[0]) - top(row.cells[1]))) };
    })()""",
    )
    assert found["sideways"] <= 0
    assert found["head"] < 400  # the eighty letters in lines of more than a few
    assert max(found["wide"]) < 370
    assert max(found["apart"]) < 4


def test_tables_sort_by_their_headings_and_what_is_not_known_comes_last(opened):
    frame = pd.DataFrame(
        {"x": [0.25, float("nan"), 1000.5, -3.0, 0.2500001], "name": ["b10", "B9", "a", "é", "b9"]},
        index=pd.Index(["p", "q", "r", "s", "t"], name="unit"),
    )
    script = """(() => {
      const heads = [...document.querySelectorAll("thead th")];
      const order = () => [...document.querySelectorAll("tbody th")].map((cell) => cell.textContent).join("");
      const states = () => heads.map((head) => head.getAttribute("aria-sort"));
      const found = [[order(), states()]];
      for (const column of [1, 1, 2, 2, 0]) {
        const button = heads[column].querySelector("button");
        button.focus();
        if (document.activeElement !== button) found.push("cannot be reached by keyboard");
        button.click();
        found.push([order(), states()]);
      }
      return found;
    })()"""
    found, _ = opened(made_page(frame), DESKTOP, script)
    assert found == [
        ["pqrst", ["none", "none", "none"]],
        ["rtpsq", ["none", "descending", "none"]],
        ["sptrq", ["none", "ascending", "none"]],
        ["rtqps", ["none", "none", "ascending"]],
        ["spqtr", ["none", "none", "descending"]],
        ["pqrst", ["ascending", "none", "none"]],
    ]


def test_long_tables_show_the_rows_with_all_the_words_typed(opened):
    frame = pd.DataFrame({"animal": ["Dog", "dog cat", "cat"] * 5}, index=pd.RangeIndex(15, name="row"))
    script = """(() => {
      const input = document.querySelector(".filter input");
      const say = () => document.querySelector(".filter [role=status]").textContent;
      const shown = () => [...document.querySelectorAll("tbody tr")].filter((row) => row.offsetHeight).length;
      const found = [[say(), shown()]];
      for (const typed of ["CAT", " dog  cat ", "12", "zebra", ""]) {
        input.value = typed;
        input.dispatchEvent(new Event("input"));
        found.push([say(), shown()]);
      }
      return found;
    })()"""
    found, _ = opened(made_page(frame), PHONE, script)
    assert found == [
        ["15 rows", 15],
        ["10 of 15 rows", 10],
        ["5 of 15 rows", 5],
        ["1 of 15 rows", 1],
        ["0 of 15 rows", 0],
        ["15 rows", 15],
    ]


def test_the_page_s_policy_lets_its_own_script_run_and_no_other(opened):
    source = made_page(pd.DataFrame({"x": [1]}))
    assert opened(source, DESKTOP, "'ran'", policy=True) == (None, 1)
    assert opened(source, DESKTOP, "'ran'") == ("ran", 1)


def test_cards_of_notebooks_fit_a_narrow_page_with_nothing_cut(opened):
    annotations = cp.load_dataset("anesthesia")
    named = annotations.with_worker_names(
        {name: f"a_worker_whose_name_is_{'long' * 15}_{name}" for name in range(1, 6)}
    )
    fit = cp.fit("dawid_skene", named, progress=False)
    checks = cp.check(fit, draws=10)
    for described in (fit.summary(), cp.describe_story("difficulty")):
        page = f"<!DOCTYPE html><meta charset=utf-8><body>{described._repr_html_()}</body>"
        wider, _ = opened(page, (400, 844), "document.documentElement.scrollWidth - 400", policy=True)
        assert wider <= 0
    script = """[document.documentElement, ...document.querySelectorAll("div")].map(
      (part) => part.scrollWidth - part.clientWidth)"""
    for shown in (named._repr_html_(), fit._repr_html_(), checks._repr_html_()):
        wider, _ = opened(f"<!DOCTYPE html><meta charset=utf-8><body>{shown}</body>", (400, 844), script, policy=True)
        assert len(wider) > 5
        assert max(wider) <= 1  # a pixel by rounding


def test_a_usual_crowd_prints_on_four_pages_and_the_first_screen_of_a_phone_has_the_verdict(tmp_path):
    annotations, _ = cp.simulate("one_coin", n_tasks=400, n_workers=40, annotations_per_task=5, n_classes=4, seed=1)
    fit = cp.fit("one_coin", annotations.without_gold(), progress=False)
    path = fit.report(tmp_path / "report.html", progress=False)
    with browser(tmp_path) as chromium:
        chromium.size(*PHONE)
        chromium.open(path)
        heads = "[...document.querySelectorAll('#said h2')].map(h => [h.textContent, h.getBoundingClientRect().bottom])"
        heads = {name: bottom for name, bottom in chromium.run(heads) if bottom < PHONE[1]}
        assert next(iter(heads)) == next(iter(fit.verdict.sections))
        assert {"Labels", "Workers"} <= set(heads)
        paper = {"paperWidth": 8.27, "paperHeight": 11.69, "preferCSSPageSize": True}
        printed = base64.b64decode(chromium("Page.printToPDF", **paper)["data"])
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b(?!s)", printed)) <= 4
