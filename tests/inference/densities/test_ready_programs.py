"""Programs that are kept ready to run: found again by what they follow from, and by nothing less."""

import json
import os
import subprocess
import sys

import jax
import numpy as np
import pytest

import crowdppl as cp
from crowdppl.data.ids import Ids
from crowdppl.data.kinds import NOMINAL
from crowdppl.data.padding import unread
from crowdppl.inference.densities import portable, ready_programs
from crowdppl.inference.densities.ready_programs import NotDescribed, described
from crowdppl.models import STORIES, StoryError

FIT = """
import json, sys, warnings, jax, numpy as np, crowdppl as cp
warnings.simplefilter("ignore")
lowered = []
jax.monitoring.register_event_duration_secs_listener(
    lambda event, _, **__: lowered.append(event) if event.endswith("to_mlir_module_duration") else None
)
story = {story}
annotations = cp.Annotations.from_dict({{t: {{f"w{{w}}": (t * w) % 3 for w in range(4)}} for t in range(12)}})
fit = cp.fit(story, annotations, progress=False, {options})
workers = fit.workers.select_dtypes("number")
found = [values.to_numpy(float).tobytes().hex() for values in (fit.probabilities, workers)]
print(json.dumps([found, len(lowered)]))
"""


def run(folder, story="'dawid_skene'", options=""):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_", "CROWDPPL_CACHE"))}
    code = FIT.format(story=story, options=options)
    made = subprocess.run(
        [sys.executable, "-c", code],
        env=environment | {"CROWDPPL_CACHE": str(folder)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    return json.loads(made.stdout.splitlines()[-1])


def ready(folder):
    return sorted(folder.glob("*-ready"))


def test_the_next_process_lowers_none_of_the_fits_programs_and_finds_the_same(tmp_path):
    first, n_first = run(tmp_path)
    kept = ready(tmp_path)
    again, n_again = run(tmp_path)
    assert again == first
    assert len(kept) >= 8
    assert n_again <= n_first - len(kept)
    assert ready(tmp_path) == kept
    for path in kept:  # damaged: compiled again
        path.write_bytes(path.read_bytes()[:-20])
    third, n_third = run(tmp_path)
    assert third == first
    assert n_third > n_again
    fourth, n_fourth = run(tmp_path)  # what was compiled again is whole
    assert (fourth, n_fourth) == (first, n_again)


def test_what_is_known_of_sizes_is_kept_and_found_anew_where_they_are_others(tmp_path, monkeypatch):
    monkeypatch.setattr(ready_programs, "folder_in_use", lambda: tmp_path)
    monkeypatch.setattr(ready_programs, "described", lambda value: described("" if callable(value) else value))
    calls = []

    def n_numbers(values):
        calls.append(values)
        return values.size

    assert [ready_programs.known(n_numbers, np.full(3, fill)) for fill in (1.0, 2.0)] == [3, 3]
    assert len(calls) == 1
    assert ready_programs.known(n_numbers, np.zeros(4)) == 4
    kept = sorted(tmp_path.glob("*-known"))
    assert len(kept) == len(calls) == 2
    for path in kept:
        path.write_bytes(b"damaged")
    assert ready_programs.known(n_numbers, np.zeros(3)) == 3
    assert len(calls) == 3


@pytest.mark.slow
def test_another_option_is_another_program_and_a_story_of_a_users_own_is_not_kept(tmp_path):
    run(tmp_path)
    before = ready(tmp_path)
    wide, _ = run(tmp_path, options="diagonal=3.0")
    assert wide == run("off", options="diagonal=3.0")[0]
    after = ready(tmp_path)
    own, n_own = run(tmp_path, story="(lambda annotations: cp.models.one_coin(annotations))")
    again, n_again = run(tmp_path, story="(lambda annotations: cp.models.one_coin(annotations))")
    assert own == again
    assert n_again >= n_own - 1
    assert set(before) <= set(after)


def test_whatever_another_process_would_not_describe_alike_is_not_described():
    story = STORIES["dawid_skene"]
    for value in (lambda: 0, object(), np.array([object()]), Ids([f"t{i}" for i in range(2_000)]), [lambda: 0]):
        with pytest.raises(NotDescribed):
            described(value)

    def dawid_skene():
        """A function with the name of another."""

    dawid_skene.__module__, dawid_skene.__qualname__ = story.__module__, story.__qualname__
    with pytest.raises(NotDescribed):
        described(dawid_skene)
    assert described(story) == "crowdppl.models.dawid_skene.dawid_skene"


def test_what_differs_is_described_otherwise():
    values = [1, 1.0, True, "1", None, (1,), [1], {"a": 1}, {"a": 2}, np.ones(2), np.zeros(2), np.ones(2, int)]
    values += [Ids([0, 1]), Ids(["0", "1"]), NOMINAL, STORIES["one_coin"], STORIES["dawid_skene"]]
    assert len({described(value) for value in values}) == len(values)


def test_the_surroundings_have_the_code_the_libraries_and_the_options_of_jax(monkeypatch):
    said = ready_programs._surroundings()
    assert "models/dawid_skene.py" in said
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true")
    assert ready_programs._surroundings() != said


def test_a_function_of_identifiers_that_nobody_may_read_is_not_kept_and_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(ready_programs, "folder_in_use", lambda: tmp_path)
    structure = jax.tree.structure(unread(cp.load_dataset("anesthesia")))
    found = ready_programs.ready(ready_programs.described, {}, ["value"], [], structure, {})
    assert found is None
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("story", "options", "message"),
    [
        ("annotator_groups", {"groups": 13}, "groups=13: there are 12 rows of annotations"),
        ("common_individual", {"groups": 5, "kernels": "rows"}, "groups=5: there are 4 workers"),
    ],
)
def test_what_the_sizes_forbid_is_refused_where_programs_are_kept(tmp_path, monkeypatch, story, options, message):
    for module in (ready_programs, portable):
        monkeypatch.setattr(module, "folder_in_use", lambda: tmp_path)
    labels = {t: {f"w{w}": "abc"[(t * w) % 3] for w in range(4)} for t in range(3)}
    annotations = cp.Annotations.from_dict(labels, features={t: [1.0, t] for t in range(3)})
    for _ in range(2):
        with pytest.raises(StoryError, match=message):
            cp.fit(story, annotations, progress=False, **options)
