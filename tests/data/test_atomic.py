"""Files and folders are written whole or not at all."""

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import crowdppl as cp
from crowdppl.data.atomic import check_new_file, whole_file, whole_folder, write_whole
from crowdppl.data.errors import StorageError


def fail_after_writing(part):
    part.write_text("half")
    raise ZeroDivisionError


def make_folder_of_another(place):
    place.mkdir()
    (place / "theirs").touch()


def full(*_):
    raise OSError(28, "No space left on device")


def test_the_error_is_the_one_that_users_catch():
    assert cp.StorageError is StorageError


def test_a_file_is_replaced_and_readable_as_other_files_are(tmp_path):
    page, other = tmp_path / "page.html", tmp_path / "other"
    page.write_text("old")
    write_whole(page, "naïve 猫 \ud800\n")
    other.write_text("")
    assert page.read_bytes() == "naïve 猫 ?\n".encode()
    assert page.stat().st_mode == other.stat().st_mode
    assert sorted(os.listdir(tmp_path)) == ["other", "page.html"]


def test_the_longest_name_that_a_disk_takes_can_be_written(tmp_path):
    for name in ("x" * 255, "猫" * 85):
        write_whole(tmp_path / name, "content")
        assert (tmp_path / name).read_text() == "content"


@pytest.mark.parametrize("step", ["replace", "write_text"])
def test_a_file_stays_when_the_new_one_cannot_be_written(tmp_path, monkeypatch, step):
    page = tmp_path / "page.html"
    page.write_text("old")
    monkeypatch.setattr(Path, step, full if step == "replace" else lambda *_, **__: full())
    with pytest.raises(StorageError, match="cannot be written: No space left"):
        write_whole(page, "new")
    monkeypatch.undo()
    assert page.read_text() == "old"
    assert os.listdir(tmp_path) == ["page.html"]


def test_a_block_that_fails_leaves_the_file_as_it_was(tmp_path):
    (tmp_path / "a.nc").write_text("old")
    with pytest.raises(ZeroDivisionError), whole_file(tmp_path / "a.nc") as part:
        fail_after_writing(part)
    assert (tmp_path / "a.nc").read_text() == "old"
    assert os.listdir(tmp_path) == ["a.nc"]


def test_a_file_in_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(StorageError, match="cannot be written: No such file or directory"):
        write_whole(tmp_path / "nowhere" / "a", "text")


def test_a_folder_appears_with_all_its_files_and_the_usual_permissions(tmp_path):
    with whole_folder(tmp_path / "a" / "b") as folder:
        assert not (tmp_path / "a" / "b").exists()
        (folder / "deep").mkdir()
        (folder / "deep" / "file").write_text("content")
    assert (tmp_path / "a" / "b" / "deep" / "file").read_text() == "content"
    assert os.listdir(tmp_path / "a") == ["b"]
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == stat.S_IMODE((tmp_path / "a").stat().st_mode)


def test_a_folder_with_something_in_it_is_replaced_only_on_request(tmp_path):
    (tmp_path / "old").touch()
    with pytest.raises(StorageError, match="has something in it"), whole_folder(tmp_path):
        pytest.fail("the block has begun")
    place = tmp_path / "results"
    for name in ("first", "second"):
        with whole_folder(place, overwrite=True) as folder:
            (folder / name).touch()
        assert os.listdir(place) == [name]
    assert sorted(os.listdir(tmp_path)) == ["old", "results"]


def test_what_came_into_the_place_meanwhile_is_not_overwritten(tmp_path):
    place = tmp_path / "results"
    with pytest.raises(StorageError, match="has something in it"), whole_folder(place):
        make_folder_of_another(place)
    assert os.listdir(tmp_path) == ["results"]
    assert os.listdir(place) == ["theirs"]


def test_an_earlier_folder_comes_back_when_the_new_one_cannot_take_its_place(tmp_path, monkeypatch):
    place = tmp_path / "results"
    place.mkdir()
    (place / "old").touch()
    replace = Path.replace

    def refuse_new(self, target):
        if (self / "new").exists():
            full()
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", refuse_new)
    with pytest.raises(StorageError, match="No space left"), whole_folder(place, overwrite=True) as folder:
        (folder / "new").touch()
    monkeypatch.undo()
    assert os.listdir(place) == ["old"]
    assert os.listdir(tmp_path) == ["results"]


def test_a_block_that_fails_leaves_neither_folder_nor_parents(tmp_path):
    with pytest.raises(ZeroDivisionError), whole_folder(tmp_path / "a" / "b" / "c") as folder:
        fail_after_writing(folder / "file")
    assert os.listdir(tmp_path) == []


def test_a_full_disk_is_told_by_the_folder_that_was_asked_for(tmp_path):
    """HDF5 said at length which hidden file it could not close."""
    place = tmp_path / "results"
    for number in (errno.ENOSPC, errno.EFBIG):
        with pytest.raises(StorageError) as told, whole_folder(place) as outer, whole_folder(outer / "saved") as inner:
            raise OSError(number, f"Can't close file (file write failed, filename = '{inner / 'posterior.nc'}')")
        assert str(told.value).startswith(f"{place / 'saved'} cannot be written: {os.strerror(number)}; make room")
    with pytest.raises(FileNotFoundError), whole_folder(place):
        (tmp_path / "annotations.csv").read_text()
    assert os.listdir(tmp_path) == []


def test_a_place_where_no_folder_can_be_is_refused(tmp_path):
    (tmp_path / "file").touch()
    for place, message in ((tmp_path / "file", "is a file"), (tmp_path / "file" / "a", "cannot be written")):
        with pytest.raises(StorageError, match=message), whole_folder(place):
            pytest.fail("the block has begun")


def test_a_place_for_a_file_is_checked_before_anything_is_computed(tmp_path):
    check_new_file(tmp_path / "page.HTML", (".html", ".htm"))
    check_new_file(tmp_path / "anything")
    with pytest.raises(StorageError, match=r"page\.pdf must end in \.html or \.htm, such as .*page\.html"):
        check_new_file(tmp_path / "page.pdf", (".html", ".htm"))
    with pytest.raises(StorageError, match=r"a folder; .*report\.html"):
        check_new_file(tmp_path, (".html",))
    with pytest.raises(StorageError, match=r"there is no folder .*nowhere to write page to"):
        check_new_file(tmp_path / "nowhere" / "page")
    place = tmp_path / "gold.csv"
    place.touch()
    check_new_file(place, overwrite=False)
    place.write_text("task,label\n")
    check_new_file(place)
    with pytest.raises(StorageError, match=r"gold\.csv has something in it; name a new file, or give overwrite=True"):
        check_new_file(place, overwrite=False)


KILLED = """
import os, signal, sys
from crowdppl.data.atomic import {kind}
with {kind}(sys.argv[1]{options}) as part:
    {writes}
    os.kill(os.getpid(), signal.SIGKILL)
"""


def killed(place, kind, writes, options=""):
    """Write to a place in a process that is killed meanwhile."""
    code = KILLED.format(kind=kind, writes=writes, options=options)
    done = subprocess.run([sys.executable, "-c", code, place], check=False)
    assert done.returncode == -9


@pytest.mark.skipif(os.name != "posix", reason="other systems do not say whether a process runs")
def test_what_a_killed_process_left_goes_with_the_next_write_to_the_same_place(tmp_path):
    killed(tmp_path / "page.html", "whole_file", "part.write_text('half')")
    killed(tmp_path / "results", "whole_folder", "(part / 'half').touch()")
    killed(tmp_path / "others", "whole_folder", "(part / 'half').touch()")
    assert len(os.listdir(tmp_path)) == 3
    write_whole(tmp_path / "page.html", "whole")
    with whole_folder(tmp_path / "results") as folder:
        (folder / "whole").touch()
    left = sorted(os.listdir(tmp_path))
    assert left[1:] == ["page.html", "results"]
    assert left[0].startswith(".others.")


def test_what_a_running_process_or_another_machine_writes_stays(tmp_path):
    place = tmp_path / "results"
    theirs = tmp_path / ".results.0badcafe-1-00000000.part"  # of no process of this machine
    theirs.mkdir()
    with whole_folder(place) as first:
        with whole_folder(tmp_path / "results2") as _:
            assert first.exists()
        with pytest.raises(ZeroDivisionError), whole_folder(place) as second:
            fail_after_writing(second / "file")
        assert first.exists()
        (first / "file").touch()
    assert sorted(os.listdir(tmp_path)) == [theirs.name, "results", "results2"]


@pytest.mark.skipif(os.name != "posix", reason="other systems do not say whether a process runs")
def test_the_only_copy_of_an_earlier_folder_is_never_removed(tmp_path):
    place = tmp_path / "results"
    place.mkdir()
    (place / "old").touch()
    puts_aside = "from crowdppl.data import atomic; old = atomic._new_folder(atomic.Path(sys.argv[1]), 'old'); "
    killed(place, "whole_folder", puts_aside + "os.replace(sys.argv[1], old / 'results')", ", overwrite=True")
    with pytest.raises(ZeroDivisionError), whole_folder(place) as folder:
        fail_after_writing(folder / "file")
    (kept,) = tmp_path.iterdir()
    assert os.listdir(kept / "results") == ["old"]
    with whole_folder(place) as folder:
        (folder / "new").touch()
    with whole_folder(place, overwrite=True) as folder:  # now the place is taken
        (folder / "new").touch()
    assert os.listdir(tmp_path) == ["results"]


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="no folder here refuses even the superuser")
@pytest.mark.parametrize("kind", [whole_file, whole_folder])
def test_a_place_that_takes_no_files_is_told_by_the_path_that_was_given(kind):
    with pytest.raises(StorageError) as told, kind("/proc/self/results") as part:
        part.write_text("content")
    assert str(told.value).startswith("/proc/self/results cannot be written: ")
    assert "name a place" in str(told.value)
    assert ".part" not in str(told.value)
