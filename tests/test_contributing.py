"""The recipes of CONTRIBUTING.md: the files that they name are there, and what they say is all that has to be done.

Kinds of labels are tried in ``tests/data/test_kinds.py``, findings in ``tests/inference/findings/test_register.py``.
"""

import re
from typing import NamedTuple

import house
import numpy as np
import pytest

import crowdppl as cp
from crowdppl import models
from crowdppl.inference.densities.sites import starting_point
from crowdppl.inference.engines.outcome import Outcome
from crowdppl.inference.engines.registry import ENGINES, Engine
from crowdppl.models import Confusion

RECIPES = ("story", "kind of label", "engine", "finding")


def recipe(title: str) -> str:
    """The text of one recipe."""
    text = (house.ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return re.search(rf"^## Add an? {title}\n(.*?)(?=^## )", text, re.MULTILINE | re.DOTALL)[1]


@pytest.mark.parametrize("title", RECIPES)
def test_the_files_that_a_recipe_names_are_there(title):
    named = re.findall(r"`((?:data|models|inference|tests)/[\w/.]+\.py)`", recipe(title))
    assert named
    assert [name for name in named if not (house.ROOT / name).exists()] == []


class ToySettings(NamedTuple):
    """Options of the toy engine: a share of the way to uniform tables."""

    share: float = 0.0


def run_toy(model, data, key, settings, *, progress, start=None, keep=None) -> Outcome:
    """Stay at the start, or nearer to uniform tables."""
    start = {name: np.asarray(value) for name, value in starting_point(model, data, key).items()}
    draws = {name: (1 - settings.share) * value + settings.share / value.shape[-1] for name, value in start.items()}
    return Outcome({name: value[None, None] for name, value in draws.items()}, {}, np.zeros(0), {}, is_point=True)


def test_an_engine_is_its_settings_its_run_and_an_entry_in_the_registry(monkeypatch, tiny):
    monkeypatch.setitem(ENGINES, "toy", Engine("toy", run_toy, ToySettings))

    fit = cp.fit("dawid_skene", tiny, method="toy", share=0.5, progress=False)

    np.testing.assert_allclose(fit.probabilities.sum(axis=1), 1, rtol=1e-6)
    assert fit.settings["share"] == 0.5
    with pytest.raises(ValueError, match=r"share.*toy"):
        cp.fit("dawid_skene", tiny, share=0.5, progress=False)
    with pytest.raises(cp.data.errors.UnknownNameError, match="toy"):
        cp.fit("dawid_skene", tiny, method="tay", progress=False)


def toy_story(annotations, *, truth_prior=None, strength: float = 3.0) -> None:
    """Every worker has a confusion matrix, with a prior of one strength."""
    import numpyro
    from numpyro.distributions import Dirichlet

    k = annotations.n_classes
    with numpyro.plate("worker", annotations.n_workers, dim=-2), numpyro.plate("class", k, dim=-1):
        table = numpyro.sample("confusion", Dirichlet(np.ones(k) + strength * np.eye(k)))
    with cp.tasks(annotations, truth_prior) as truth:
        cp.observe(truth, Confusion(table), annotations)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_story_is_its_file_and_an_entry_in_the_list(monkeypatch, tiny):
    monkeypatch.setitem(models.KNOWN_STORIES, "toy_story", toy_story)

    fit = cp.fit("toy_story", tiny, strength=2.0, progress=False)

    assert fit.story == "toy_story"
    assert "toy_story" in cp.list_stories().index
    assert cp.simulate("toy_story", n_tasks=5, n_workers=3, n_classes=2, seed=0)[0].n_tasks == 5
