"""The examples in docstrings give what they show."""

import doctest
import importlib

import pytest


@pytest.mark.parametrize("name", ["data.annotations", "data.datasets", "data.errors", "cli.advice"])
def test_the_examples_of_a_module_run(name):
    result = doctest.testmod(importlib.import_module(f"crowdppl.{name}"))
    assert result.attempted > 0
    assert result.failed == 0
