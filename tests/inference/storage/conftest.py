import pytest
from saved_fits import KINDS, made, small_annotations


@pytest.fixture(scope="session")
def saved(tmp_path_factory):
    """A folder for each kind of fit, by name, and the fits."""
    root, annotations = tmp_path_factory.mktemp("saved"), small_annotations()
    fits = {kind: made(kind, annotations) for kind in KINDS}
    for kind, fit in fits.items():
        fit.save(root / kind)
    return {kind: root / kind for kind in KINDS}, fits
