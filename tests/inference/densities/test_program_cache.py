"""Programs that one process has compiled are not compiled by the next, and nothing else depends on the folder."""

import json
import os
import subprocess
import sys
import time
import zlib
from collections import namedtuple

import jax
import pytest
from filelock import FileLock

from crowdppl.inference.densities import ready_programs
from crowdppl.inference.densities.ready_programs import VARIABLE, CacheWarning, use_program_cache

ANY_PROGRAM = """
import json, sys, warnings
import jax, jax.numpy as jnp
from crowdppl.inference.densities.ready_programs import use_program_cache
events = []
jax.monitoring.register_event_listener(lambda event, **_: events.append(event.rsplit("/", 1)[-1]))
jnp.ones(2) + 1  # compiled before the cache is used
use_program_cache()
use_program_cache()
result = float(jax.jit(lambda x: jnp.linalg.inv(x @ x.T + jnp.eye(3)).sum())(jnp.arange(9.0).reshape(3, 3)))
print(json.dumps([result, events.count("cache_misses"), events.count("cache_hits")]))
"""
FIT = """
import json, jax, crowdppl as cp
events = []
jax.monitoring.register_event_listener(lambda event, **_: events.append(event.rsplit("/", 1)[-1]))
fit = cp.fit("one_coin", cp.Annotations.from_dict({t: {w: (t + w) % 2 for w in range(3)} for t in range(4)}))
result = [fit.probabilities.to_numpy().tobytes().hex(), fit.outcome.history.tobytes().hex()]
print(json.dumps([result, events.count("cache_misses"), events.count("cache_hits")]))
"""


def start(code, **variables):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_", VARIABLE))}
    environment = kept | {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"} | variables
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-c", code], text=True, env=environment, **pipes)


def finish(process):
    """What was computed, the numbers of programs that were not in the cache and that were, standard error."""
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return *json.loads(out.splitlines()[-1]), err


def run(code, **variables):
    return finish(start(code, **variables))


def programs(folder):
    return sorted(folder.glob("*-cache"))


def test_a_fresh_process_with_a_warm_cache_compiles_nothing_and_fits_the_same_to_the_last_bit(tmp_path):
    first, missed, _, err = run(FIT, CROWDPPL_CACHE=str(tmp_path / "c"))
    assert err == ""
    ready = {path.name: path.stat().st_ino for path in (tmp_path / "c").glob("*-ready")}
    assert ready
    assert missed == len(programs(tmp_path / "c"))  # which JAX keeps, of operations outside of the fit's programs
    again, missed, _, err = run(FIT, CROWDPPL_CACHE=str(tmp_path / "c"))
    assert (missed, err) == (0, "")
    after = {path.name: path.stat().st_ino for path in (tmp_path / "c").glob("*-ready")}
    assert after == ready  # none was written anew
    without, _, hits, _ = run(FIT, CROWDPPL_CACHE="off")
    assert hits == 0
    assert first == again == without


def test_half_a_program_costs_one_warning_and_is_written_anew(tmp_path):
    whole, *_ = run(ANY_PROGRAM, CROWDPPL_CACHE=str(tmp_path))
    halved = max(programs(tmp_path), key=lambda path: path.stat().st_size)
    os.truncate(halved, halved.stat().st_size // 2)
    result, missed, _, err = run(ANY_PROGRAM, CROWDPPL_CACHE=str(tmp_path))
    assert (result, missed) == (whole, 1)
    assert err.count("Warning:") == 1
    assert "CacheWarning" in err
    result, missed, _, err = run(ANY_PROGRAM, CROWDPPL_CACHE=str(tmp_path))
    assert (result, missed, err) == (whole, 0, "")


def test_a_program_of_another_version_costs_one_warning(tmp_path):
    whole, *_ = run(ANY_PROGRAM, CROWDPPL_CACHE=str(tmp_path))
    max(programs(tmp_path), key=lambda path: path.stat().st_size).write_bytes(zlib.compress(b"of another version"))
    result, _, _, err = run(ANY_PROGRAM, CROWDPPL_CACHE=str(tmp_path))
    assert result == whole
    assert err.count("Warning:") == 1


def test_processes_at_once_share_a_folder(tmp_path):
    started = [start(ANY_PROGRAM, CROWDPPL_CACHE=str(tmp_path / "c")) for _ in range(3)]
    found = [finish(process) for process in started]
    assert len({result for result, *_ in found}) == 1
    assert [err for *_, err in found] == [""] * 3
    _, missed, _, err = run(ANY_PROGRAM, CROWDPPL_CACHE=str(tmp_path / "c"))
    assert (missed, err) == (0, "")


@pytest.fixture
def fresh(monkeypatch):
    """JAX as it is where nobody has set anything, and a process that has not asked for the cache."""
    names = (
        "jax_compilation_cache_dir",
        "jax_compilation_cache_max_size",
        "jax_persistent_cache_min_compile_time_secs",
    )
    before = {name: getattr(jax.config, name) for name in names}
    for name, value in zip(names, (None, -1, 1.0), strict=True):
        jax.config.update(name, value)
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(ready_programs, "_looked", {})
    ready_programs._turned_on.cache_clear()
    yield monkeypatch
    ready_programs._turned_on.cache_clear()
    for name, value in before.items():
        jax.config.update(name, value)


def test_the_folder_is_the_users_own(fresh, tmp_path):
    fresh.setenv("XDG_CACHE_HOME", str(tmp_path))
    fresh.setattr(ready_programs, "user_cache_path", lambda name, appauthor: tmp_path / name)
    use_program_cache()
    assert jax.config.jax_compilation_cache_dir == str(tmp_path / "crowdppl" / "programs")
    assert (tmp_path / "crowdppl" / "programs").stat().st_mode & 0o077 == 0


def test_what_the_user_has_set_of_jax_stays(fresh, tmp_path):
    jax.config.update("jax_compilation_cache_dir", str(tmp_path / "theirs"))
    fresh.setenv(VARIABLE, str(tmp_path / "ours"))
    use_program_cache()
    assert jax.config.jax_compilation_cache_dir == str(tmp_path / "theirs")
    assert jax.config.jax_compilation_cache_max_size == -1
    assert not (tmp_path / "ours").exists()


@pytest.mark.parametrize("word", ["off", "OFF", "0"])
def test_one_variable_switches_it_off(fresh, word):
    fresh.setenv(VARIABLE, word)
    use_program_cache()
    assert jax.config.jax_compilation_cache_dir is None


def test_a_folder_that_cannot_be_made_costs_one_warning(fresh, tmp_path):
    (tmp_path / "file").touch()
    fresh.setenv(VARIABLE, str(tmp_path / "file" / "folder"))
    with pytest.warns(CacheWarning, match=r"folder: Not a directory; set CROWDPPL_CACHE"):
        use_program_cache()
    use_program_cache()  # without a second one, which would be an error here
    assert jax.config.jax_compilation_cache_dir is None


def test_a_full_disk_costs_one_warning(fresh, tmp_path):
    usage = namedtuple("usage", "total used free")(10**9, 10**9, 0)
    fresh.setattr(ready_programs.shutil, "disk_usage", lambda _: usage)
    fresh.setenv(VARIABLE, str(tmp_path))
    with pytest.warns(CacheWarning, match="less than 64 MiB are free"):
        use_program_cache()
    assert jax.config.jax_compilation_cache_dir is None


def test_writes_that_fail_later_change_no_result_and_say_nothing(tmp_path):
    limited = "import resource, signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    limited += "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
    whole, *_ = run(ANY_PROGRAM, CROWDPPL_CACHE="off")
    result, _, _, err = run(limited + ANY_PROGRAM, CROWDPPL_CACHE=str(tmp_path))
    assert (result, err) == (whole, "")
    result, _, _, err = run(ANY_PROGRAM, CROWDPPL_CACHE=str(tmp_path))
    assert result == whole
    assert err.count("Warning:") == 1


def test_programs_not_used_for_longest_go_where_all_are_too_many(fresh, tmp_path):
    fresh.setenv(VARIABLE, str(tmp_path))
    fresh.setattr(ready_programs.bound, "__defaults__", (1000,))
    for age in range(12):
        path = tmp_path / f"jit_{age}-cache"
        path.write_bytes(zlib.compress(b"")[:1] * 100)
        os.utime(path, (time.time() + 1000 - age, time.time() - 1000 - age))  # the use counts, not the writing
    (tmp_path / "of-somebody-else").write_bytes(b"x" * 100)
    os.utime(tmp_path / "of-somebody-else", (0, 0))
    fresh.setattr(ready_programs, "_is_whole", lambda path: True)
    use_program_cache()
    assert {path.name for path in programs(tmp_path)} == {f"jit_{age}-cache" for age in range(6)}
    assert (tmp_path / "of-somebody-else").exists()


def test_no_process_waits_for_another_that_holds_the_folder(tmp_path):
    """JAX waits ten seconds for a lock at every program, where it bounds the folder itself."""
    with FileLock(tmp_path / ready_programs.LOCK):
        result, missed, _, err = run(ANY_PROGRAM, CROWDPPL_CACHE=str(tmp_path))
        again, n_missed, hits, _ = run(ANY_PROGRAM, CROWDPPL_CACHE=str(tmp_path))
    assert (again, err) == (result, "")
    assert missed > 0
    assert (n_missed, hits > 0) == (0, True)


def test_a_program_that_another_process_is_writing_or_has_deleted_is_compiled_without_a_word(tmp_path):
    run(ANY_PROGRAM, CROWDPPL_CACHE=str(tmp_path))
    halve = """
from pathlib import Path
for path in Path({folder!r}).glob("*-cache"):
    path.write_bytes(path.read_bytes()[:-20])
"""
    late = ANY_PROGRAM.replace("result =", halve.format(folder=str(tmp_path)).strip() + "\nresult =")
    _, _, _, err = run(late, CROWDPPL_CACHE=str(tmp_path))
    assert err == ""
