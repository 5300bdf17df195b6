"""What a release is made of: the source distribution, the workflows, the paper, and how to take part."""

import importlib.util
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))


def triggers(path):
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    return content.get("on", content.get(True))  # YAML 1.1 reads the key as a truth value


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """The names in a source distribution of a copy of the tree."""
    folder = tmp_path_factory.mktemp("sdist")
    generated = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist")
    shutil.copytree(ROOT, folder / "tree", ignore=generated)
    code = f"from setuptools import build_meta; build_meta.build_sdist({str(folder)!r})"
    options = {"cwd": folder / "tree", "capture_output": True, "text": True, "timeout": 300}
    done = subprocess.run([sys.executable, "-c", code], **options)
    assert done.returncode == 0, done.stderr
    (built,) = folder.glob("crowdppl-*.tar.gz")
    assert built.stat().st_size < 25e6  # bytes; 15 million are draws of reference posteriors
    with tarfile.open(built) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


def test_the_source_distribution_has_the_package_its_data_and_tests_and_no_experiments(sources):
    rooms = ("data", "models", "inference", "cli")
    code = {path.relative_to(ROOT).as_posix() for room in rooms for path in (ROOT / room).rglob("*.py")}
    assert code <= sources
    draws = {path.relative_to(ROOT).as_posix() for path in (ROOT / "data/reference_posteriors").rglob("*.json")}
    assert draws <= sources
    assert {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "py.typed", "tests/house.py"} <= sources
    assert not [name for name in sources if name.split("/")[0] in ("benchmarks", "notebooks", "docs")]
    assert not [name for name in sources if "papers" in name.split("/")]


def test_only_a_person_starts_the_workflow_that_publishes():
    (publish,) = [path for path in WORKFLOWS if "gh-action-pypi-publish" in path.read_text(encoding="utf-8")]
    assert set(triggers(publish)) == {"workflow_dispatch"}
    jobs = yaml.safe_load(publish.read_text(encoding="utf-8"))["jobs"]
    (job,) = [job for job in jobs.values() if "id-token" in job.get("permissions", {})]
    assert job["environment"] == "release"
    assert not re.search(r"https?://|password|secrets\.", publish.read_text(encoding="utf-8"))


def test_a_release_has_absolute_links_to_files_that_are_there_and_says_where_the_project_lies():
    spec = importlib.util.spec_from_file_location("published_links", ROOT / "docs" / "published_links.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    files = [(ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "pyproject.toml")]
    readme, project = module.with_addresses(*files, "scheme://host/owner/name", "v1")
    links = re.findall(r"(!?)\[[^\]]*\]\(([^)]+)\)", readme)
    ours = [(mark, link) for mark, link in links if link.startswith("scheme:")]
    assert len(ours) > 20
    assert not [link for _, link in links if "://" not in link]
    for mark, link in ours:
        place, _, path = link.removeprefix("scheme://host/owner/name/").partition("/v1/")
        assert place == ("raw" if mark else "blob")
        assert (ROOT / path.partition("#")[0]).exists(), path
    stated = tomllib.loads(project)["project"]
    assert stated["urls"]["Source"] == "scheme://host/owner/name"
    assert {name: value for name, value in stated.items() if name != "urls"} == tomllib.loads(files[1])["project"]


def test_the_workflow_tests_each_python_that_the_package_says_it_supports():
    (tests,) = [path for path in WORKFLOWS if path.stem == "tests"]
    matrix = yaml.safe_load(tests.read_text(encoding="utf-8"))["jobs"]["tests"]["strategy"]["matrix"]["python"]
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    supported = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', project)
    assert matrix[: len(supported)] == supported  # and one that is to be supported once it has passed


@pytest.mark.parametrize("path", FORMS, ids=[path.stem for path in FORMS])
def test_a_form_for_issues_asks_for_something_that_is_needed(path):
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    if path.stem != "config":
        assert {"name", "description", "body"} <= set(content)
        assert any(field.get("validations", {}).get("required") for field in content["body"])


def test_hooks_before_a_commit_are_what_lint_runs_first():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    assert [repo["repo"] for repo in hooks] == ["local"]
    recipe = re.search(r"^lint:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)[1]
    for hook in hooks[0]["hooks"]:
        words = [word for word in hook["entry"].replace(".venv/bin/", "").split() if word != "--force-exclude"]
        assert " ".join(words) in recipe.replace("$(BIN)/", "")


def test_the_paper_has_the_readmes_table_and_a_source_for_each_reference():
    paper = (ROOT / "docs/paper/paper.md").read_text(encoding="utf-8")
    rows = [line for line in paper.splitlines() if line.startswith("|")]
    assert len(rows) > 4
    assert "\n".join(rows) in (ROOT / "README.md").read_text(encoding="utf-8")
    keys = re.findall(r"^@\w+\{(\w+),", (ROOT / "docs/paper/paper.bib").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(re.findall(r"@(\w+\d{4})", paper)) == set(keys)
    assert "![" not in paper, "a picture that no command makes"
    assert len(re.sub(r"^---.*?---", "", paper, flags=re.DOTALL).split()) < 1000  # as the journal asks


def test_files_that_those_who_take_part_read_link_to_files_that_are_there():
    for name in ("CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert [link for link in re.findall(r"\]\((?!https?:)([^)#]+)\)", text) if not (ROOT / link).exists()] == []
