"""Where pages are written: whole or not at all, and refused before anything is computed."""

import os

import pytest

import crowdppl as cp
from crowdppl.inference.report import write
from crowdppl.inference.report.write import report


@pytest.fixture
def without_work(monkeypatch):
    def refuse(*_):
        raise AssertionError("something was computed before the path was looked at")

    monkeypatch.setattr(write, "subject", refuse)


def test_a_missing_folder_is_named(em_fits, tmp_path, without_work):
    with pytest.raises(cp.StorageError, match=r"there is no folder .*nowhere.* to write page.html to"):
        report(em_fits["one_coin"], tmp_path / "nowhere" / "page.html")


def test_a_folder_is_no_page(em_fits, tmp_path, without_work):
    with pytest.raises(cp.StorageError, match=r"is a folder; name a file in it"):
        em_fits["one_coin"].report(tmp_path)


@pytest.mark.parametrize("name", ["x.pdf", "x", "x.html.gz", ".html"])
def test_other_suffixes_than_those_of_html_are_refused(name, em_fits, tmp_path, without_work):
    with pytest.raises(cp.StorageError, match=rf"{name} must end in \.html or \.htm, such as .*\.html"):
        em_fits["one_coin"].report(tmp_path / name)


@pytest.mark.parametrize("source", [None, "dawid_skene", {}])
def test_what_is_no_fit_is_refused_by_its_type(source, tmp_path):
    with pytest.raises(ValueError, match=f"a report needs a fit.*, got a {type(source).__name__}"):
        report(source, tmp_path / "page.html")
    assert os.listdir(tmp_path) == []


def test_a_stack_takes_no_other_fits(em_stack, em_fits, tmp_path):
    with pytest.raises(ValueError, match="leave fits= out"):
        em_stack.report(tmp_path / "page.html", fits=em_fits)


def test_other_fits_may_not_bear_the_name_of_the_one_reported(em_fits, tmp_path):
    with pytest.raises(ValueError, match="another fit named 'one_coin'"):
        report(em_fits["one_coin"], tmp_path / "page.html", fits={"one_coin": em_fits["dawid_skene"]})
