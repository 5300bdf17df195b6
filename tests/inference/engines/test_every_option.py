"""Every option that an engine takes, under either backend, changes the fit or is refused before anything runs.

The tests go over the fields of the engines' settings, so that a new option without a case fails.
"""

import re
import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest

import crowdppl as cp
from crowdppl.inference.engines.registry import ENGINES

NETWORK = {"story": "one_coin", "classifier": cp.Classifier("mlp", hidden=(3,))}
SHRUNK = {"story": "one_coin", "classifier": cp.Classifier("mlp", hidden=(3,), prior=1.0)}
SHORT: dict[str, dict] = {
    "em": {},
    "svi": {"max_iterations": 40, "draws": 5, "sweeps": 0},
    "nuts": {"chains": 2, "warmup": 6, "draws": 6},
}
TRAINED = {"epochs": 2, "network_rate": 0.01}

# By engine and option: what else is given to both fits, and the changed value.
CASES: dict[str, dict[str, tuple[dict, object]]] = {
    "em": {
        "max_iterations": ({}, 3),
        "tolerance": ({}, 1e-2),
        "restarts": ({"story": "independent_confusion_subtypes", "subtypes": 3}, 8),
        "learning_rate": ({"story": "glad", "max_iterations": 5}, 0.2),
        "halvings": ({"story": "glad", "learning_rate": 5.0, "max_iterations": 5}, 1),
        "accelerate": ({}, False),
        "epochs": (NETWORK, 2),
        "batch_size": (NETWORK | {"epochs": 2}, 7),
        "network_rate": (NETWORK | {"epochs": 2}, 0.1),
        "weight_decay": (NETWORK | TRAINED, 0.1),
        "warmup": (NETWORK | TRAINED, 0),
        "held_out": (NETWORK | TRAINED, 0.3),
        "patience": (NETWORK | {"epochs": 25, "network_rate": 0.2, "held_out": 0.3}, 1),
        "sweeps": ({}, 2),
    },
    "svi": {
        "max_iterations": ({}, 50),
        "learning_rate": ({}, 0.05),
        "network_rate": (NETWORK | {"epochs": 2}, 0.1),
        "weight_decay": (NETWORK | {"epochs": 2}, 0.1),
        "epochs": (NETWORK | {"network_rate": 0.1}, 2),
        "warmup": (NETWORK | TRAINED, 0),
        "held_out": (NETWORK | TRAINED, 0.3),
        "patience": (NETWORK | {"epochs": 25, "network_rate": 0.2, "held_out": 0.3}, 1),
        "guide": ({}, "low_rank"),
        "batch_size": ({}, 7),
        "particles": ({}, 2),
        "draws": ({}, 6),
        "tolerance": ({"guide": "delta", "draws": 1000, "learning_rate": 0.0005, "max_iterations": 120}, 0.5),
        "sweeps": ({}, 2),
    },
    "nuts": {
        "chains": ({}, 1),
        "warmup": ({}, 8),
        "draws": ({}, 8),
        "target_accept": ({}, 0.95),
        "max_tree_depth": ({}, 1),
        "max_iterations": ({}, 1),
        "tolerance": ({}, 0.5),
        "epochs": (NETWORK | {"network_rate": 0.1}, 2),
        "network_rate": (NETWORK | {"epochs": 2}, 0.1),
    },
}

# Options that a fit with these others would ignore, and what the message says.
REFUSED = [
    ("em", {"epochs": 3}, "epochs=3 would be ignored: .* over all data; .* give a batch_size, or a network"),
    ("em", {"network_rate": 0.1}, "network_rate=0.1 would be ignored"),
    (
        "em",
        {"warmup": 0},
        "warmup=0 would be ignored: NUTS' warmup needs method='nuts'; of EM it belongs to .* minibatches",
    ),
    ("em", {"held_out": 0.1}, "held_out=0.1 would be ignored"),
    ("em", {"patience": 3}, "patience=3 would be ignored"),
    ("em", {"batch_size": 9, "patience": 3}, "patience=3 would be ignored: nothing is held out; .* give held_out"),
    ("em", {"batch_size": 9, "network_rate": 0.1}, "network_rate=0.1 would be ignored: the story has no classifier"),
    ("em", {"weight_decay": 0.1}, "weight_decay=0.1 would be ignored: .* cp.Classifier\\('logistic', prior=1.0"),
    ("em", {"batch_size": 9, "weight_decay": 0.1}, "weight_decay=0.1 would be ignored: the story has no classifier"),
    ("em", SHRUNK | {"weight_decay": 0.1}, "weight_decay=0.1 would be ignored: the classifier's weights have a prior"),
    ("em", {"batch_size": 9, "max_iterations": 3}, "max_iterations=3 would be ignored: .* minibatches; give epochs"),
    ("em", NETWORK | {"tolerance": 0.1}, "tolerance=0.1 would be ignored: .* give epochs"),
    ("em", NETWORK | {"halvings": 3}, "halvings=3 would be ignored: .* give epochs"),
    ("em", NETWORK | {"accelerate": False}, "accelerate=False would be ignored: .* give epochs"),
    ("em", {"batch_size": 9, "sweeps": 3}, "sweeps=3 would be ignored: sweeps take all tasks at once"),
    ("em", NETWORK | {"sweeps": 3}, "sweeps=3 would be ignored: sweeps take all tasks at once"),
    ("svi", {"epochs": 3}, "epochs=3 would be ignored: the story has no network"),
    ("svi", {"warmup": 3}, "warmup=3 would be ignored: the story has no network"),
    ("svi", {"held_out": 0.1}, "held_out=0.1 would be ignored: no network's weights"),
    ("svi", {"patience": 3}, "patience=3 would be ignored: no network's weights"),
    ("svi", NETWORK | {"patience": 3}, "patience=3 would be ignored: nothing is held out"),
    ("svi", SHRUNK | {"held_out": 0.1}, "held_out=0.1 would be ignored: no network's weights are without a prior"),
    ("svi", SHRUNK | {"weight_decay": 0.1}, "weight_decay=0.1 would be ignored: no classifier's weights"),
    ("svi", {"network_rate": 0.1}, "network_rate=0.1 would be ignored: no classifier's weights"),
    ("svi", {"guide": "delta", "draws": 3}, "draws=3 would be ignored: the guide is a point"),
    ("svi", {"guide": "delta", "particles": 3}, "particles=3 would be ignored: the guide is a point"),
    ("svi", {"guide": "delta", "sweeps": 3}, "sweeps=3 would be ignored: the guide is a point"),
    ("svi", {"batch_size": 7, "sweeps": 3}, "sweeps=3 would be ignored: sweeps take all tasks at once"),
    ("nuts", {"epochs": 3}, "epochs=3 would be ignored: the story has no network"),
    ("nuts", {"network_rate": 0.1}, "network_rate=0.1 would be ignored: the story has no network"),
    ("nuts", NETWORK | {"max_iterations": 3}, "max_iterations=3 would be ignored: with a network .* give epochs"),
    ("nuts", NETWORK | {"tolerance": 0.1}, "tolerance=0.1 would be ignored: with a network .* give epochs"),
]


@cache
def crowd() -> cp.Annotations:
    """Twenty tasks with two features, four annotations each, which disagree often."""
    rng = np.random.default_rng(3)
    truth = np.arange(20) % 2
    rows = [(i, j) for i in range(20) for j in rng.choice(6, 4, replace=False)]
    frame = pd.DataFrame(rows, columns=["task", "worker"])
    frame["label"] = [truth[i] if rng.random() < 0.65 else 1 - truth[i] for i, _ in rows]
    return cp.Annotations.from_frame(frame, features=dict(enumerate(rng.normal(size=(20, 2)) + truth[:, None])))


def outcome(method: str, options: dict) -> list:
    """Everything that a fit's engine found, to compare with another's."""
    options = {"story": "one_coin"} | SHORT[method] | options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cp.ConvergenceWarning)
        fit = cp.fit(options.pop("story"), crowd(), method=method, progress=False, **options)
    found = fit.outcome
    named = {**found.draws, **found.fixed, **found.stats, "history": found.history}
    named["posterior"] = fit.posterior
    return [fit.warnings, *((name, np.shape(value), np.asarray(value).tobytes()) for name, value in named.items())]


@pytest.fixture(scope="module")
def as_it_was():
    """Outcomes before an option is changed, each computed once."""
    found: dict[str, list] = {}

    def of(method: str, others: dict) -> list:
        key = f"{method} {others}"
        if key not in found:
            found[key] = outcome(method, others)
        return found[key]

    return of


@pytest.mark.parametrize(("method", "option"), [(m, name) for m in ENGINES for name in ENGINES[m].settings._fields])
def test_every_option_changes_the_fit(as_it_was, method, option):
    others, value = CASES[method][option]
    assert outcome(method, others | {option: value}) != as_it_was(method, others)


@pytest.mark.parametrize(("method", "options", "message"), REFUSED)
def test_an_option_that_this_fit_would_ignore_is_refused(method, options, message):
    options = {"story": "one_coin"} | options
    with pytest.raises(ValueError, match=message):
        cp.fit(options.pop("story"), crowd(), method=method, progress=False, **options)


def test_every_option_that_a_story_may_leave_unused_says_where_it_is_used():
    for engine in ENGINES.values():
        described = engine.settings.__doc__.split("Args:")[1]
        for name in engine.settings._fields:
            assert f" {name}: " in described
    for method, options, _ in REFUSED:
        name = list(options)[-1]
        said = re.split(r"\n        \w+: ", ENGINES[method].settings.__doc__.split(f"\n        {name}: ")[1])[0]
        assert re.search(r"[Uu]sed\s+with|Used\s+where", said), (method, name)
