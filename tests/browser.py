"""A headless Chromium, driven by its DevTools protocol over a pipe: no package and no port is needed."""

import base64
import json
import os
import shutil
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
"""The browser's path; None where there is none."""

KEYS = {"Enter": 13, "Tab": 9, "Backspace": 8, "ArrowLeft": 37, "ArrowRight": 39, " ": 32}

ENDS = """
import os, sys
ends = [os.dup(int(end)) for end in sys.argv[1:3]]
while min(ends) < 5:
    ends = [os.dup(end) for end in ends]
for number, end in enumerate(ends, 3):
    os.dup2(end, number)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Makes two ends of pipes its files 3 and 4, where Chromium looks for them, and becomes Chromium."""


class Browser:
    """One page of a browser: it opens addresses, presses keys, clicks and runs scripts."""

    def __init__(self, process, to, back):
        self.process, self.to, self.back = process, to, back
        self.number, self.buffer, self.events, self.session = 0, b"", deque(maxlen=1000), None
        target = self("Target.createTarget", url="about:blank")["targetId"]
        self.session = self("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self("Page.enable")

    def __call__(self, method, **parameters):
        """The result of a method of the protocol."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        message |= {"sessionId": self.session} if self.session else {}
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while (answer := self._message()).get("id") != self.number:
            self.events.append(answer.get("method"))
        assert "error" not in answer, answer
        return answer["result"]

    def _message(self):
        while b"\0" not in self.buffer:
            more = os.read(self.back, 2**20)
            assert more, "the browser has gone"
            self.buffer += more
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def open(self, path: Path):
        """Open a file, and wait until it is read."""
        self.events.clear()
        self("Page.navigate", url=path.absolute().as_uri())
        while "Page.loadEventFired" not in self.events:
            self.events.append(self._message().get("method"))

    def run(self, script: str):
        """The value of a script."""
        found = self("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def press(self, key: str):
        """Press a key and let it go, as a person does."""
        code = KEYS.get(key, ord(key.upper()[0]))
        shared = {"key": key, "windowsVirtualKeyCode": code}
        text = "\r" if key == "Enter" else key if len(key) == 1 else None
        self("Input.dispatchKeyEvent", type="keyDown", **shared, **({"text": text} if text else {}))
        self("Input.dispatchKeyEvent", type="keyUp", **shared)

    def click(self, selector: str):
        """Click the middle of the first element that is shown."""
        find = f"[...document.querySelectorAll({json.dumps(selector)})].find(one => one.checkVisibility())"
        self.run(f"{find}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
        x, y, w, h = self.run(f"(b => [b.x, b.y, b.width, b.height])({find}.getBoundingClientRect())")
        shared = {"x": x + w / 2, "y": y + h / 2, "button": "left", "clickCount": 1}
        self("Input.dispatchMouseEvent", type="mousePressed", **shared)
        self("Input.dispatchMouseEvent", type="mouseReleased", **shared)

    def size(self, width: int, height: int = 900):
        """Make the window so wide and high, in pixels of CSS."""
        shared = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self("Emulation.setDeviceMetricsOverride", **shared)

    def picture(self, path: Path):
        """Write what the window shows to a PNG file."""
        path.write_bytes(base64.b64decode(self("Page.captureScreenshot")["data"]))

    def roles(self) -> list[tuple[str, str]]:
        """Role and name of everything that a screen reader is told of."""
        nodes = self("Accessibility.getFullAXTree")["nodes"]
        shown = [node for node in nodes if not node["ignored"]]
        return [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in shown]


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """A browser whose profile and downloads are in a folder: opened again on it, it knows what it has kept."""
    (to_read, to), (back, back_write) = os.pipe(), os.pipe()
    flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
    flags += ["--remote-debugging-pipe", f"--user-data-dir={folder / 'profile'}", "about:blank"]

    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "pass_fds": (to_read, back_write)}
    process = subprocess.Popen([sys.executable, "-c", ENDS, str(to_read), str(back_write), CHROMIUM, *flags], **quiet)
    for one in (to_read, back_write):
        os.close(one)
    try:
        page = Browser(process, to, back)
        page("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder), eventsEnabled=False)
        yield page
        page.session = None
        page("Browser.close")  # it writes what it keeps
        process.wait(60)
    finally:
        process.kill()
        process.wait()
        os.close(to)
        os.close(back)
