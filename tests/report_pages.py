"""A parser of the pages of reports, and annotations whose names would break a page that does not escape them."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import numpy as np
import pandas as pd

import crowdppl as cp

VOID = {"img", "meta", "br", "wbr", "input", "link"}
EVIL = "<script>document.title='run'</script>"
TASKS = [EVIL, "naïve & \"quoted\" 'task'", "猫🦊", "-1", "=1+1", "</td></table>", "x" * 200, "$a_b$", "שלום", "t9"]
WORKERS = ["Ωμέγα<b>", EVIL, "c, d", "a&amp;b", "w" * 80]
CLASSES = ["<i>no</i>", "yes&no"]


class Page(HTMLParser):
    """The elements of a page in order, with their attributes and text; elements that are not closed are an error."""

    def __init__(self, source):
        super().__init__()
        self.source, self.elements, self.stack, self.comments = str(source), [], [], []
        self.feed(self.source)
        self.close()
        assert not self.stack, f"never closed: {[e['tag'] for e in self.stack]}"

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"<{tag}> has an attribute twice: {names}"
        element = {"tag": tag, "text": "", "inside": [e["tag"] for e in self.stack], **dict(attrs)}
        self.elements.append(element)
        if tag not in VOID:
            self.stack.append(element)

    def handle_endtag(self, tag):
        assert self.stack, f"</{tag}> closes nothing"
        assert self.stack[-1]["tag"] == tag, f"</{tag}> closes <{self.stack[-1]['tag']}>"
        self.stack.pop()

    def handle_data(self, data):
        if not any(element["tag"] in ("pre", "script", "style") for element in self.stack):
            data = data.replace("\n", " ")  # as a browser shows it
        for element in self.stack:
            element["text"] += data

    def handle_comment(self, data):
        self.comments.append(data)

    def all(self, *tags):
        return [element for element in self.elements if element["tag"] in tags]

    @property
    def scripts(self):
        """The texts of the scripts that are code, and not data."""
        return [element["text"] for element in self.all("script") if element.get("type") != "application/json"]

    @property
    def details(self):
        """What a click shows, by what it is of: task or worker."""
        data = [json.loads(e["text"]) for e in self.all("script") if e.get("type") == "application/json"]
        return {one["of"]: one for one in data}

    def table(self, caption):
        """The texts of a table by row, the heading first; the table is found by the start of its caption."""
        figures = [e for e in self.all("figure") if (e.get("class") or "").startswith("table")]
        at = [f["text"].startswith(caption) for f in figures].index(True)
        start = self.elements.index(figures[at])
        rows = []
        for element in self.elements[start + 1 :]:
            if element["tag"] == "figure":
                break
            if element["tag"] == "tr":
                rows.append([])
            if element["tag"] in ("th", "td"):
                rows[-1].append(element["text"])
        return rows


def crowd(seed=0):
    """Annotations with names of every kind: all workers annotate all tasks but the last, which has no annotation."""
    rng = np.random.default_rng(seed)
    rows = [(t, w, CLASSES[(i + (rng.random() < 0.2)) % 2]) for i, t in enumerate(TASKS[:-1]) for w in WORKERS]
    frame = pd.DataFrame(rows, columns=["task", "worker", "label"])
    gold = {task: CLASSES[i % 2] for i, task in enumerate(TASKS[:6])}
    return cp.Annotations.from_frame(frame, tasks=TASKS, classes=CLASSES, gold=gold)
