"""Draw the rooms of the package, floor above floor: ``python docs/house_picture.py`` writes ``docs/static/house.svg``.

Floors and their order are those of ``tests/house.py``, by which imports are checked; a room's line is the first line of
its docstring.
"""

import ast
import sys
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "static" / "house.svg"
sys.path.insert(0, str(ROOT / "tests"))
import house  # noqa: E402  # it stands among the tests

WIDTH, HEIGHT, GAP, MARGIN = 1000, 46, 6, 34  # of the picture, of a floor, between boxes, and for the arrow
LETTERS = 6.1  # width of a letter of a room's line, about
COLOURS = {"data": "#dbe9f6", "models": "#dff0dc", "inference": "#fbe8d3", "cli": "#e8e4f1"}
"""By the folder at the top; other rooms are grey."""


def floors() -> list[tuple[str, ...]]:
    """The rooms of each floor from the top down, without single files of a package's door."""
    kept = [tuple(room for room in level if "__" not in room) for level in house.FLOORS]
    return [level for level in reversed(kept) if level]


def line_of(room: str) -> str:
    """The first line of a room's docstring, without its full stop."""
    path = ROOT / room
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    text = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0].replace("`", "").rstrip(".")


def box(room: str, x: float, y: float, width: float) -> str:
    """One room: a rectangle with its name and its line."""
    most = int((width - 20) / LETTERS)
    line = line_of(room)
    shown = line if len(line) <= most else f"{line[: most - 1].rstrip(' ,;:')}…"
    colour = COLOURS.get(room.partition("/")[0], "#eeeeee")
    return (
        f'<g><title>{escape(line)}</title><rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{HEIGHT}" rx="5" '
        f'fill="{colour}" stroke="#00000030"/><text x="{x + 10:.0f}" y="{y + 18:.0f}" font-weight="600" font-size="13">'
        f'{escape(room)}</text><text x="{x + 10:.0f}" y="{y + 35:.0f}" font-size="11.5" fill="#444">'
        f"{escape(shown)}</text></g>"
    )


def picture() -> str:
    """The picture as SVG."""
    levels = floors()
    height = len(levels) * (HEIGHT + GAP) + GAP
    boxes = []
    for place, level in enumerate(levels):
        width = (WIDTH - MARGIN - GAP * (len(level) + 1)) / len(level)
        y = GAP + place * (HEIGHT + GAP)
        boxes += [box(room, MARGIN + GAP + i * (width + GAP), y, width) for i, room in enumerate(level)]
    arrow = (
        f'<path d="M17 {GAP + 8} V{height - 16}" stroke="#777" stroke-width="1.5"/>'
        f'<path d="M12 {height - 18} L17 {height - 8} L22 {height - 18} Z" fill="#777"/>'
        f'<text x="12" y="{height / 2:.0f}" font-size="11.5" fill="#555" text-anchor="middle" '
        f'transform="rotate(-90 12 {height / 2:.0f})">imports run downward only</text>'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" role="img" '
        f'aria-label="The rooms of crowdppl, by floor"><rect width="{WIDTH}" height="{height}" fill="#ffffff"/>'
        f"{arrow}{''.join(boxes)}</svg>\n"
    )


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
