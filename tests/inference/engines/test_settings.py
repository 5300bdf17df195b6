"""Options and seeds of the wrong type or out of their range are refused by name, with what is accepted."""

import numpy as np
import pytest

import crowdppl as cp
from crowdppl import UnknownNameError
from crowdppl.inference.engines.registry import ENGINES
from crowdppl.inference.engines.settings import checked_seed


@pytest.mark.parametrize("seed", [0, 7, np.int32(7), np.uint64(7), 2**63 - 1])
def test_whole_numbers_are_seeds(seed):
    assert checked_seed(seed) == int(seed)
    assert type(checked_seed(seed)) is int


@pytest.mark.parametrize(
    "seed",
    ["abc", 1.5, 1.0, None, True, -1, 2**63, np.array([1, 2]), np.random.default_rng(0), np.random.RandomState(0)],
)
def test_other_seeds_are_refused_by_name_and_value(seed):
    with pytest.raises(ValueError, match=r"(?s)seed=.*: a whole number from 0 to 2\*\*63 - 1 is needed"):
        checked_seed(seed)


def test_a_generator_or_none_comes_with_advice():
    with pytest.raises(ValueError, match=r"int\(generator.integers\(2\*\*63\)\)"):
        checked_seed(np.random.default_rng(0))
    with pytest.raises(ValueError, match="the default 0"):
        checked_seed(None)


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("em", {"epochs": 0}, "epochs=0: a whole number from 1 is needed"),
        ("em", {"warmup": -1}, "warmup=-1: a whole number from 0 is needed"),
        ("em", {"restarts": True}, "restarts=True: a whole number from 1 is needed"),
        ("em", {"batch_size": 2.5}, "batch_size=2.5: a whole number from 1 is needed"),
        ("em", {"held_out": 1.0}, "held_out=1.0: a finite number from 0 and below 1 is needed"),
        ("em", {"accelerate": 1}, "accelerate=1: True or False is needed"),
        ("em", {"accelerate": "no"}, "accelerate='no': True or False is needed"),
        ("em", {"tolerance": "small"}, "tolerance='small': a finite number from 0 is needed"),
        ("svi", {"learning_rate": float("nan")}, "learning_rate=nan: a finite number from 0 is needed"),
        ("nuts", {"target_accept": 1.0}, "target_accept=1.0: a finite number above 0 and below 1 is needed"),
        ("nuts", {"chains": 1.5}, "chains=1.5: a whole number from 1 is needed"),
    ],
)
def test_options_out_of_range_are_refused(method, options, message):
    with pytest.raises(ValueError, match=message):
        ENGINES[method].checked(options)


def test_options_that_can_be_are_taken_as_pythons_numbers():
    settings = ENGINES["em"].checked({"batch_size": np.int64(5), "warmup": 0, "learning_rate": np.float32(0.5)})
    assert (settings.batch_size, settings.warmup, settings.learning_rate) == (5, 0, 0.5)
    assert ENGINES["em"].checked({"batch_size": None}).batch_size is None
    assert hash(settings)


def test_an_unknown_option_is_named_with_the_nearest():
    with pytest.raises(UnknownNameError, match="did you mean 'restarts'"):
        ENGINES["em"].checked({"restart": 3})


@pytest.mark.parametrize(
    ("name", "engine"), [("mcmc", "nuts"), ("HMC", "nuts"), ("vi", "svi"), ("map", "em"), ("mle", "em"), ("EM", "em")]
)
def test_engines_are_known_by_what_they_are_called_elsewhere(name, engine):
    with pytest.raises(UnknownNameError, match=f"unknown method '{name}'; did you mean '{engine}'"):
        cp.fit("dawid_skene", cp.load_dataset("anesthesia"), method=name)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("methd", "method"),
        ("sed", "seed"),
        ("chekpoint", "checkpoint"),
        ("warm_start", "warmup"),
        ("random_state", "seed"),
        ("n_init", "restarts"),
        ("num_samples", "draws"),
        ("num_steps", "max_iterations"),
        ("steps", "max_iterations"),
        ("step_size", "learning_rate"),
        ("tune", "warmup"),
    ],
)
def test_a_misspelt_argument_of_fit_is_told_from_an_option(name, meant):
    with pytest.raises(UnknownNameError, match=f"unknown option '{name}'; did you mean '{meant}'"):
        cp.fit("dawid_skene", cp.load_dataset("anesthesia"), **{name: "em"})
