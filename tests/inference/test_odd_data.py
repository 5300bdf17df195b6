"""Whatever the annotations are, a story fits them with finite results, or says before fitting why it does not."""

import os
from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from odd_tables import SHAPES, crowd_of_thousands, fits_or_refuses, tables, thousand_classes

from crowdppl import Classifier
from crowdppl.models import AS_PUBLISHED, STORIES

FEW = 12
"""Tables of the default suite, for the one story that it takes there; all others have one of each of a few shapes."""

MANY = int(os.environ.get("CROWDPPL_ODD_TABLES", "0"))
"""Tables drawn at random for each story, engine and backend in the slow suite, beside one for each.

A table takes seconds, most of which are the compiler's, and a thousand for each take days. None is drawn by default,
and every story has one table by two engines and backends (:func:`has_its_turn`), which takes about two minutes.
"""

BRIEF = {
    "em": {"max_iterations": 25},
    "svi": {"max_iterations": 25, "draws": 4},
    "nuts": {"chains": 1, "warmup": 5, "draws": 4, "max_iterations": 5, "max_tree_depth": 3},
}
ALWAYS = ("all_disagree", "unused_classes", "one_of_everything", "ragged")
"""Shapes that the default suite takes for every story: they need one program each."""

QUICK = settings(
    deadline=None,
    max_examples=FEW,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
LONG = settings(QUICK, max_examples=MANY or FEW, phases=[Phase.generate, Phase.shrink])
NAMES = (*STORIES, *AS_PUBLISHED)
BACKENDS = ("numpyro", "pyro")


@pytest.mark.parametrize("story", NAMES)
def test_every_story_fits_odd_tables_by_em(story):
    found = {
        shape: fits_or_refuses(story, SHAPES[shape](np.random.default_rng(3), 2), **BRIEF["em"]) for shape in ALWAYS
    }
    if story == "annotator_groups":
        assert found.pop("one_of_everything") == "refused"  # three groups of one annotation
    assert set(found.values()) == {"fits"}


@QUICK
@given(table=tables())
def test_dawid_skene_fits_any_table(table):
    fits_or_refuses("dawid_skene", table, **BRIEF["em"])


@pytest.mark.parametrize("shape", ["huge_counts", "abstentions_only", "contradicting_gold", "no_names"])
def test_one_coin_fits_what_needs_programs_of_its_own(shape):
    fits_or_refuses("one_coin", SHAPES[shape](np.random.default_rng(5), 2), **BRIEF["em"])


def place_of(story, method, backend):
    """Positions of a story, and of an engine and its backend among the six."""
    return NAMES.index(story), 2 * [*BRIEF].index(method) + (backend == "pyro")


def has_its_turn(story, method, backend):
    """Whether the slow suite has it where nobody asks for more: two engines and backends of each story."""
    return sum(place_of(story, method, backend)) % 3 == 0


def shape_of(story, method, backend):
    """The shape and the number of classes of the table that it has in any case."""
    place, pair = place_of(story, method, backend)
    return [*SHAPES][(place + 2 * pair) % len(SHAPES)], 2 + place % 2


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("method", BRIEF)
@pytest.mark.parametrize("story", NAMES)
def test_every_story_engine_and_backend_fits_any_table(story, method, backend):
    if backend == "pyro":
        pytest.importorskip("pyro")
    if not (MANY or has_its_turn(story, method, backend)):
        pytest.skip("CROWDPPL_ODD_TABLES=1 asks for it")
    shape, n_classes = shape_of(story, method, backend)
    table = SHAPES[shape](np.random.default_rng(7), n_classes)
    fits_or_refuses(story, table, method=method, backend=backend, **BRIEF[method])
    if not MANY:
        return

    @LONG
    @given(table=tables(n_classes=(2, 3)))
    def check(table):
        fits_or_refuses(story, table, method=method, backend=backend, **BRIEF[method])

    check()


@pytest.mark.slow
@pytest.mark.parametrize("story", NAMES)
@pytest.mark.parametrize("make", [crowd_of_thousands, thousand_classes])
def test_every_story_fits_sizes_beyond_the_usual(story, make):
    fits_or_refuses(story, make(np.random.default_rng(0)), hang=300, max_iterations=5)


def test_every_story_engine_backend_and_shape_has_its_turn_in_the_slow_suite():
    turns = [each for each in product(NAMES, BRIEF, BACKENDS) if has_its_turn(*each)]
    assert {story for story, *_ in turns} == set(NAMES)
    assert {(method, backend) for _, method, backend in turns} == set(product(BRIEF, BACKENDS))
    assert {shape_of(*each)[0] for each in turns} == set(SHAPES)
    assert len(turns) == 2 * len(NAMES)


@pytest.mark.slow
@pytest.mark.parametrize("network", ["logistic", "mlp"])
def test_a_classifier_beside_the_story_fits_any_table(network):
    @settings(LONG, max_examples=min(MANY or FEW, 200))
    @given(table=tables(shapes=("ragged", "all_agree", "unused_classes", "one_of_everything", "contradicting_gold")))
    def check(table):
        features = np.random.default_rng(0).normal(size=(table.annotations.n_tasks, 2)).astype(np.float32)
        classifier = Classifier(network, hidden=(3,)) if network == "mlp" else network
        brief = {"epochs": 2} if network == "mlp" else BRIEF["em"]
        known = table._replace(annotations=table.annotations.replace(features=features))
        fits_or_refuses("dawid_skene", known, classifier=classifier, **brief)

    check()
