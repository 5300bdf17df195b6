"""The experiments by name."""

from __future__ import annotations

from importlib import import_module

from crowdppl.data.errors import check_name

from .experiment import Experiment

EXPERIMENTS = {
    "difficulty": "difficulty_specified",
    "lecture": "lecture",
    "cmm-simulated": "cmm_simulated",
    "cmm-matrices": "cmm_matrices",
    "cmm-labelme": "cmm_labelme",
    "conal-synthetic": "conal_synthetic",
    "conal-sweeps": "conal_sweeps",
    "conal-real": "conal_real",
    "dasc": "dasc",
    "dasc-published": "dasc_published",
    "dasc-best": "dasc_best",
    "dasc-sparsity": "dasc_sparsity",
}
"""The module that has each as its `EXPERIMENT`."""


def experiment(name: str) -> Experiment:
    """Return the experiment of a name.

    Raises:
        UnknownNameError: there is none.
    """
    check_name("experiment", name, EXPERIMENTS)
    found: Experiment = import_module(f".{EXPERIMENTS[name]}", __package__).EXPERIMENT
    return found
