import zipfile

import pytest
from saved_fits import KINDS

import crowdppl as cp


@pytest.fixture(scope="session")
def saved(request, tmp_path_factory):
    """A folder for each kind of fit, by name, and the fits that they hold: those kept of the newest format."""
    root, kept = tmp_path_factory.mktemp("saved"), request.config.rootpath / "tests" / "inference" / "storage" / "kept"
    folders = {kind: root / kind for kind in KINDS}
    for kind, folder in folders.items():
        with zipfile.ZipFile(kept / f"format-1-{kind}.zip") as file:
            file.extractall(folder)
        (folder / "labels.json").unlink()
    return folders, {kind: cp.load_fit(folder) for kind, folder in folders.items()}
