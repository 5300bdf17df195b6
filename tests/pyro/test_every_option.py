"""Every option of Pyro's engines, and of PyTorch, changes the fit or is refused before anything runs.

The tests go over the fields of the engines' settings, so that a new option without a case fails.
"""

import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra pyro is not installed: no torch")
pytest.importorskip("pyro", reason="the extra pyro is not installed: no pyro")

from torch.utils.data import TensorDataset
from torch_crowd import network

import crowdppl as cp
from crowdppl.inference.torch.backend import ENGINES
from crowdppl.inference.torch.torch_options import TorchOptions

NETWORK = {"classifier": True}  # the same weights in every fit
SHORT: dict[str, dict] = {
    "em": {},
    "svi": {"max_iterations": 30, "draws": 5},
    "nuts": {"chains": 1, "warmup": 5, "draws": 5},
}

# By engine and option: what else is given to both fits, and the changed value.
CASES: dict[str, dict[str, tuple[dict, object]]] = {
    "em": {
        "max_iterations": ({}, 2),
        "tolerance": ({}, 1e-2),
        "restarts": ({"diagonal": 1.0, "off_diagonal": 1.0, "max_iterations": 10}, 6),
        "learning_rate": ({"story": "difficulty", "kind": "fixed", "max_iterations": 3}, 0.2),
        "halvings": ({"story": "difficulty", "kind": "fixed", "learning_rate": 20.0, "max_iterations": 3}, 1),
        "accelerate": ({"max_iterations": 20, "tolerance": 0.0}, False),
        "sweeps": ({}, 2),
        "epochs": (NETWORK, 2),
        "batch_size": (NETWORK | {"epochs": 2}, 7),
        "network_rate": (NETWORK | {"epochs": 2}, 0.1),
        "weight_decay": (NETWORK | {"epochs": 2}, 0.1),
        "warmup": (NETWORK | {"epochs": 2}, 0),
        "held_out": (NETWORK | {"epochs": 2}, 0.3),
        "patience": (NETWORK | {"epochs": 25, "network_rate": 0.3, "held_out": 0.3}, 1),
    },
    "svi": {
        "max_iterations": ({}, 40),
        "learning_rate": ({}, 0.05),
        "network_rate": (NETWORK, 0.1),
        "weight_decay": (NETWORK | {"epochs": 2}, 0.1),
        "epochs": (NETWORK, 2),
        "warmup": (NETWORK | {"epochs": 2}, 0),
        "held_out": (NETWORK | {"epochs": 2}, 0.3),
        "patience": (NETWORK | {"epochs": 25, "network_rate": 0.1, "held_out": 0.3}, 1),
        "guide": ({}, "low_rank"),
        "batch_size": ({}, 7),
        "particles": ({}, 2),
        "draws": ({}, 6),
        "tolerance": ({"guide": "delta", "draws": 1000, "learning_rate": 0.005, "max_iterations": 120}, 0.5),
    },
    "nuts": {
        "chains": ({}, 2),
        "warmup": ({}, 6),
        "draws": ({}, 6),
        "target_accept": ({}, 0.95),
        "max_tree_depth": ({}, 1),
        "max_iterations": ({}, 1),
        "tolerance": ({}, 0.5),
        "epochs": (NETWORK, 2),
        "network_rate": (NETWORK | {"epochs": 2}, 0.1),
    },
}


def flipped(items):
    """Put a batch together with the features' signs changed."""
    return -torch.stack([x for (x,) in items])


TORCH: dict[str, tuple[dict, object]] = {
    "dataset": ({}, TensorDataset(torch.linspace(-1, 1, 80).reshape(40, 2))),
    "loader": ({"dataset": TensorDataset(torch.linspace(-1, 2, 80).reshape(40, 2))}, {"collate_fn": flipped}),
    "optimizer": ({}, lambda groups: torch.optim.SGD([{"lr": 0.01, **group} for group in groups])),
    "scheduler": ({}, lambda optimizer: torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.1)),
    "clip": ({"optimizer": lambda groups: torch.optim.SGD([{"lr": 0.01, **group} for group in groups])}, 1e-3),
    "autocast": ({}, torch.bfloat16),
}


def fit(annotations, method, options):
    options = {"story": "dawid_skene"} | SHORT[method] | options
    if options.pop("classifier", False):
        torch.manual_seed(0)
        options["classifier"] = network()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cp.ConvergenceWarning)
        return cp.fit(options.pop("story"), annotations, method=method, backend="pyro", progress=False, **options)


def outcome(annotations, method, options):
    """Everything that a fit's engine found, to compare with another's."""
    result = fit(annotations, method, options)
    found = result.outcome
    named = {**found.draws, **found.fixed, **found.stats, "history": found.history, "posterior": result.posterior}
    return [result.warnings, *((name, np.shape(value), np.asarray(value).tobytes()) for name, value in named.items())]


@pytest.fixture(scope="module")
def as_it_was():
    """Outcomes before an option is changed, each computed once."""
    found = {}

    def of(annotations, method, others):
        key = f"{method} {others}"
        if key not in found:
            found[key] = outcome(annotations, method, others)
        return found[key]

    return of


@pytest.mark.parametrize(
    ("method", "option"),
    [(m, name) for m in ENGINES for name in ENGINES[m].settings._fields if name not in ENGINES[m].refused],
)
def test_every_option_changes_the_fit(crowd, as_it_was, method, option):
    others, value = CASES[method][option]
    assert outcome(crowd, method, others | {option: value}) != as_it_was(crowd, method, others)


@pytest.mark.parametrize("method", ENGINES)
@pytest.mark.parametrize("option", TorchOptions._fields)
def test_every_option_of_pytorch_changes_the_fit(crowd, as_it_was, method, option):
    shorter = NETWORK | ({"max_iterations": 3} if method == "svi" else {"epochs": 2})
    if option == "device":
        with pytest.raises(cp.StoryError, match="device='meta' was asked for"):
            fit(crowd, method, shorter | {"device": "meta"})
    else:
        others, value = TORCH[option]
        assert outcome(crowd, method, shorter | others | {option: value}) != as_it_was(crowd, method, shorter | others)


def an_optimizer(groups):
    return torch.optim.SGD(groups, lr=0.1)


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("em", NETWORK | {"accelerate": False}, "accelerate=False would be ignored: .* minibatches; give epochs"),
        ("em", {"epochs": 3}, "epochs=3 would be ignored: .* over all data"),
        ("em", {"clip": 1.0}, "clip= is of the training of a torch module, and of SVI; method='em' without"),
        ("em", {"clip": 1.0, "batch_size": 7}, "clip= is of the training of a torch module"),
        ("em", NETWORK | {"max_iterations": 3}, "max_iterations=3 would be ignored: .* minibatches; give epochs"),
        (
            "em",
            NETWORK | {"network_rate": 0.1, "optimizer": an_optimizer},
            "network_rate=0.1 would be ignored",
        ),
        ("svi", {"network_rate": 0.1}, "network_rate=0.1 would be ignored"),
        ("svi", NETWORK | {"network_rate": 0.1, "optimizer": an_optimizer}, "network_rate=0.1 would be ignored"),
        ("svi", NETWORK | {"weight_decay": 0.1, "optimizer": an_optimizer}, "weight_decay=0.1 would be ignored"),
        ("svi", {"sweeps": 3}, "sweeps=3: .* leave out sweeps, or backend"),
        ("svi", {"epochs": 3}, "epochs=3 would be ignored: the story has no network"),
        ("svi", {"guide": "delta", "draws": 3}, "draws=3 would be ignored: the guide is a point"),
        ("nuts", {"epochs": 3}, "epochs=3 would be ignored: the story has no network"),
        ("nuts", {"clip": 1.0}, "clip= is of the training of a torch module"),
        ("nuts", NETWORK | {"tolerance": 0.1}, "tolerance=0.1 would be ignored: with a network"),
        *((m, {"autocast": torch.bfloat16}, "autocast= .* give classifier=") for m in ENGINES),
        *((m, {"device": "cpu"}, "device= .* give classifier=") for m in ENGINES),
        *((m, NETWORK | {"loader": {"num_workers": 0}}, "loader= is of a dataset, and none is given") for m in ENGINES),
    ],
)
def test_an_option_that_this_fit_would_ignore_is_refused(crowd, method, options, message):
    with pytest.raises(ValueError, match=message):
        fit(crowd, method, options)


def test_a_delta_guide_and_em_are_points_and_a_normal_guide_is_none(crowd):
    for method, options, is_point in (
        ("em", {"max_iterations": 3}, True),
        ("svi", {"guide": "delta", "draws": 1000}, True),
        ("svi", {}, False),
    ):
        found = fit(crowd, method, options).outcome
        assert found.is_point == is_point
        assert (found.draws["confusion"].shape[:2] == (1, 1)) == is_point
