"""Files of netCDF that the package wrote, read as ArviZ data."""

from pathlib import Path

import xarray as xr

from crowdppl.inference.storage.arviz_groups import make_idata

ENGINE = "h5netcdf"


def load_netcdf(path):
    """The groups of a file, in memory: the file may be replaced after."""
    with xr.open_datatree(Path(path).resolve(strict=True), engine=ENGINE) as tree:
        return make_idata({name: node.to_dataset().load() for name, node in tree.children.items()})
