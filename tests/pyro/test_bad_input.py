"""What cannot be done says so, and names the fix."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

torch = pytest.importorskip("torch", reason="the extra pyro is not installed: no torch")
pytest.importorskip("pyro", reason="the extra pyro is not installed: no pyro")

from torch import nn
from torch.utils.data import TensorDataset
from torch_crowd import network

import crowdppl as cp
from crowdppl.inference.torch import in_pyro


def fit(annotations, **options):
    options = {"classifier": network(), "epochs": 2} | options
    return cp.fit("two_coin", annotations, backend="pyro", progress=False, **options)


def test_a_module_that_returns_probabilities_is_found_out(crowd):
    with pytest.raises(cp.StoryError, match=r"gives probabilities.*leave out the softmax"):
        fit(crowd, classifier=nn.Sequential(nn.Linear(2, 2), nn.Softmax(dim=-1)))


def test_logarithms_of_probabilities_are_logits(crowd):
    assert fit(crowd, classifier=nn.Sequential(nn.Linear(2, 2), nn.LogSoftmax(dim=-1))).posterior.shape == (40, 2)


@pytest.mark.parametrize("bad", [nn.Linear(2, 3), nn.Linear(2, 1)])
def test_logits_of_another_shape_are_named_with_the_shape_that_is_needed(crowd, bad):
    with pytest.raises(cp.StoryError, match=r"gives \(16, [13]\) for 16 tasks of 2 classes; .*\(16, 2\) are needed"):
        fit(crowd, classifier=bad)


@pytest.mark.parametrize(
    ("network", "method", "lacks"),
    [
        ("mlp", "svi", "has weights without a prior"),
        ("mlp", "nuts", "has weights without a prior"),
        (cp.Classifier("mlp", prior=1.0), "svi", "switches units off in training"),
    ],
)
def test_a_network_of_jax_that_would_have_to_be_trained_says_what_to_write(crowd, network, method, lacks):
    with pytest.raises(cp.StoryError, match=rf"{lacks}.*prior=1\.0\), a torch\.nn\.Module, .* or leave out backend"):
        cp.fit("two_coin", crowd, classifier=network, method=method, backend="pyro", progress=False)


def test_a_module_on_another_device_than_asked_for_says_how_to_move_it(crowd):
    with pytest.raises(cp.StoryError, match=r"weights are on 'cpu', and device='meta'.*module\.to\('meta'\)"):
        fit(crowd, device="meta")


@pytest.mark.parametrize("n", [39, 41])
def test_a_dataset_of_another_length_than_the_number_of_tasks_is_refused(crowd, n):
    with pytest.raises(ValueError, match=f"the dataset has {n} items, the annotations 40 tasks; item i must be"):
        fit(crowd, dataset=TensorDataset(torch.zeros(n, 2)))


def test_items_that_are_pairs_are_refused(crowd):
    with pytest.raises(cp.StoryError, match=r"tuple of 2; .*x alone"):
        fit(crowd, dataset=TensorDataset(torch.zeros(40, 2), torch.zeros(40)))


@pytest.mark.parametrize("method", ["em", "svi"])
def test_batch_norm_with_a_batch_of_one_names_the_fix(crowd, method):
    module = nn.Sequential(nn.BatchNorm1d(2), nn.Linear(2, 2))
    with pytest.raises(ValueError, match=r"batch norm, .*give batch_size=2"):
        cp.fit("two_coin", crowd, classifier=module, batch_size=1, method=method, backend="pyro", progress=False)


def test_a_last_batch_of_one_task_is_filled_up_for_batch_norm(crowd):
    assert fit(crowd, classifier=nn.Sequential(nn.BatchNorm1d(2), nn.Linear(2, 2)), batch_size=13).posterior.shape


def test_tasks_without_features_or_a_dataset_are_refused(crowd):
    with pytest.raises(cp.StoryError, match=r"features of the tasks.*or dataset="):
        fit(crowd.replace(features=None))


def test_a_dataset_without_a_classifier_is_refused(crowd):
    with pytest.raises(ValueError, match="give classifier="):
        fit(crowd, classifier=None, dataset=TensorDataset(torch.zeros(40, 2)))


@pytest.mark.parametrize(("loader", "match"), [({"shuffle": True}, "'shuffle', which crowdppl sets"), ({}, None)])
def test_what_crowdppl_sets_of_a_loader_is_refused(crowd, loader, match):
    dataset = TensorDataset(torch.as_tensor(np.array(crowd.features)))
    if match is None:
        assert fit(crowd, dataset=dataset, loader={"num_workers": 0}).posterior.shape == (40, 2)
        return
    with pytest.raises(ValueError, match=match):
        fit(crowd, dataset=dataset, loader=loader)


def test_logits_that_are_not_finite_name_the_step(crowd):
    module = network()
    with torch.no_grad():
        module[0].weight.fill_(float("nan"))
    with pytest.raises(FloatingPointError, match="not finite at step 1 of epoch 1"):
        fit(crowd, classifier=module)


@pytest.mark.parametrize("option", ["clip", "optimizer"])
def test_options_that_em_over_all_data_does_not_look_at_are_refused(crowd, option):
    with pytest.raises(ValueError, match=f"{option}= is of the training"):
        cp.fit("two_coin", crowd, backend="pyro", progress=False, **{option: 1.0})


def test_a_file_of_another_engine_is_not_gone_on_from(crowd, tmp_path):
    fit(crowd, checkpoint=tmp_path)
    with pytest.raises(cp.StorageError, match=r"not the same method \(em there, svi now\)"):
        cp.fit("two_coin", crowd, backend="pyro", method="svi", checkpoint=tmp_path, resume=True, progress=False)
    with pytest.raises(cp.StorageError, match="not the same hyperparameters: truth_prior"):
        fit(crowd, checkpoint=tmp_path, resume=True, classifier=network(hidden=3))


def test_an_option_that_is_misspelt_is_named_with_the_nearest(crowd):
    with pytest.raises(cp.UnknownNameError, match="optimizer"):
        fit(crowd, optimiser=torch.optim.SGD)


def test_running_statistics_of_a_flax_network_are_no_sites_of_pyros(crowd):
    classifier = cp.Classifier("mlp", hidden=(3,), batch_norm=True, prior=1.0)
    with pytest.raises(cp.StoryError, match=r"is a running statistic, which Pyro does not keep: give .* torch module"):
        in_pyro("two_coin", truth_prior=classifier)(crowd)


def test_a_prior_that_samples_with_numpyro_is_a_part_of_the_story(crowd):
    def by_site(annotations):
        share = numpyro.sample("share", dist.Dirichlet(np.ones((2, 2), np.float32)).to_event(1))
        return jnp.log(share)[annotations.task[: annotations.n_tasks] % 2]

    options = {"truth_prior": by_site, "method": "svi", "max_iterations": 5, "draws": 3, "progress": False}
    assert cp.fit("dawid_skene", crowd, backend="pyro", **options).outcome.draws["share"].shape == (1, 3, 2, 2)


def test_a_module_that_does_not_take_the_features_says_which_it_gets(crowd):
    with pytest.raises(cp.StoryError, match=r"inputs, of shape \(16, 2\)"):
        cp.fit("dawid_skene", crowd, classifier=torch.nn.Linear(3, 2), progress=False)


def test_a_module_where_none_is_taken_says_what_to_write(crowd):
    module = torch.nn.Linear(2, 2)
    with pytest.raises(cp.StoryError, match=r"classifier=module, backend='pyro'"):
        cp.Classifier(module)
    with pytest.raises(cp.StoryError, match=r"classifier=module, backend='pyro'"):
        cp.fit("majority_vote", crowd, classifier=module, progress=False)
    with pytest.raises(cp.StoryError, match=r"given as classifier=module"):
        cp.fit("dawid_skene", crowd, truth_prior=module, progress=False)
    with pytest.raises(cp.StoryError, match=r"network=3: one of \['logistic'.*is needed"):
        cp.fit("dawid_skene", crowd, classifier=3, backend="pyro", progress=False)


def test_weights_of_another_precision_than_the_inputs_name_the_mend(crowd):
    with pytest.raises(cp.StoryError, match=r"weights are torch\.float64, .*give module\.to\(torch\.float32\)"):
        fit(crowd, classifier=nn.Linear(2, 2).double())


@pytest.mark.parametrize(("option", "such"), [("optimizer", "AdamW"), ("scheduler", "ExponentialLR")])
def test_a_name_in_the_place_of_a_function_is_refused(crowd, option, such):
    with pytest.raises(ValueError, match=rf"{option}='adam': a function is needed, such as .*{such}"):
        fit(crowd, **{option: "adam"})
