"""No import of the package runs upward or in a circle, and the check that says so finds what is planted."""

import re
from pathlib import Path

import house
import pytest


def planted(folder: Path, **files: str) -> list[str]:
    """What the check says of a package of these files; ``__`` in a name is a slash, and ``door`` the ``__init__``."""
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/').replace('door', '__init__')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return house.violations(folder)


def test_the_house_is_in_order():
    assert house.violations() == []


def test_every_room_of_the_order_exists():
    paths = [house.ROOT / room for level in house.FLOORS for room in level]
    assert [path for path in paths if not path.is_dir() and not path.with_suffix(".py").exists()] == []


def test_the_picture_of_the_architecture_is_of_the_rooms_as_they_are(monkeypatch):
    monkeypatch.syspath_prepend(str(house.ROOT / "docs"))
    import house_picture

    kept = house_picture.PICTURE.read_text(encoding="utf-8")
    rooms = [room for level in house.FLOORS for room in level if "__" not in room]
    assert kept == house_picture.picture(), "draw it again: python docs/house_picture.py"
    assert [room for room in rooms if f">{room}</text>" not in kept] == []


def test_files_that_the_architecture_names_are_there():
    text = "".join((house.ROOT / name).read_text(encoding="utf-8") for name in ("ARCHITECTURE.md", "docs/contracts.md"))
    named = set(re.findall(r"`((?:data|models|inference|cli|tests|docs|benchmarks)/[\w/.]*)`", text))
    assert len(named) > 20
    assert [name for name in sorted(named) if not (house.ROOT / name).exists()] == []


@pytest.mark.parametrize(
    "statement",
    [
        "from ...inference.densities import model",
        "from ...inference.densities.model import Model",
        "import crowdppl.inference.densities.model",
        "from crowdppl.inference.densities.model import Model",
        "def late():\n    from ...inference.densities.model import Model",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ...inference.densities.model import Model",
    ],
)
def test_an_import_upward_is_found_however_it_is_written(tmp_path, statement):
    (said,) = planted(tmp_path, models__parts__truth=statement, inference__densities__model="")
    assert said == "models/parts/truth.py imports inference/densities/model.py, which stands higher"


def test_imports_downward_and_within_a_room_are_in_order(tmp_path):
    files = {"data__ids": "", "data__annotations": "from .ids import Ids", "inference__fit": "from ..data import ids"}
    assert planted(tmp_path, **files, cli__door="from crowdppl.inference.fit import fit") == []


def test_rooms_of_one_floor_do_not_import_each_other(tmp_path):
    (said,) = planted(tmp_path, inference__scores__gold="from ..storage import folder", inference__storage__folder="")
    assert said == "inference/scores/gold.py imports inference/storage/folder.py, which stands on the same floor"


def test_a_circle_of_modules_is_found_through_a_lazy_import(tmp_path):
    files = {
        "data__a": "from .b import B",
        "data__b": "from .c import C",
        "data__c": "def late():\n    from .a import A",
    }
    assert planted(tmp_path, **files) == ["circle: data/a, data/b, data/c"]


def test_a_circle_of_folders_is_found_where_no_modules_make_one(tmp_path):
    files = {
        "data__left__a": "from ..right.b import B",
        "data__right__b": "",
        "data__right__c": "from ..left.d import D",
        "data__left__d": "",
    }
    assert planted(tmp_path, **files) == ["circle: data/left, data/right"]


def test_a_module_that_imports_its_own_package_is_in_a_circle_with_it(tmp_path):
    said = planted(tmp_path, data__door="from .ids import Ids", data__ids="from . import Annotations")
    assert said == ["circle: data/__init__, data/ids"]


def test_a_module_in_no_room_is_named(tmp_path):
    assert planted(tmp_path, inference__misc="") == ["inference/misc.py stands in no room of FLOORS"]


def test_two_files_of_one_name_are_found_and_pyros_mirror_is_not(tmp_path):
    said = planted(tmp_path, data__workers="", inference__plots__workers="", models__pyro__workers="")
    assert said == ["one name twice: data/workers.py, inference/plots/workers.py"]


def test_a_module_hidden_by_a_function_of_its_name_is_found_and_a_storys_file_is_not(tmp_path):
    files = {
        "inference__scores__door": "from .score import score",
        "inference__scores__score": "",
        "models__door": "from .mace import mace",
        "models__mace": "",
    }
    assert planted(tmp_path, **files) == [
        "inference/scores/__init__.py exports score, which hides the module of that name"
    ]
