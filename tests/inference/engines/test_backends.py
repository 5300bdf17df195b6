"""The extra ``pyro`` is needed where it is asked for, and nowhere else."""

import subprocess
import sys

import pytest

import crowdppl as cp


def test_crowdppl_imports_neither_torch_nor_pyro():
    code = "import sys, crowdppl; print([name for name in ('torch', 'pyro') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("missing", ["torch", "pyro"])
def test_without_the_extra_the_backend_says_what_to_install(tiny, monkeypatch, missing):
    for name in [name for name in sys.modules if name.startswith(("crowdppl.inference.torch", "crowdppl.models.pyro"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ImportError, match=r"pip install 'crowdppl\[pyro\]'"):
        cp.fit("dawid_skene", tiny, backend="pyro", progress=False)


def test_an_unknown_backend_is_named_with_those_there_are(tiny):
    with pytest.raises(cp.UnknownNameError, match="pyro"):
        cp.fit("dawid_skene", tiny, backend="piro", progress=False)
