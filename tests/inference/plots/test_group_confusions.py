"""Groups are drawn with the confusion matrices, shares, entropies and similarities that describe_groups has."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from conftest import random_annotations
from made_fits import changed

import crowdppl as cp
from crowdppl.inference.fitted.groups import group_confusion_draws, group_share_draws, similarity_to_identity
from crowdppl.inference.plots.confusion_matrices import plot_groups
from crowdppl.inference.plots.style import share


@pytest.fixture(scope="module")
def data():
    return random_annotations(np.random.default_rng(1), n_tasks=30, n_workers=6, n_classes=3, n_rows=150)


@pytest.fixture(scope="module")
def groups(data):
    options = {"max_iterations": 3, "tolerance": 1e9, "restarts": 1}
    return cp.fit("annotator_groups", data, membership="worker", groups=3, progress=False, **options)


@pytest.fixture(scope="module")
def with_draws(groups):
    rng = np.random.default_rng(0)
    draws = {
        "prevalence": rng.dirichlet(np.ones(3), (1, 20)),
        "group_confusion": rng.dirichlet(np.ones(3), (1, 20, 3, 3)),
        "weights": rng.dirichlet(np.ones(3), (1, 20, 6)),
    }
    draws = {name: values.astype(np.float32) for name, values in draws.items()}
    return changed(groups, method="svi", outcome=groups.outcome._replace(draws=draws))


def test_the_groups_are_drawn_by_their_share_with_what_describe_groups_says(with_draws):
    axes = plot_groups(with_draws)
    described = cp.describe_groups(with_draws).sort_values("share", ascending=False)
    confusions = with_draws.parameters["group_confusion"].to_numpy()
    for ax, (m, group) in zip(axes, described.iterrows(), strict=True):
        expected = f"group {m}: share {group['share']:.0%}\nentropy {group['entropy']:.2f}, "
        assert ax.get_title() == expected + f"similarity {group['similarity']:.2f}"
        np.testing.assert_allclose(ax.images[0].get_array(), confusions[m], rtol=1e-6)
    assert axes[0].figure.get_suptitle() == "Confusion matrices of 3 groups (annotator_groups)"


def test_cells_have_the_bounds_of_the_intervals_where_there_are_draws(with_draws, groups):
    ax = plot_groups(with_draws, interval=0.5)[0]
    m = int(ax.get_title()[len("group ")])
    low, high = np.quantile(with_draws.draws["group_confusion"].values[0, :, m], [0.25, 0.75], axis=0, method="weibull")
    mean = with_draws.draws["group_confusion"].values[0, :, m].mean(0)
    low, high = np.minimum(low, mean), np.maximum(high, mean)
    bounds = [text for text in ax.texts if "–" in text.get_text()]
    assert len(bounds) == 9
    for text in bounds:
        given, truth = text.xy
        written = list(map(float, text.get_text().split("–")))
        assert written == pytest.approx([low[truth, given], high[truth, given]], abs=0.0051)
    assert not any("–" in text.get_text() for text in plot_groups(groups)[0].texts)


def test_clusters_of_workers_are_groups(data):
    fit = cp.fit("worker_clusters", data, clusters=2, progress=False, max_iterations=3, tolerance=1e9)
    confusions, shares = group_confusion_draws(fit.fitted)[0, 0], group_share_draws(fit.fitted)[0, 0]
    order = np.argsort(-shares, kind="stable")
    for ax, m in zip(plot_groups(fit), order, strict=True):
        assert ax.get_title().startswith(f"group {m}: share {shares[m]:.0%}\n")
        np.testing.assert_allclose(ax.images[0].get_array(), confusions[m], rtol=1e-5)


def test_similarity_is_1_for_the_identity_and_0_where_no_annotation_is_right():
    swapped = np.array([[0.0, 1.0], [1.0, 0.0]])
    np.testing.assert_allclose(similarity_to_identity(np.stack([np.eye(2), swapped])), [1, 0], atol=1e-12)


def test_a_story_without_groups_too_few_axes_and_no_mass_are_refused(em, groups):
    with pytest.raises(ValueError, match=r"dawid_skene .*groups; fit a story that has"):
        plot_groups(em)
    with pytest.raises(ValueError, match="the 3 groups need one each"):
        plot_groups(groups, axes=plt.figure().add_subplot())
    with pytest.raises(ValueError, match="interval=2"):
        plot_groups(groups, interval=2)


def test_groups_of_annotations_whose_workers_are_not_named_are_drawn():
    counts = cp.Annotations.from_counts(np.random.default_rng(0).multinomial(5, [0.2, 0.3, 0.5], 30))
    fit = cp.fit("annotator_groups", counts, membership="answer", groups=2, max_iterations=3, progress=False)
    axes = plot_groups(fit)
    shares = cp.describe_groups(fit)["share"].sort_values(ascending=False)
    assert [ax.get_title().splitlines()[0] for ax in axes] == [
        f"group {m}: share {share(p)}" for m, p in shares.items()
    ]
