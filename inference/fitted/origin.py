"""When and with what a fit was made."""

import json
import platform
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version

MADE_WITH = ("crowdppl", "jax", "numpyro", "numpy")


def here_and_now() -> dict[str, str]:
    """The time in UTC (``created_at``, ISO 8601), and the versions of Python and of packages as JSON."""
    return {"created_at": datetime.now(UTC).isoformat(timespec="seconds"), "versions": _versions()}


@cache
def _versions() -> str:
    found = {"python": platform.python_version()}
    for name in MADE_WITH:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # imported from a folder that nobody installed
            continue
    return json.dumps(found)
