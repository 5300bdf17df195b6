"""The way from ``cp.fit`` to the first gradient: files of the package that it leads through, and Python calls in them.

Everything is imported before, and nothing is compiled yet. Compiled programs are not kept on the disk here, since
looking at the folder takes a call for each.
"""

import os
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path

os.environ["CROWDPPL_CACHE"] = "off"
import typer
from support.report import Report

import crowdppl as cp

ROOT = Path(cp.__file__).resolve().parent
GRADIENT = "gradient"  # the function of inference/engines that takes it
ROOMS = ("data", "models", "inference")


class Arrived(Exception):
    """The first gradient is about to be taken."""


def main(most: int = 12, write: bool = False) -> None:
    """Measure, and print what was found.

    Args:
        most: files that are listed, those with the most calls first.
        write: refresh this section of RESULTS.md.
    """
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            if not {"pyro", "torch"} & set(path.parts):
                import_module(".".join(["crowdppl", *path.relative_to(ROOT).with_suffix("").parts]))
    calls: Counter[str] = Counter()

    def note(frame, event, argument) -> None:
        path = Path(os.path.realpath(frame.f_code.co_filename))
        if event != "call" or frame.f_code.co_filename[0] == "<":
            return
        if path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in ROOMS:
            calls[path.relative_to(ROOT).as_posix()] += 1
            if frame.f_code.co_name == GRADIENT:
                sys.setprofile(None)
                raise Arrived

    fit, annotations = cp.fit, cp.load_dataset("anesthesia")
    sys.setprofile(note)
    try:
        fit("dawid_skene", annotations, progress=False)
    except Arrived:
        pass
    finally:
        sys.setprofile(None)
    report = Report("From fit to the first gradient")
    report.note(f"{len(calls)} files, {calls.total():,} Python calls in them.")
    report.table("Calls by file", [{"file": name, "calls": n} for name, n in calls.most_common(most)])
    if write:
        report.write()


if __name__ == "__main__":
    typer.run(main)
