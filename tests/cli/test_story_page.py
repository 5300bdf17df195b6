"""`crowdppl stories NAME`: every story's density in plain text, its hyperparameters and the engines' options."""

import re

import pytest
from typer.testing import CliRunner

from crowdppl.cli import app
from crowdppl.inference.described.describe_story import describe_story, plain
from crowdppl.inference.engines.registry import ENGINES
from crowdppl.models import KNOWN_STORIES
from crowdppl.models.parts.general import GENERAL, SAYS, hyperparameters_of


def shown(*arguments):
    return CliRunner().invoke(app, ["stories", *arguments], env={"COLUMNS": "100"})


@pytest.mark.parametrize("story", KNOWN_STORIES)
def test_a_story_shows_its_density_without_tex_and_all_that_may_be_set(story):
    done = shown(story)
    assert done.exit_code == 0
    assert not re.search(r"\\\w|[{}]|:math:|``", done.output)
    assert " ~ " in done.output
    for name in hyperparameters_of(KNOWN_STORIES[story]):
        assert name == "truth_prior" or name in done.output
    for engine, about in ENGINES.items():
        shown_options = done.output.partition(f"options of {engine},")[2]
        for option in about.settings._fields:
            assert option in shown_options


@pytest.mark.parametrize("story", KNOWN_STORIES)
def test_everything_that_may_be_set_is_described_with_its_default(story):
    described = describe_story(story)
    assert [each.name for each in described.hyperparameters] == list(hyperparameters_of(KNOWN_STORIES[story]))
    for engine, about in ENGINES.items():
        assert [each.name for each in described.engines[engine]] == list(about.settings._fields)
    for _, settings in described.titled:
        assert all(each.about and each.default for each in settings)
    assert all(line in repr(described) for line in described.density)
    page = described._repr_html_()
    assert page.count("<tr>") == sum(len(settings) + 1 for _, settings in described.titled)


@pytest.mark.parametrize("name", ["majority_vote", "wdn", "max_mig"])
def test_a_baseline_shows_what_it_does_and_its_options(name):
    done = shown(name)
    assert done.exit_code == 0
    assert "a baseline, without a likelihood" in done.output
    assert "epochs" in done.output.partition("options of the classifier's training")[2]
    assert ("focus" in done.output) == (name == "wdn")


def test_a_story_is_known_by_its_other_names_and_a_misspelt_one_is_suggested():
    assert shown("aggnet").output == shown("dawid_skene").output
    assert shown("GLAD").exit_code == 0
    wrong = shown("gladd")
    assert wrong.exit_code == 2
    assert "did you mean 'glad'" in wrong.output


@pytest.mark.parametrize(
    ("tex", "text"),
    [
        (r"\beta_{jk} \sim \text{Dirichlet}(\gamma_k)", "β_jk ~ Dirichlet(γ_k)"),
        (r"\frac{1 - \sigma(a_j e^{-d_i})}{K - 1}", "(1 - σ(a_j e^(-d_i))) / (K - 1)"),
        (r"\lambda \sum_j \lVert C - B_j \rVert_2", "λ Σ_j ‖ C - B_j ‖_2"),
    ],
)
def test_tex_becomes_plain_text(tex, text):
    assert plain(tex) == text


def test_all_general_hyperparameters_are_described():
    assert set(SAYS) == set(GENERAL)


def test_a_story_of_ones_own_has_no_page_and_its_name_is_not_looked_for():
    def mine(annotations, *, truth_prior=None):
        """A story."""

    with pytest.raises(TypeError, match=r"a story's name is needed, .*help\(mine\) describes one of your own"):
        describe_story(mine)
