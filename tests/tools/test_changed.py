import pytest
from changed import ROOT, selected


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (["data/wide.py"], "tests/data"),
        (["inference/engines/em.py"], "tests/inference/engines/test_em.py"),
        (["models/glad.py", "models/mace.py"], "tests/models"),
        (["tests/data/test_gold_and_features.py"], "tests/data/test_gold_and_features.py"),
        (["README.md"], "tests/test_readme.py"),
    ],
)
def test_a_change_has_the_tests_of_its_room(changed, expected):
    assert expected in selected(changed)


def test_tests_that_import_a_module_are_of_it_wherever_they_are():
    found = selected(["inference/densities/portable.py"])
    assert "tests/models/test_bradley_terry.py" in found
    assert "tests/models/test_abstentions.py" in selected(["tests/brute_force.py"])


def test_what_everything_stands_on_has_all_tests_and_prose_that_no_test_reads_none():
    assert selected(["pyproject.toml", "data/wide.py"]) == selected(["tests/conftest.py"]) == ["tests"]
    assert selected(["CODE_OF_CONDUCT.md"]) == []


def test_every_module_has_tests():
    modules = [
        path.relative_to(ROOT).as_posix()
        for room in ("data", "models", "inference", "cli")
        for path in (ROOT / room).rglob("*.py")
    ]
    assert all(selected([name]) not in ([], ["tests"]) for name in modules)
