"""The wheel, built from a copy of the tree and put into an environment with what it asks for and no more."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from importlib.metadata import distribution, distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
SETUPTOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
NO_PACKAGES = {("benchmarks",), ("docs",), ("notebooks",), ("tests",), ("build",), ("dist",)}
FOLDERS = {
    name: Path(SETUPTOOLS["package-dir"].get(name, Path(*name.split(".")[1:]))) for name in SETUPTOOLS["packages"]
}
"""Where each package lies in the checkout."""
ROOMS = set(FOLDERS.values())

SMOKE = """
import crowdppl as cp
fit = cp.fit("dawid_skene", cp.load_dataset("anesthesia"), method="em")
assert len(fit.labels) == 45, fit.labels
assert fit.labels["probability"].between(0, 1).all(), fit.labels
print(cp.__file__)
"""


def run(*command, **options):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=600, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def hidden(folder):
    return any(part.startswith(".") for part in folder.parts)


def needs(dist):
    """The installed distributions that one needs, directly or through others, with the extras it asks for."""
    found, waiting = {}, [(dist, "")]
    while waiting:
        dist, extra = waiting.pop()
        for requirement in map(Requirement, dist.requires or ()):
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                for key in {(requirement.name, asked) for asked in {"", *requirement.extras}} - found.keys():
                    found[key] = distribution(requirement.name)
                    waiting.append((found[key], key[1]))
    return list(found.values())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel of the tree as it is, without what an earlier build or an editable installation left."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "tree"
    generated = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist")
    shutil.copytree(ROOT, source, ignore=generated)
    options = ("--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check")
    run(sys.executable, "-m", "pip", "wheel", *options, "-w", folder, source)
    (built,) = folder.glob("crowdppl-*.whl")
    return built


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """The interpreter of a new environment: the wheel, and links to what its metadata asks for."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=True)
    interpreter = folder / "bin" / "python"
    options = ("--no-deps", "--no-index", "--no-compile", "--disable-pip-version-check")
    run(sys.executable, "-m", "pip", "--python", interpreter, "install", *options, wheel)
    (site,) = folder.glob("lib/python*/site-packages")
    (ours,) = distributions(name="crowdppl", path=[str(site)])
    for dist in needs(ours):
        for top in {file.parts[0] for file in dist.files or ()} - {"..", "__pycache__"}:
            link = site / top
            if not link.exists():
                link.symlink_to(dist.locate_file(top))
    return interpreter


@pytest.fixture
def in_environment(python, tmp_path):
    """Run a command of the new environment, away from the tree and without this process's settings."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "CROWDPPL", "COV"))}
    environment |= {"MPLBACKEND": "Agg", "JAX_PLATFORMS": "cpu", "COLUMNS": "120"}

    def in_environment(*arguments):
        command, *rest = arguments
        return run(python.parent / command, *rest, cwd=tmp_path, env=environment)

    return in_environment


def test_the_wheel_holds_every_module_of_the_packages_and_nothing_else(wheel):
    in_tree = {
        (Path(*name.split(".")) / path.name).as_posix()
        for name, room in FOLDERS.items()
        for path in (ROOT / room).glob("*.py")
    }
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = {name for name in archive.namelist() if not name.split("/")[0].endswith(".dist-info")}
        licences = [name for name in archive.namelist() if name.endswith("LICENSE")]
    of_the_report = {
        f"crowdppl/inference/report/{name}.{kind}" for name in ("page", "gold_page") for kind in ("css", "js")
    }
    templates = {
        (Path("crowdppl") / path.relative_to(ROOT)).as_posix()
        for room in ROOMS
        for path in (ROOT / room / "templates").glob("*")
    }
    folder = ROOT / "data" / "reference_posteriors"
    draws = {(Path("crowdppl") / path.relative_to(ROOT)).as_posix() for path in folder.rglob("*") if path.is_file()}
    schemas = {"crowdppl/inference/storage/manifest.schema.json"}
    assert in_wheel == in_tree | of_the_report | templates | draws | schemas | {"crowdppl/py.typed"}
    assert licences
    assert not [name for name in in_wheel if "papers" in name or "benchmarks" in name], "experiments run in a clone"


def test_every_folder_of_modules_is_listed_as_a_package_once():
    modules = [path.relative_to(ROOT).parent for path in ROOT.rglob("*.py")]
    folders = {folder for folder in modules if folder.parts[:1] not in NO_PACKAGES and not hidden(folder)}
    assert folders == ROOMS
    assert len(SETUPTOOLS["packages"]) == len(ROOMS)


def test_the_version_is_one():
    """In the project's metadata, in the package, and where it says how to cite it."""
    texts = {path: (ROOT / path).read_text() for path in ("pyproject.toml", "__init__.py", "CITATION.cff")}
    found = {
        path: re.findall(r'^(?:__)?version(?:__)?\s*[=:]\s*"?([\d.]+)', text, re.M) for path, text in texts.items()
    }
    assert len({tuple(versions) for versions in found.values()}) == 1, found


def test_the_command_lists_its_verbs(in_environment):
    output = in_environment("python", "-m", "crowdppl", "--help")
    for verb in ("fit", "demo", "datasets"):
        assert verb in output


def test_the_installed_command_lists_the_embedded_dataset(in_environment):
    assert "anesthesia" in in_environment("crowdppl", "datasets")


def test_the_faces_of_other_libraries_are_packages_beside_the_rooms(in_environment):
    code = "from crowdppl.sklearn import CrowdClassifier; from crowdppl.crowdkit import DawidSkene; import sklearn; "
    code += "import crowdppl as cp; print(CrowdClassifier, cp.sklearn.__file__, sklearn.__file__)"
    assert in_environment("python", "-c", code).count("site-packages") == 2


def test_a_story_is_fitted_by_the_wheel_and_not_by_the_tree(in_environment, python):
    where = Path(in_environment("python", "-c", SMOKE).strip().splitlines()[-1])
    assert where.is_relative_to(python.parents[1])
    assert not where.is_relative_to(ROOT)
