"""Saved fits that tests alter: one of each kind of folder, and how a folder is sealed again after a change."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd

import crowdppl as cp
from crowdppl.inference.storage.manifest import MANIFEST, write_manifest

KINDS = ("em", "nuts", "network", "baseline")
"""Engines, a network with weights, and labels without a likelihood; tests of minutes take FURTHER too."""

FURTHER = ("svi", "network_baseline", "average")


def small_annotations(seed=0, n_tasks=8):
    """Eight tasks with features, three workers whose names need quoting, and two classes; some gold labels."""
    rng = np.random.default_rng(seed)
    rows = [
        {"task": f"t{i}", "worker": worker, "label": ["no", "yes"][int(rng.random() < (0.8 if i % 2 else 0.2))]}
        for i in range(n_tasks)
        for worker in ("ann", "=bob()", "<c>")
    ]
    features = {f"t{i}": rng.normal(size=2) for i in range(n_tasks)}
    found = cp.Annotations.from_frame(pd.DataFrame(rows), features=features, classes=["no", "yes"])
    return found.with_gold({"t0": "no"})


def made(kind, annotations):
    """A fit of one of :data:`KINDS`."""
    few = {"progress": False, "seed": 1}
    network = cp.Classifier("mlp", hidden=(3,), batch_norm=True)
    match kind:
        case "em":
            return cp.fit("dawid_skene", annotations, gold=True, **few)
        case "nuts":
            return cp.fit("one_coin", annotations, method="nuts", warmup=10, draws=10, chains=2, **few)
        case "svi":
            return cp.fit("glad", annotations, method="svi", max_iterations=20, draws=10, **few)
        case "network":
            return cp.fit("two_coin", annotations, classifier=network, epochs=2, **few)
        case "baseline":
            return cp.fit("wawa", annotations)
        case "average":
            stories = {"plain": {"story": "dawid_skene"}, "coin": {"story": "one_coin"}}
            return cp.fit("auto", annotations, stories=stories, weights="stacking", folds=2, **few)
        case "network_baseline":
            return cp.label_then_train("majority_vote", annotations, classifier=network, epochs=2, **few)
    raise ValueError(kind)


def copied(folder, to):
    """A copy of a folder that may be changed."""
    shutil.rmtree(to, ignore_errors=True)
    return Path(shutil.copytree(folder, to))


SEALS = ("format", "crowdppl", "sha256", "files")
"""What the manifest says of itself and of the files."""


def reseal(folder):
    """Write the manifest's checksums anew, as whoever alters a file on purpose would."""
    about = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    write_manifest(folder, {key: value for key, value in about.items() if key not in SEALS})
    return folder


def rewrite(folder, change):
    """Change what the manifest says of the fit, and seal the folder again."""
    about = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    change(about)
    write_manifest(folder, {key: value for key, value in about.items() if key not in SEALS})
    return folder


def rewrite_part(folder, change):
    """Change what the manifest says of the first part, and seal the folder again."""
    return rewrite(folder, lambda about: change(about["parts"][0]))


def same(one, other):
    """Whether two fits say the same: labels, parameters, warnings, settings and data."""
    pd.testing.assert_frame_equal(one.labels, other.labels, check_exact=True)
    np.testing.assert_array_equal(one.posterior, other.posterior)
    assert one.findings == other.findings
    assert dict(one.settings) == dict(other.settings)
    for name in ("task", "worker", "label", "count", "gold", "features", "worker_features", "evidence", "prior"):
        mine, yours = (getattr(fit.annotations, name) for fit in (one, other))
        assert (mine is None) == (yours is None), name
        if mine is not None:
            np.testing.assert_array_equal(mine, yours)
            assert np.asarray(mine).dtype == np.asarray(yours).dtype, name
    for name in ("tasks", "workers", "classes", "abstentions", "models", "repeats", "informative"):
        assert getattr(one.annotations, name) == getattr(other.annotations, name), name
    if one.rule is None:
        assert (one.story, one.method, one.dims) == (other.story, other.method, other.dims)
        mine, yours = one.outcome, other.outcome
        parts = [(mine.draws, yours.draws), (mine.fixed, yours.fixed), (mine.stats, yours.stats)]
        np.testing.assert_array_equal(mine.history, yours.history)
        assert mine.is_point == yours.is_point
        assert repr(one.model.hyperparameters) == repr(other.model.hyperparameters)
    else:
        parts = [(one.rule.weights, other.rule.weights), (one.rule.by_worker, other.rule.by_worker)]
        assert repr(one.rule.classifier) == repr(other.rule.classifier)
    for mine, yours in parts:
        assert list(mine) == list(yours)
        for name, value in mine.items():
            np.testing.assert_array_equal(value, yours[name])
            assert np.asarray(value).dtype == np.asarray(yours[name]).dtype, name
