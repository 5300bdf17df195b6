"""Silence of libraries whose warnings at import nobody can act on."""

import sys
import warnings
from importlib import import_module


def import_tqdm() -> None:
    """Import tqdm, which NumPyro needs, without its advice to install ipywidgets: crowdppl's bars do without."""
    if "IPython" not in sys.modules or "tqdm.auto" in sys.modules:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import_module("tqdm.auto")
