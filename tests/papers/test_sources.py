"""Digests of sources: they change with what a run computes, and with nothing else."""

from functools import partial
from types import SimpleNamespace

import pytest

from crowdppl.benchmarks.papers import sources
from crowdppl.benchmarks.papers.experiments import EXPERIMENTS, experiment
from crowdppl.benchmarks.papers.sources import changed, digests, how_many_changed, whole

FILES = {
    "data/read.py": "def read():\n    return 1\n",
    "data/exports/write.py": "def write():\n    return 1\n",
    "models/parts/coin.py": "RATE = 0.5\n",
    "inference/engines/em.py": "def em():\n    return RATE\n",
    "inference/plots/plot.py": "COLOUR = 'red'\n",
    "papers/coin.py": (
        "from .shared import METHODS, drawn as draw\n"
        "RATE, COLOUR = 1, 2\n"
        "SEEDS = 3\n"
        "CLAIMS = ('The first is better.',)\n"
        "def run(seed):\n    return draw(seed) * RATE\n"
        "def tables(frame):\n    return SEEDS, METHODS\n"
    ),
    "papers/shared.py": (
        "METHODS = 'first', 'second'\n"
        "def drawn(seed):\n    from .deeper import noise\n    return noise(seed)\n"
        "def shown():\n    return 1\n"
    ),
    "papers/deeper.py": "def noise(seed):\n    return seed + 1\n",
}


def digests_of(folder, monkeypatch, files):
    """The digests of a run of ``papers/coin.py`` in a package of these files."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    monkeypatch.setattr(sources, "ROOT", folder)
    sources._of_rooms.cache_clear()

    def run(seed):
        return None

    run.__qualname__ = "run"
    monkeypatch.setattr(sources.inspect, "getfile", lambda function: str(folder / "papers/coin.py"))
    try:
        return digests(SimpleNamespace(run=partial(run, seed=0)))
    finally:
        sources._of_rooms.cache_clear()


@pytest.mark.parametrize(
    ("path", "old", "new", "parts"),
    [
        ("data/read.py", "1", "2", ["data"]),
        ("models/parts/coin.py", "0.5", "0.6", ["models"]),
        ("inference/engines/em.py", "RATE", "-RATE", ["inference"]),
        ("inference/engines/em.py", "    return", "    '''Of EM.'''\n    # at the mode\n    return", []),
        ("inference/engines/em.py", "return RATE", "return  (RATE)", []),
        ("inference/plots/plot.py", "red", "blue", []),
        ("data/exports/write.py", "1", "2", []),
        ("papers/coin.py", "* RATE", "+ RATE", ["experiment"]),
        ("papers/coin.py", "COLOUR = 1", "COLOUR = 7", ["experiment"]),
        ("papers/coin.py", "SEEDS = 3", "SEEDS = 4", []),
        ("papers/coin.py", "better.", "worse.", []),
        ("papers/shared.py", "noise(seed)", "noise(seed + 1)", ["experiment"]),
        ("papers/shared.py", "'second'", "'third'", []),
        ("papers/shared.py", "return 1", "return 2", []),
        ("papers/deeper.py", "+ 1", "+ 2", ["experiment"]),
    ],
)
def test_a_digest_changes_with_what_a_run_computes_and_with_nothing_else(tmp_path, monkeypatch, path, old, new, parts):
    assert old in FILES[path]
    before = digests_of(tmp_path / "before", monkeypatch, FILES)
    after = digests_of(tmp_path / "after", monkeypatch, FILES | {path: FILES[path].replace(old, new, 1)})
    assert changed({"sources": before}, after) == parts
    assert (whole(before) == whole(after)) == (not parts)


def test_runs_are_counted_by_the_parts_that_changed():
    today = {"data": "a", "models": "b", "experiment": "c"}
    others = [today, today | {"data": "x"}, today | {"data": "x", "experiment": "y"}, {"data": "a", "models": "b"}]
    runs = [{"sources": each} for each in others]
    said = "3 of 4 runs are of other sources than today's: data (2), experiment (2)"
    assert how_many_changed(runs, today) == said
    assert how_many_changed([{}, *runs], today) == f"{said.replace('4', '5')}; of 1 no digests were kept"
    assert how_many_changed(runs[:1], today) == "0 of 1 runs are of other sources than today's"


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_of_an_experiment_what_its_run_reaches_counts_and_claims_do_not(name):
    reached = sources.reached(experiment(name).run)
    names = {bound for statement in reached for bound in sources._bound(statement)}
    assert "run" in names
    assert not names & {"CLAIMS", "EXPERIMENT", "tables", "figures", "Claim", "Experiment"}
