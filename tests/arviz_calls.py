"""Calls of ArviZ's functions on a fit's data, in the words of the installed line: 0.23, or 1 and later."""

from importlib.metadata import version
from types import MappingProxyType
from typing import Any

from crowdppl.inference.storage.arviz_groups import group, make_idata

NEW = int(version("arviz").partition(".")[0]) >= 1
GROUPS = ("posterior", "prior")

# By function, as ArviZ 0.23 names it: the call with ArviZ 0.23, and with ArviZ 1. `idata` is a fit's, `other` that of
# another story, `one` has one number a draw.
CALLS = {
    "summary": ("az.summary(idata)", "az.summary(idata)"),
    "plot_trace": ("az.plot_trace(idata, var_names=['prevalence'])",) * 2,
    "plot_rank": ("az.plot_rank(idata, var_names=['prevalence'])",) * 2,
    "plot_forest": ("az.plot_forest(idata, var_names=['confusion'], combined=True)",) * 2,
    "plot_pair": ("az.plot_pair(idata, var_names=['prevalence'])",) * 2,
    "plot_energy": ("az.plot_energy(idata)",) * 2,
    "plot_ess": ("az.plot_ess(idata, var_names=['prevalence'])",) * 2,
    "plot_ppc": (
        "az.plot_ppc(idata, var_names=['majority_share'])",
        "az.plot_ppc_dist(idata, var_names=['majority_share'])",
    ),
    "plot_ppc, prior": (
        "az.plot_ppc(idata, group='prior', var_names=['majority_share'])",
        "az.plot_ppc_dist(idata, group='prior_predictive', var_names=['majority_share'])",
    ),
    "plot_bpv": (
        "az.plot_bpv(idata, kind='t_stat', t_stat='mean', var_names=['majority_share'])",
        "az.plot_ppc_tstat(idata, t_stat='mean', var_names=['majority_share'])",
    ),
    "loo": ("az.loo(idata)",) * 2,
    "compare": ("az.compare({'this': idata, 'other': other})",) * 2,
    "loo_pit": ("az.loo_pit(idata, y='majority_share')", "az.loo_pit(idata, var_names='majority_share')"),
    "plot_loo_pit": (
        "az.plot_loo_pit(idata, y='majority_share')",
        "az.plot_loo_pit(idata, var_names=['majority_share'])",
    ),
    "psens, prior": (
        "az.psens(idata, component='prior', var_names=['prevalence'])",
        "az.psense(idata, group='prior', var_names=['prevalence'])",
    ),
    "psens, likelihood": (
        "az.psens(idata, component='likelihood', var_names=['prevalence'])",
        "az.psense(idata, group='likelihood', var_names=['prevalence'])",
    ),
    "psens, label probabilities": (
        "az.psens(idata, var_names=['truth_probability'])",
        "az.psense(idata, var_names=['truth_probability'])",
    ),
    "plot_bf": (
        "az.plot_bf(one, var_name='confusion', ref_val=0.5)",
        "az.plot_bf(one, var_names='confusion', ref_val=0.5)",
    ),
    "hdi": ("az.hdi(idata, var_names=['confusion'])",) * 2,
}
INSTALLED = MappingProxyType({name: calls[NEW] for name, calls in CALLS.items()})


def run(call: str, idata: Any, other: Any) -> Any:
    """What a call returns."""
    import arviz as az

    return eval(call, {"az": az, "idata": idata, "other": other, "one": _of_one_cell(idata)})


def _of_one_cell(idata: Any) -> Any:
    """Posterior and prior of the first worker's probability of the first annotation of the first class."""
    cut = {name: group(idata, name)[["confusion"]].isel(worker=0, truth=0, annotation=0) for name in GROUPS}
    return make_idata(cut)
