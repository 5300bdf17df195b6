"""What importing costs: public names are imported when they are used, and large libraries when they are needed."""

import json
import pickle
import pydoc
import subprocess
import sys

import pytest

import crowdppl as cp

LARGE = ("arviz", "flax", "matplotlib", "scipy.stats", "sklearn", "xarray")


def imported(statement):
    """Names of all modules that a new process has after a statement."""
    code = f"import json, sys\n{statement}\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_import_crowdppl_needs_neither_jax_nor_pandas():
    found = imported("import crowdppl")
    assert not found & {"jax", "numpyro", "pandas", "numpy", "rich", *LARGE}


def test_fit_and_what_it_returns_need_no_library_for_classifiers_pictures_and_posteriors():
    found = imported("import crowdppl as cp; cp.fit, cp.Fit, cp.Annotations, cp.calibrate, cp.plot_ranks, cp.compare")
    assert "jax" in found
    assert not found & set(LARGE)


def test_stories_are_weighted_without_the_library_for_posteriors():
    lines = [
        "from crowdppl.inference.comparison.weights import stacking_weights",
        "stacking_weights(__import__('numpy').log([[0.9, 0.1], [0.1, 0.9]]))",
    ]
    assert not imported("\n".join(lines)) & {"arviz", "arviz_stats", "xarray", "scipy.stats"}


def test_while_libraries_are_imported_nobody_looks_for_garbage():
    counts = "[each['collections'] for each in gc.get_stats()]"
    lines = [
        f"before = {counts}",
        "import crowdppl as cp; cp.fit",
        f"print(json.dumps([before, {counts}, gc.isenabled()]))",
    ]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(["import gc, json", *lines])], capture_output=True, text=True, check=True
    )
    before, after, enabled = json.loads(done.stdout)
    assert after[2] == before[2]
    assert enabled


@pytest.mark.parametrize("name", cp.__all__)
def test_every_public_name_is_there_and_listed(name):
    assert getattr(cp, name) is not None
    assert name in dir(cp)


def test_the_package_shows_its_names_and_none_that_it_was_made_with():
    shown = {name for name in dir(cp) if not name.startswith("__")}
    assert {name for name in shown if name.startswith("_")} == set()
    assert not {"TYPE_CHECKING", "lazy_names"} & shown
    assert {"fit", "data", "models"} <= shown


def test_modules_are_attributes_without_being_imported():
    statement = "import crowdppl as cp; cp.models.find_story, cp.inference.engines.settings.EMSettings, cp.data.ids.Ids"
    assert "crowdppl.inference.engines.settings" in imported(statement)


def test_star_imports_pickles_and_help_work_on_lazy_names():
    space = {}
    exec("from crowdppl import *", space)
    assert set(cp.__all__) <= set(space)
    assert pickle.loads(pickle.dumps(cp.fit)) is cp.fit
    assert "Fit a story to annotations" in pydoc.render_doc(cp)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'crowdppl' has no attribute 'fitt'"):
        cp.fitt  # noqa: B018
    assert not hasattr(cp.data, "_nothing")
