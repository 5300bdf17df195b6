"""Where draws come from, as text: what a file of a posterior says of itself."""

from __future__ import annotations

import json
from importlib.metadata import version

from ...data.fingerprint import fingerprint
from ..fitted.fitted import Fitted
from .checked_json import is_plain


def provenance(fitted: Fitted) -> dict[str, str]:
    """The library, the story and its hyperparameters, the engine, its settings and seed, the data, time and versions.

    ``created_at`` and ``versions`` are of the fit, not of the file; a fit from files that do not know them has none.
    """
    annotations = fitted.annotations
    settings = {name: value if is_plain(value) else repr(value) for name, value in fitted.settings.items()}
    return {
        "inference_library": "crowdppl",
        "inference_library_version": version("crowdppl"),
        "story": fitted.story,
        "hyperparameters": json.dumps({name: repr(value) for name, value in fitted.model.hyperparameters.items()}),
        "method": fitted.method,
        "settings": json.dumps(settings),
        "seed": str(fitted.settings.get("seed", "")),
        "data": f"{annotations.n_tasks} tasks, {annotations.n_workers} workers, {annotations.n_classes} classes, "
        f"{annotations.n_annotations} annotations"
        + (f", abstentions {list(annotations.abstentions)}" if annotations.abstains else ""),
        "data_fingerprint": fingerprint(annotations),
        **fitted.origin,
    }
