"""Every program that a fit runs is lowered for GPUs and TPUs, on a machine without one.

A call back to the host, an operation that XLA has on CPUs alone, or a product of matrices that a GPU would round, would
be seen here and not first on a device.
"""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from kept_programs import forget_programs
from story_options import DEFAULTS, FURTHER

import crowdppl as cp
from crowdppl.inference.densities import programs
from crowdppl.models import WITH_CLASSIFIER

PLATFORMS = ("cuda", "tpu")
SHORT: dict[str, dict] = {
    "em": {"max_iterations": 3},
    "svi": {"max_iterations": 4, "draws": 4, "sweeps": 2},
    "nuts": {"warmup": 3, "draws": 3, "chains": 1},
}
"""By engine, options that make its fits short."""

EVERY = [pytest.param(option, marks=pytest.mark.slow, id=option.name) for option in [*DEFAULTS, *FURTHER]]
ONE = pytest.param(next(option for option in DEFAULTS if option.story == "dawid_skene"), id="one")


@pytest.fixture
def lowered(monkeypatch):
    """Names of the functions whose programs ran, each of which has been lowered for the other platforms."""
    names: list[str] = []
    run = programs.Compiled._program

    def program(self, args, named, leaves, structure):
        before = len(programs._kept)
        made = run(self, args, named, leaves, structure)
        if len(programs._kept) > before or self.__qualname__ not in names:
            exported = export.export(made.jitted, platforms=PLATFORMS)(*args, **named)
            products = [line for line in exported.mlir_module().splitlines() if "stablehlo.dot_general" in line]
            assert all("precision = [HIGHEST, HIGHEST]" in line for line in products), self.__qualname__
            names.append(self.__qualname__)
        return made

    monkeypatch.setattr(programs.Compiled, "_program", program)
    forget_programs()
    return names


@pytest.mark.parametrize("method", SHORT)
@pytest.mark.parametrize("option", [ONE, *EVERY])
def test_every_program_of_a_fit_is_one_for_gpus_and_tpus_too(lowered, option, method):
    options = dict(option.options) | ({"classifier": "logistic"} if option.story in WITH_CLASSIFIER else {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = cp.fit(option.story, option.annotations(), method=method, progress=False, **SHORT[method], **options)
    assert fit.labels.shape[0] > 0
    assert len(lowered) >= 3, lowered


def test_a_program_that_calls_the_host_is_found(lowered):
    @programs.compiled
    def on_the_host(x):
        return jax.pure_callback(np.linalg.eig, (jnp.zeros(2), jnp.zeros((2, 2))), x)

    with pytest.raises(Exception, match="callback"):
        on_the_host(jnp.eye(2))


def test_products_are_not_rounded_unless_the_user_says_so(lowered):
    @programs.compiled
    def product(x):
        return x @ x

    product(jnp.eye(2))
    assert lowered == ["test_products_are_not_rounded_unless_the_user_says_so.<locals>.product"]
    with jax.default_matmul_precision("default"), pytest.raises(AssertionError, match="product"):
        product(jnp.eye(2))
