"""Compiled programs: one for each size, a bounded number at a time, and freed when they are let go."""

import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from kept_programs import forget_programs, n_kept

from crowdppl.inference.densities import programs
from crowdppl.inference.densities.programs import compiled

on_linux = pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="this system does not count memory maps")


@pytest.fixture
def nothing_kept():
    forget_programs()
    yield
    forget_programs()


def doubled(x, *, times=1):
    for _ in range(times):
        x = 2 * jnp.sort(x)
    return x


def test_a_program_is_kept_for_each_size_type_and_static_argument(nothing_kept):
    function = compiled(doubled, static=("times",))
    for x, times in ((np.ones(3), 1), (np.zeros(3), 1), (np.ones(4), 1), (np.ones(4), 2), (np.ones(4, int), 1)):
        np.testing.assert_array_equal(function(x, times=times), doubled(x, times=times))
    assert n_kept() == 4


def test_a_compiled_function_within_another_is_part_of_it(nothing_kept):
    inner = compiled(doubled)
    np.testing.assert_array_equal(compiled(lambda x: inner(x) + 1)(np.ones(3)), 3 * np.ones(3))
    assert n_kept() == 1


def test_programs_not_used_for_longest_are_let_go_first(nothing_kept, monkeypatch):
    monkeypatch.setattr(programs, "MOST_PROGRAMS", 3)
    traced = []

    @compiled
    def function(x):
        traced.append(len(x))
        return x + 1

    for size in (1, 2, 3, 1, 4, 1, 2):  # 4 lets 2 go, since 1 was used again
        function(np.ones(size))
    assert traced == [1, 2, 3, 4, 2]
    assert n_kept() == 3


def maps_of(n_programs):
    """Memory maps that so many programs hold, while they are kept."""
    function = compiled(doubled, static=("times",))
    before = programs._n_maps()
    for size in range(100, 100 + n_programs):
        function(np.ones(size), times=3)
    return programs._n_maps() - before


@on_linux
def test_memory_maps_of_programs_that_are_let_go_are_given_back(nothing_kept):
    before = programs._n_maps()
    assert maps_of(30) > 60
    forget_programs()
    assert programs._n_maps() < before + 30


@pytest.mark.slow
@on_linux
def test_a_process_stays_below_its_share_of_memory_maps(nothing_kept, monkeypatch):
    gained = maps_of(30)
    forget_programs()
    most = programs._n_maps() + gained // 3
    monkeypatch.setattr(programs, "_most_maps", lambda: most)
    monkeypatch.setattr(programs, "FEWEST", 8)
    assert maps_of(30) < gained / 2
    assert programs.FEWEST <= n_kept() < 20


LOOP = """
import gc, resource, sys
import crowdppl as cp

def maps():
    gc.collect()
    return sum(1 for _ in open("/proc/self/maps"))

from crowdppl.models import STORIES
stories = [name for name in STORIES if name not in ("two_coin", "item_response")]
found = []
for number in range(int(sys.argv[1])):
    annotations, _ = cp.simulate("dawid_skene", n_tasks=20 + 37 * (number % 7), n_workers=5 + number % 9, n_classes=3,
                                 annotations_per_task=3, seed=number)
    annotations = cp.Annotations.from_frame(annotations.to_frame()[["task", "worker", "label"]], ordered=True)
    cp.fit(stories[number % len(stories)], annotations, progress=False, max_iterations=5).labels
    found.append(maps())
print(found[len(found) // 3], max(found), found[-1])
"""


@on_linux
@pytest.mark.slow
def test_memory_maps_stay_flat_over_fits_of_all_stories_and_many_sizes():
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LOOP, "300"], capture_output=True, text=True, check=True
    )
    early, most, last = map(int, ran.stdout.split())
    limit = int(Path("/proc/sys/vm/max_map_count").read_text())
    assert most < limit / 4 + 1000
    assert last < early * 1.2 + 1000


def test_a_program_that_does_much_by_doing_little_often_is_compiled_with_care(nothing_kept, monkeypatch):
    """On the CPU: ten numbers for each of a hundred keys are as much work as a thousand numbers."""
    monkeypatch.setattr(programs, "LITTLE", 500)
    monkeypatch.setattr(programs, "SOME", 5000)
    given = []
    monkeypatch.setattr(programs.jax, "jit", lambda function, **options: given.append(options) or function)
    monkeypatch.setattr(programs.jax, "default_backend", lambda: "cpu")
    monkeypatch.delenv("XLA_FLAGS")
    care = (
        (True, None, 100),
        (True, "keys", 100),
        (True, "keys", 20),
        (True, "keys", 6000),
        (False, None, 100),
        ("sooner", None, 1),
        ("looped", None, 100),
        ("looped", None, 1000),
    )
    for once, times, n_keys in care:
        compiled(lambda x, keys: x, once=once, times=times)(np.ones(10), np.ones(n_keys))
    levels = [options["compiler_options"].get(programs.LEVEL) for options in given]
    assert levels == [0, 1, 1, None, None, 1, 1, None]


def test_a_level_that_the_user_names_is_that_of_all_programs(nothing_kept, monkeypatch):
    given = []
    monkeypatch.setattr(programs.jax, "jit", lambda function, **options: given.append(options) or function)
    monkeypatch.setattr(programs.jax, "default_backend", lambda: "cpu")
    monkeypatch.setenv("XLA_FLAGS", f"--{programs.LEVEL}=2")
    compiled(lambda x: x, once=True)(np.ones(10))
    assert given[0]["compiler_options"] == {}
