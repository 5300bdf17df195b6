"""Every option of comparison, checks and scores does something, and their examples run."""

import doctest
import inspect

import numpy as np
import pandas as pd
import pytest

import crowdppl as cp

pytestmark = pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning")

EXAMPLES = [cp.check, cp.compare, cp.kfold, cp.loo, cp.reliability, cp.score]
SOME_GOLD = {1: 1, 3: 1, 4: 2, 9: 2, 10: 3, 5: 2, 16: 3}  # gold labels, some of them wrong


@pytest.fixture(scope="module")
def em():
    annotations = cp.load_dataset("anesthesia")
    return cp.fit("dawid_skene", annotations, progress=False)


@pytest.fixture(scope="module")
def drawn(em):
    """A fit with draws: of the mode's confusion matrices, spread a little."""
    rng = np.random.default_rng(0)
    many = {
        name: 0.8 * value + 0.2 * rng.dirichlet(np.ones(4), (1, 60, *value.shape[2:-1]))
        for name, value in em.outcome.draws.items()
    }
    draws = {name: value.astype(np.float32) for name, value in many.items()}
    return em.fitted.replace(method="svi", outcome=em.outcome._replace(draws=draws, is_point=False))


@pytest.fixture(scope="module")
def other(em):
    return cp.fit("one_coin", em.annotations, progress=False)


@pytest.mark.parametrize("function", EXAMPLES, ids=lambda f: f.__name__)
def test_examples_of_docstrings_run(function):
    found = doctest.DocTestFinder(recurse=False).find(function, function.__name__)
    assert found[0].examples
    failed, _ = doctest.DocTestRunner().run(found[0])
    assert not failed


def changes(call, base, options, ignore=()):
    """Assert that each option of a function, at another value than its default, gives another result or an error."""
    names = {
        name
        for name, p in inspect.signature(call).parameters.items()
        if p.kind is p.KEYWORD_ONLY or p.default is not p.empty
    }
    assert names == set(options) | set(ignore), "an option is not tried"
    default = base()
    for name, value in options.items():
        changed = base(**{name: value})
        assert not same(changed, default), f"{name}={value!r} changes nothing"


def same(a, b):
    if isinstance(a, pd.DataFrame | pd.Series):
        return a.equals(b)
    if isinstance(a, cp.Elpd):
        return np.array_equal(a.values, b.values)
    return (
        all(a.table[name].equals(b.table[name]) for name in ("replicated", "p_value"))
        if len(a.table) == len(b.table)
        else False
    )


def test_every_option_of_kfold_changes_the_score(em):
    def score(**options):
        return cp.kfold(em, **{"folds": 2, "progress": False} | options)

    changes(cp.kfold, score, {"by": "task", "folds": 3, "seed": 1, "refit_by": "svi"}, ["progress"])


def test_every_option_of_loo_changes_the_score(drawn):
    drawn = drawn.replace(settings={"seed": 0, "backend": "numpyro", **svi_settings()})
    changes(cp.loo, lambda **options: cp.loo(drawn, **options), {"by": "annotation", "reloo": True})


def svi_settings():
    """Few steps of SVI, for refits."""
    from crowdppl.inference.engines.registry import ENGINES

    return ENGINES["svi"].settings(max_iterations=20, draws=10)._asdict()


def test_every_option_of_compare_changes_the_comparison(em, other, drawn):
    def compare(**options):
        return cp.compare([em, other], **{"folds": 2, "progress": False} | options)

    changes(
        cp.compare,
        compare,
        {"by": "task", "folds": 3, "seed": 1, "refit_by": "svi"},
        ["progress", "method"],
    )
    pair = {"a": drawn, "b": drawn.thinned(50)}
    assert not cp.compare(pair).equals(cp.compare(pair, by="annotation"))
    assert not cp.compare(pair).equals(cp.compare(pair, method="kfold", refit_by="em", progress=False))
    assert cp.compare(pair)["pseudo_bma"].tolist() != cp.compare(pair, seed=1)["pseudo_bma"].tolist()
    for option, value in {"folds": 3, "refit_by": "em"}.items():
        with pytest.raises(ValueError, match=f"{option}={value!r}: .*leave-one-out"):
            cp.compare(pair, **{option: value})


def test_every_option_of_stack_changes_the_weights(em, other):
    fits = {"dawid_skene": em, "one_coin": other}
    default = cp.stack(fits, folds=2, progress=False)
    assert default.weights.to_dict() != cp.stack(fits, {"dawid_skene": 1, "one_coin": 1}).weights.to_dict()
    assert not default.comparison.equals(cp.stack(fits, folds=2, by="task", progress=False).comparison)
    with pytest.raises(ValueError, match="leave out 'folds', or weights"):
        cp.stack(fits, {"dawid_skene": 1}, folds=2)


def test_every_option_of_check_changes_the_checks(em, drawn):
    def check(**options):
        return cp.check(drawn, **{"draws": 5, "replicates": 3} | options)

    options = {"discrepancies": "votes", "draws": 6, "replicates": 4, "truth": "prior", "seed": 1}
    changes(cp.check, check, options, ["progress", "weaker_prior"])  # the latter refits, which these draws are not for


def test_every_option_of_prior_check_changes_the_checks(em):
    features = np.random.default_rng(0).normal(size=(45, 2))
    annotations = em.annotations.replace(features=features.astype(np.float32))

    def check(**options):
        return cp.prior_check("dawid_skene", annotations, **{"draws": 20} | options)

    options = {
        "discrepancies": "votes",
        "draws": 21,
        "classifier": "logistic",
        "truth_prior": np.eye(4)[np.arange(45) % 4],
        "seed": 1,
        "hyperparameters": {"diagonal": 50.0},
    }
    parameters = inspect.signature(cp.prior_check).parameters
    assert set(options) == set(parameters) - {"story", "annotations"}
    default = check()
    for name, value in options.items():
        changed = check(**value) if name == "hyperparameters" else check(**{name: value})
        assert not same(changed, default), f"{name} changes nothing"


@pytest.mark.parametrize(
    ("function", "options"),
    [
        (cp.score, {"gold": SOME_GOLD}),
        (cp.label_confusion, {"gold": SOME_GOLD}),
        (cp.reliability, {"gold": SOME_GOLD, "bins": 3, "positive": 3, "interval": 0.5}),
        (cp.roc, {"gold": SOME_GOLD, "positive": 3}),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_every_option_of_scores_changes_them(em, function, options):
    gold = em.annotations.with_gold({task: 1 + task % 4 for task in range(1, 46)})
    fit = cp.Fit.of(em.fitted.replace(source=gold))
    needed = {"positive": 2} if function is cp.roc else {}
    of_questions = {"by"} & set(inspect.signature(function).parameters)  # tried where there are several questions
    changes(function, lambda **some: function(fit, **needed | some), options, of_questions)
