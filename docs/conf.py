"""Sphinx's settings, and the pages that are written before it reads: rooms, stories, and copies of the notebooks.

``make docs`` builds build/docs. Nothing is fetched, neither when the pages are built nor when they are read.
"""

import base64
import inspect
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from sphinx.ext import napoleon

import crowdppl

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
ROOT = HERE.parent

project = "crowdppl"
author = "The crowdppl authors"
version = release = crowdppl.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_design",
    "myst_nb",
    "mathml",
]
html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "crowdppl"
NOTEBOOKS = [f"notebooks/{path.stem}" for path in (ROOT / "notebooks").glob("*.ipynb")]
html_theme_options = {
    "collapse_navigation": True,  # a sidebar with every module would take longer than all else
    "navigation_depth": 2,
    "show_toc_level": 2,
    "secondary_sidebar_items": {"**": ["page-toc"], "stories": []} | {name: [] for name in NOTEBOOKS},
    "navigation_with_keys": False,
    "footer_start": [],
    "footer_end": [],
}
html_context = {"default_mode": "auto"}  # light or dark, as the reader's system has it
html_show_sphinx = False
templates_path = ["templates"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # pages show the outputs that the notebooks keep; make notebooks executes them
html_static_path = ["static"]
html_css_files = ["pages.css"]
toc_object_entries = False  # the bar beside a page has its sections
html_show_copyright = False
html_show_sourcelink = False
html_copy_source = False

default_role = "code"
napoleon_numpy_docstring = False
napoleon_custom_sections = ["Returns"]  # as prose: types stand in the signature
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
maximum_signature_line_length = 100

nitpicky = True
OTHERS = "abc arviz collections contextlib dataclasses dist enum flax funsor jax markupsafe matplotlib mpl narwhals"
OTHERS += " nnx np numpy numpyro optax os pa pandas pathlib pd pyarrow pyro rich tempfile torch typer types typing"
OTHERS += " sklearn warnings xarray xr"
BARE = "Any Array ArrayTree Axes Axis Callable Console IData Iterable Iterator Literal Mapping Markup NDArray Path"
BARE += r" PathLike partial Dtype Colormap Figure Mesh Sequence Table Tensor dict\[str"
nitpick_ignore_regex = [
    ("py:.*", rf"({OTHERS.replace(' ', '|')})(\..*)?"),
    ("py:.*", BARE.replace(" ", "|")),
]
"""Names of other libraries are not looked up, since their inventories lie on other machines; ours are."""

exclude_patterns = ["_build", "paper"]

ROOMS = {
    "data": "What comes in",
    "models": "The stories",
    "models/parts": "What stories are made of",
    "models/pyro": "Five stories in plain Pyro",
    "inference": "Fitting",
    "inference/torch": "Stories in PyTorch and Pyro",
    "cli": "The command line",
}
"""Titles of rooms; one without is called by its folder."""
WHOLE = ("models", "models/pyro")
"""Rooms whose modules have pages: the stories with their densities. Of others the reference has what is public."""
PAGES = HERE / "modules"
SKIPPED = ("docs", "tests", "benchmarks", "notebooks", "build", "dist")


def rooms() -> dict[str, list[str]]:
    """The modules of each folder of the package, the folder's own ``__init__`` first."""
    found: dict[str, list[str]] = {}
    for path in sorted(ROOT.rglob("*.py")):
        folder = path.relative_to(ROOT).parent
        if folder.parts and folder.parts[0] not in SKIPPED and not folder.parts[0].startswith("."):
            found.setdefault(folder.as_posix(), []).append(path.stem)
    return found


def public() -> dict[str, Any]:
    """What the reference documents, by name."""
    return {name: getattr(crowdppl, name) for name in crowdppl.__all__}


def is_ours(thing: Any) -> bool:
    """Whether a member of a module was written here, as far as it says where it was written."""
    return not inspect.isroutine(thing) or (getattr(thing, "__module__", None) or "").startswith("crowdppl")


def members(thing: Any) -> list[str]:
    """Names of the public members of a class."""
    return [name for name in dir(thing) if not name.startswith("_") and is_ours(getattr(thing, name))]


def fields(thing: Any) -> list[str]:
    """Names of the fields that the docstring of a class has in a section of its own."""
    names = getattr(thing, "__dataclass_fields__", getattr(thing, "_fields", ()))
    return list(names) if re.search(r"^ *Attributes:", thing.__doc__ or "", flags=re.MULTILINE) else []


MANY = 25
CLASSES = {name: thing for name, thing in public().items() if inspect.isclass(thing)}
autosummary_context = {
    "has_many": [name for name, thing in CLASSES.items() if len(members(thing)) > MANY],
    "fields": {name: fields(thing) for name, thing in CLASSES.items()},
}
"""Classes whose members have pages of their own, and what the page of a class has already."""
autosummary_filename_map = {
    f"crowdppl.{name}": f"crowdppl.{name}-class" for name in public() if name.istitle() and name.lower() in public()
}
"""Pages of a class and a function whose names differ in case alone, for discs that do not tell them apart."""


def write_pages(_: Any = None) -> None:
    """Write a page for each module and one for each room, and refuse a public name that the reference forgets."""
    text = (HERE / "reference.rst").read_text(encoding="utf-8")
    shown = re.findall(r"^   (\w+)$", text, flags=re.MULTILINE)
    if sorted(shown) != sorted(crowdppl.__all__):
        missing, unknown = set(crowdppl.__all__) - set(shown), set(shown) - set(crowdppl.__all__)
        raise SystemExit(
            f"docs/reference.rst lacks {sorted(missing)} and has {sorted(unknown)} beyond crowdppl.__all__"
        )
    written = {}
    for folder, modules in rooms().items():
        room = f"crowdppl.{folder.replace('/', '.')}"
        heading = f"{ROOMS.get(folder, folder.rpartition('/')[2].capitalize())}: {room}"
        listed = [heading, "=" * len(heading), "", *first_sentence(room), ""]
        for module in (f"{room}.{stem}" for stem in modules if not stem.startswith("__")):
            title = module.rpartition(".")[2] + (" in Pyro" if folder == "models/pyro" else "")
            listed += [f":doc:`{title} <../{module}>`" if folder in WHOLE else f"``{title}``"]
            listed += [f"   {line}" for line in first_sentence(module)]
            if folder in WHOLE:
                written[module] = f"{title}\n{'=' * len(title)}\n\n.. automodule:: {module}\n   :members:\n"
        written[f"rooms/{room}"] = "\n".join([*listed, ""])
    keep_only(PAGES, {f"{name}.rst": text.encode() for name, text in written.items()})


def first_sentence(module: str) -> list[str]:
    """The first paragraph of a module's docstring, by lines."""
    return (import_module(module).__doc__ or "").split("\n\n")[0].splitlines()


def write_notebooks(_: Any = None) -> None:
    """Copy the notebooks beside the pages, and the first picture of each for the gallery."""
    files = {}
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        files[path.name] = path.read_bytes()
        found = re.search(r'"image/png": "([^"]+)"', path.read_text(encoding="utf-8"))
        if found:
            files[f"{path.stem}.png"] = base64.b64decode(found[1].replace("\\n", ""))
    keep_only(HERE / "notebooks", files)


def keep_only(folder: Path, files: dict[str, bytes]) -> None:
    """Write files that have changed, and remove others of the folder; what has not changed is not built again."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_bytes() != content:
            path.write_bytes(content)
    for path in folder.rglob("*.*"):
        if path.is_file() and path.relative_to(folder).as_posix() not in files:
            path.unlink()


def as_prose(app: Any, what: str, *rest: Any, google: Any = napoleon._process_docstring) -> None:
    """Read the docstring of a property as that of a method: what stands before a colon is no type."""
    google(app, "method" if what in {"attribute", "data", "property"} else what, *rest)


napoleon._process_docstring = as_prose


def readable(app: Any, what: str, name: str, thing: Any, options: Any, signature: str | None, returns: Any) -> Any:
    """The signature with an ellipsis for the default that a dataclass makes, which is no Python."""
    return signature and (signature.replace("<factory>", "..."), returns)


def find_public(app: Any, env: Any, node: Any, content: Any) -> Any:
    """Find what a docstring refers to by the module that it stands in, or that has no docstring of its own.

    Public things are documented as ``crowdppl.name``. What the package has and the reference has not is left
    without a link; what does not exist stays an error.
    """
    if node.get("refdomain") != "py":
        return None
    homes = {f"{thing.__module__}.{thing.__qualname__}": f"crowdppl.{name}" for name, thing in public().items()}
    for target in (node["reftarget"], f"{node.get('py:module')}.{node['reftarget']}"):
        home = next((home for home in homes if target == home or target.startswith(f"{home}.")), None)
        if home is not None:
            name = homes[home] + target.removeprefix(home)
            python = env.domains.python_domain
            return python.resolve_xref(env, node["refdoc"], app.builder, node["reftype"], name, node, content)
    return content if exists(node["reftarget"], node.get("py:module") or "", node.get("py:class") or "") else None


def exists(target: str, module: str, within: str) -> bool:
    """Whether a module of the package, or a class in one, has something of that name."""
    path = [part for part in target.split(".") if part]
    for name, found in [(name, found) for name, found in sys.modules.items() if name.startswith("crowdppl.")]:
        if name.endswith(target.lstrip(".")) or any(_has(found, path[start:]) for start in range(len(path))):
            return True
    return _has(sys.modules.get(module), [within, *path]) if within else False


def _has(thing: Any, path: list[str]) -> bool:
    for part in path:
        if not hasattr(thing, part) and part not in getattr(thing, "__annotations__", {}):
            return False
        thing = getattr(thing, part, None)
    return True


def setup(app: Any) -> None:
    """Write the pages before Sphinx looks for them."""
    app.connect("config-inited", lambda app, _: write_pages())
    app.connect("config-inited", lambda app, _: write_notebooks())
    app.connect("missing-reference", find_public)
    app.connect("autodoc-process-signature", readable)
    app.connect("autodoc-skip-member", lambda app, what, name, thing, skip, options: skip or not is_ours(thing))
