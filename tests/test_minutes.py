"""CROWDPPL_TEST_MINUTES: when it is over no test begins, and every file has its turn on some day."""

import importlib.util
from itertools import count
from types import SimpleNamespace

import house
import pytest

FILES = ("test_a.py", "test_b.py", "test_c.py")
TWO_TESTS = """
def test_one():
    pass

def test_two():
    pass
"""


class Reports:
    """What pytest says of each test: its name and what became of it, in the order of the tests."""

    def __init__(self):
        self.skipped, self.run = {}, []

    def pytest_runtest_logreport(self, report):
        if report.skipped:
            self.skipped[report.nodeid] = report.longrepr[2]
        elif report.when == "call":
            assert report.passed
            self.run.append(report.nodeid)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run three files of two tests with the suite's conftest, by a clock that a test takes so many seconds of."""
    for name in FILES:
        (tmp_path / name).write_text(TWO_TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]")

    def reports(minutes, *, seconds, day="2026-11-29"):
        monkeypatch.setenv("CROWDPPL_TEST_MINUTES", minutes)
        monkeypatch.setenv("CROWDPPL_TEST_DAY", day)
        monkeypatch.setenv("CROWDPPL_TEST_BEGUN", "1000")
        spec = importlib.util.spec_from_file_location("suite_in_minutes", house.ROOT / "tests" / "conftest.py")
        suite = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(suite)
        del suite.pytest_collection_finish  # which freezes what this process has
        begins = count(1000, seconds)
        suite.time = SimpleNamespace(time=lambda: next(begins))
        found = Reports()
        options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--import-mode=importlib"]
        assert pytest.main([*options, "-c", str(tmp_path / "pytest.ini"), str(tmp_path)], plugins=[suite, found]) == 0
        return found

    return reports


def test_no_test_begins_when_the_minutes_are_over_and_those_left_count_as_skipped(run):
    reports = run("1.5", seconds=40)  # tests begin at 0, 40, 80, 120, … seconds, and 90 are given
    assert len(reports.run) == 3
    assert len(reports.skipped) == 3
    assert not set(reports.run) & set(reports.skipped)
    assert set(reports.skipped.values()) == {"Skipped: 1.5 minutes are over: CROWDPPL_TEST_MINUTES"}


def test_without_minutes_every_test_is_run_in_the_order_of_the_files(run):
    reports = run("", seconds=10_000)
    assert reports.run == [f"{name}::{test}" for name in FILES for test in ("test_one", "test_two")]
    assert reports.skipped == {}


def test_with_minutes_the_file_that_comes_first_is_another_by_the_day_and_the_same_all_day(run):
    firsts = [run("1", seconds=25, day=f"2026-11-{day:02}").run[0].split("::")[0] for day in range(1, 11)]
    assert set(firsts) == set(FILES)
    assert run("1", seconds=25, day="2026-11-01").run[0].split("::")[0] == firsts[0]
