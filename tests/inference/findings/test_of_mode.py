"""Labels at a mode of more parameters than annotations."""

import pytest

import crowdppl as cp

PARTS = {"shared_error": True, "task_difficulty": True}


@pytest.fixture(scope="module")
def crowd():
    return cp.simulate("dawid_skene", n_tasks=12, n_workers=4, n_classes=5, annotations_per_task=3, seed=0)[0]


@pytest.mark.parametrize(
    ("story", "parts", "severity"),
    [
        ("dawid_skene", PARTS, "warning"),
        ("dawid_skene", {"shared_error": True}, "note"),
        ("dawid_skene", {}, None),
        ("one_coin", PARTS, None),
    ],
)
@pytest.mark.filterwarnings("ignore::crowdppl.ConvergenceWarning", "ignore::crowdppl.CrowdWarning")
def test_a_mode_of_more_probabilities_than_annotations_is_said_of_stories_with_parts(crowd, story, parts, severity):
    fit = cp.fit(story, crowd.without_gold(), progress=False, max_iterations=2, **parts)
    said = [finding for finding in fit.findings if finding.code == "mode_of_many"]
    assert [finding.severity for finding in said] == ([] if severity is None else [severity])
    if said:
        values = said[0].values
        assert values["parameters"] > 4 * 5 * 4
        assert values["annotations"] == 36
        assert "svi" in said[0].remedy
