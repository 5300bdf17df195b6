"""Files of fits that chance has altered: an error that says so, or the same fit; never a wrong one, nor a traceback."""

import copy
import json
import os
from pathlib import Path

import numpy as np
import pytest
from saved_fits import copied, reseal, same

import crowdppl as cp
from crowdppl import StorageError
from crowdppl.inference.storage.manifest import MANIFEST

POSTERIOR = "posterior.nc"
FILES = (POSTERIOR, "weights.safetensors")

FEW, FEW_SEALED = 60, 12
"""Mutations of each file in the default suite: as they are, and with a manifest that was made anew."""

MANY = int(os.environ.get("CROWDPPL_MUTATIONS", "10000"))
"""The same in the slow suite."""

ODD = (None, True, -1, 0, 2**70, 1e308, "", "\0", "os.system", "../..", [], {}, [[]], {"range": 2**62}, {"uuid": "x"})


def flipped(content, rng):
    """Some bits are others."""
    found = np.frombuffer(content, np.uint8).copy()
    at = rng.integers(0, len(found), rng.integers(1, 9))
    found[at] ^= (1 << rng.integers(0, 8, len(at))).astype(np.uint8)
    return found.tobytes()


def cut(content, rng):
    """The end is missing."""
    return content[: rng.integers(0, len(content))]


def moved(content, rng):
    """A part is missing, stands twice, or is random."""
    a, b = sorted(rng.integers(0, len(content) + 1, 2))
    part = [b"", content[a:b] * 2, rng.bytes(int(b - a)), bytes(int(b - a))][rng.integers(4)]
    return content[:a] + part + content[b:]


def without_a_key(content, rng):
    """JSON: a key or an item somewhere is missing, or is something odd."""
    value = json.loads(content)
    places = [place for place in _places(value) if place]
    *path, last = places[rng.integers(len(places))]
    holder = copy.copy(value) if not path else value
    inner = holder
    for part in path:
        inner = inner[part]
    if rng.random() < 0.5:
        del inner[last]
    else:
        inner[last] = ODD[rng.integers(len(ODD))]
    return json.dumps(holder).encode()


def _places(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from _places(inner, (*path, key))


def exchanged(content, rng, others):
    """It is another file."""
    return others[rng.integers(len(others))]


def mutations(name, content, others, n, seed):
    """Altered contents of a file."""
    rng = np.random.default_rng(seed)
    ways = [flipped, cut, moved, exchanged, *([without_a_key] * 3 if name.endswith(".json") else [])]
    for _ in range(n):
        way = ways[rng.integers(len(ways))]
        yield way(content, rng, others) if way is exchanged else way(content, rng)


def is_resealed(folder):
    """Whether the folder could be sealed: what is no manifest any more has no parts whose files have checksums."""
    try:
        reseal(folder)
    except (ValueError, KeyError, TypeError, AttributeError, OSError):
        return False
    return True


def check_mutations(saved, tmp_path, kind, name, *, n, sealed, seed=0):
    """Load every mutation; what loads is the same fit, or with a new manifest one whose probabilities are sound.

    Returns:
        How many were refused, and how many loaded.
    """
    folders, fits = saved
    folder = copied(folders[kind], tmp_path / "fit")
    content = (folder / name).read_bytes()
    others = [path.read_bytes() for other in folders.values() for path in sorted(Path(other).iterdir())]
    refused = loaded = 0
    for changed in mutations(name, content, others, n, seed):
        if changed == content:
            loaded += 1  # nothing was altered
            continue
        (folder / name).write_bytes(changed)
        if sealed and not is_resealed(folder):
            refused += 1
            continue
        try:
            found = cp.load_fit(folder)
        except StorageError:
            refused += 1
            continue
        loaded += 1
        if sealed:
            assert np.isfinite(found.posterior).all()
            np.testing.assert_allclose(found.posterior.sum(-1, dtype=float), 1.0, atol=2e-3)
            assert len(found.labels) == found.annotations.n_tasks
        else:
            same(found, fits[kind])
    return refused, loaded


@pytest.mark.parametrize("name", [*FILES, MANIFEST])
def test_an_altered_file_is_refused_or_says_the_same(saved, tmp_path, name):
    refused, loaded = check_mutations(saved, tmp_path, "network", name, n=FEW, sealed=False)
    assert refused > 0.9 * FEW
    assert refused + loaded == FEW


@pytest.mark.parametrize("name", [*FILES, MANIFEST])
def test_an_altered_file_with_a_new_manifest_is_refused_or_has_sound_probabilities(saved, tmp_path, name):
    refused, loaded = check_mutations(saved, tmp_path, "network", name, n=FEW_SEALED, sealed=True)
    assert refused + loaded == FEW_SEALED


@pytest.mark.slow
@pytest.mark.parametrize("sealed", [False, True], ids=["as it is", "with a new manifest"])
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *(("network", name) for name in (*FILES, MANIFEST)),
        ("baseline", MANIFEST),
        ("nuts", MANIFEST),
        ("nuts", POSTERIOR),
    ],
)
def test_many_altered_files_of_each_kind(saved, tmp_path, kind, name, sealed):
    refused, loaded = check_mutations(saved, tmp_path, kind, name, n=MANY, sealed=sealed, seed=1)
    print(f"{kind} {name}: {refused:,} refused, {loaded:,} loaded")  # noqa: T201  # what `pytest -s` reports
    assert refused + loaded == MANY
