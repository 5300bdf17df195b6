"""A new finding is one function, and is then in warning, terminal, summary, card, page, table and file."""

import html

import pytest

import crowdppl as cp
from crowdppl.cli.terminal import plain_messages
from crowdppl.inference.findings.register import CHECKS, NEEDS, Said, check

ABOUT = {"draws": cp.ConvergenceWarning, "crowd": cp.CrowdWarning}


@pytest.fixture
def annotations():
    return cp.load_dataset("anesthesia")


@pytest.fixture(params=list(ABOUT))
def toy(request):
    """A check of a toy, as somebody who adds one writes it."""

    @check("toy", request.param, needs={"workers"})
    def toy(of):
        n_workers = of.annotations.n_workers
        yield Said(f"{n_workers} workers have <toys>", "take them away", {"workers": n_workers})
        yield Said("a toy is nice to have", severity="note")

    yield toy
    del CHECKS["toy"]


def test_a_new_finding_is_on_every_surface(toy, annotations, tmp_path, capsys):
    with plain_messages():
        fit = cp.fit("dawid_skene", annotations, progress=False, max_iterations=300)
    sentence = "5 workers have <toys>; take them away"
    assert "Warning: 5 workers have <toys>; take them away" in " ".join(capsys.readouterr().err.split())
    assert sentence in fit.warnings
    assert f"Warning: {sentence}" in str(fit.summary())
    page = fit.report(tmp_path / "page.html", checks=False).read_text()
    for shown in (fit._repr_html_(), fit.summary()._repr_html_(), page):
        assert html.escape(sentence) in shown
    row = fit.findings.to_frame().set_index("code").loc["toy"].iloc[0]
    assert row.to_dict() == {
        "about": toy.about,
        "severity": "warning",
        "text": "5 workers have <toys>",
        "remedy": "take them away",
    }
    assert html.escape("5 workers have <toys>") in fit.findings._repr_html_()
    fit.save(tmp_path / "fit")
    assert cp.load_fit(tmp_path / "fit").findings == fit.findings


def test_a_note_is_no_warning(toy, annotations):
    with pytest.warns(ABOUT[toy.about]) as caught:
        fit = cp.fit("dawid_skene", annotations, progress=False, max_iterations=300)
    (warning,) = (one.message for one in caught if one.message.finding.code == "toy")
    note = fit.findings[fit.findings.index(warning.finding) + 1]
    assert (note.severity, note.sentence) == ("note", "a toy is nice to have")
    assert note.sentence not in fit.warnings
    assert "Note: a toy is nice to have" in fit.findings.to_text()


def test_an_average_says_once_what_the_crowd_is_and_of_each_fit_what_is_its_own(toy, annotations):
    with pytest.warns(ABOUT[toy.about]):
        fits = {name: cp.fit(name, annotations, progress=False) for name in ("dawid_skene", "one_coin")}
    stack = cp.stack(fits, weights={"dawid_skene": 0.5, "one_coin": 0.5})
    stories = [finding.story for finding in stack.findings.warnings if finding.code == "toy"]
    assert stories == ([""] if toy.about == "crowd" else ["dawid_skene", "one_coin"])
    assert ("story" in stack.findings.to_frame()) == (toy.about == "draws")


def test_two_checks_of_one_code_and_unknown_needs_are_refused(toy):
    with pytest.raises(ValueError, match="two checks have the code 'toy'"):
        check("toy", "crowd")(list)
    with pytest.raises(ValueError, match=f"'other' needs 'money'; known are {', '.join(NEEDS)}"):
        check("other", "crowd", needs={"money"})
