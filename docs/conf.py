"""Sphinx's settings, the pages that list every module, one page a room, and those of the notebooks.

``make docs`` builds build/docs. Nothing is fetched, neither when the pages are built nor when they are read.
"""

import inspect
import re
import sys
from pathlib import Path
from typing import Any

from sphinx.ext import napoleon

import crowdppl

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from notebook_pages import write_markdown_page, write_notebook_pages  # noqa: E402  # it stands beside this file

ROOT = HERE.parent

project = "crowdppl"
author = "The crowdppl authors"
version = release = crowdppl.__version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "mathml"]
html_math_renderer = "mathml"
html_theme = "alabaster"
html_theme_options = {"description": crowdppl.__doc__.splitlines()[0], "page_width": "1240px", "fixed_sidebar": True}
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
OTHERS += " warnings xarray xr"
BARE = "Any Array ArrayTree Axes Axis Callable Console IData Iterable Iterator Literal Mapping Markup NDArray Path"
BARE += r" PathLike partial Dtype Colormap Figure Mesh Sequence Table Tensor dict\[str"
nitpick_ignore_regex = [
    ("py:.*", rf"({OTHERS.replace(' ', '|')})(\..*)?"),
    ("py:.*", BARE.replace(" ", "|")),
]
"""Names of other libraries are not looked up, since their inventories lie on other machines; ours are."""

exclude_patterns = ["_build"]

ROOMS = {
    "data": "What comes in",
    "models": "The stories",
    "models/parts": "What stories are made of",
    "models/pyro": "Five stories in plain Pyro",
    "inference": "Fitting",
    "inference/torch": "Stories in PyTorch and Pyro",
    "cli": "The command line",
}
"""Titles of pages; a room without one is called by its folder."""
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


def exported(module: str) -> list[str]:
    """Names of the module that the reference documents as ``crowdppl.name``."""
    return [name for name, thing in public().items() if thing.__module__ == module]


def write_pages(_: Any = None) -> None:
    """Write a page for each room, and refuse a public name that the reference forgets."""
    text = (HERE / "reference.rst").read_text(encoding="utf-8")
    shown = re.findall(r"^\.\. auto(?:function|class|exception)::[ ]crowdppl\.(\w+)$", text, flags=re.MULTILINE)
    if sorted(shown) != sorted(crowdppl.__all__):
        missing, unknown = set(crowdppl.__all__) - set(shown), set(shown) - set(crowdppl.__all__)
        raise SystemExit(
            f"docs/reference.rst lacks {sorted(missing)} and has {sorted(unknown)} beyond crowdppl.__all__"
        )
    PAGES.mkdir(exist_ok=True)
    for page in PAGES.glob("*.rst"):
        page.unlink()
    for folder, modules in rooms().items():
        room = f"crowdppl.{folder.replace('/', '.')}"
        title = f"{ROOMS.get(folder, folder.rpartition('/')[2].capitalize())}: {room}"
        lines = [title, "=" * len(title), "", f".. automodule:: {room}", ""]
        for module in (f"{room}.{stem}" for stem in modules if not stem.startswith("__")):
            lines += [module, "-" * len(module), "", f".. automodule:: {module}", "   :members:"]
            lines += [f"   :exclude-members: {', '.join(names)}"] if (names := exported(module)) else []
            lines += [""]
            if names:
                links = ", ".join(f"`crowdppl.{name}`" for name in names)
                lines += [f"Documented in the :doc:`reference </reference>`: {links}.", ""]
        (PAGES / f"{room}.rst").write_text("\n".join(lines), encoding="utf-8")


def as_prose(app: Any, what: str, *rest: Any, google: Any = napoleon._process_docstring) -> None:
    """Read the docstring of a property as that of a method: what stands before a colon is no type."""
    google(app, "method" if what in {"attribute", "data", "property"} else what, *rest)


napoleon._process_docstring = as_prose


def is_ours(thing: Any) -> bool:
    """Whether a member of a module was written here, as far as it says where it was written."""
    return not inspect.isroutine(thing) or (getattr(thing, "__module__", None) or "").startswith("crowdppl")


def readable(app: Any, what: str, name: str, thing: Any, options: Any, signature: str | None, returns: Any) -> Any:
    """The signature with an ellipsis for the default that a dataclass makes, which is no Python."""
    return signature and (signature.replace("<factory>", "..."), returns)


def find_public(app: Any, env: Any, node: Any, content: Any) -> Any:
    """Find what a docstring refers to by the module that it stands in, or that has no docstring of its own.

    Public things are documented as ``crowdppl.name``. Constants and names of types without a docstring are left
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
    return content if is_constant(node["reftarget"]) else None


def is_constant(target: str) -> bool:
    """Whether a module of the package has something of that name that is neither a class nor a function."""
    module, _, name = target.rpartition(".")
    modules = [found for path, found in sys.modules.items() if path.startswith("crowdppl.") and path.endswith(module)]
    things = [vars(found)[name] for found in modules if name in vars(found)]
    return any(not (inspect.isclass(thing) or inspect.isroutine(thing)) for thing in things)


def setup(app: Any) -> None:
    """Write the pages before Sphinx looks for them."""
    app.connect("config-inited", lambda app, _: write_pages())
    app.connect("config-inited", lambda app, _: write_notebook_pages(ROOT / "notebooks", HERE / "notebooks"))
    explanation = HERE / "explanation"
    for source in (ROOT / "ARCHITECTURE.md", HERE / "contracts.md"):
        page = explanation / f"{source.stem.lower()}.rst"
        app.connect("config-inited", lambda app, _, source=source, page=page: write_markdown_page(source, page))
    app.connect("missing-reference", find_public)
    app.connect("autodoc-process-signature", readable)
    app.connect("autodoc-skip-member", lambda app, what, name, thing, skip, options: skip or not is_ours(thing))
