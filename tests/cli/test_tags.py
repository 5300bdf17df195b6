"""Tags and several questions on the command line: the same answers, priors and totals as in Python."""

import pandas as pd
import pytest
from command_line import crowdppl, refused

import crowdppl as cp
from crowdppl.cli.arguments import PRIORS, parse_settings

ROWS = "doc,rater,topics\n1,a,sports|politics\n1,b,sports\n2,a,\n2,b,politics\n3,a,art\n3,b,art|sports\n4,a,sports\n"


@pytest.fixture
def tagged(tmp_path):
    path = tmp_path / "tags.csv"
    path.write_text(ROWS)
    return path


def test_a_column_of_tags_is_read_as_in_python(tagged, tmp_path):
    table = pd.read_csv(tagged, keep_default_na=False)
    expected = cp.Annotations.from_tags(table, task="doc", worker="rater", tags="topics", empty="no")
    found = cp.read(tagged, tags="topics", empty="no", tell=False)
    assert found.to_frame().equals(expected.to_frame())
    tagged.write_text(ROWS.replace("|", ";"))
    assert cp.read(tagged, tags="topics", tag_separator=";", empty="no", tell=False).to_frame().equals(found.to_frame())
    (tmp_path / "gold.csv").write_text("doc,topics\n1,politics\n")
    gold = cp.read(tagged, tags="topics", tag_separator=";", empty="no", gold=tmp_path / "gold.csv", tell=False)
    assert dict(zip(gold.tasks, gold.gold, strict=True)) == {
        pair: -1 if pair[0] != 1 else int(pair[1] == "politics") for pair in gold.tasks
    }


def test_records_may_have_lists_of_tags():
    records = [{"id": 1, "judge": "a", "labels": ["x", "y"]}, {"id": 1, "judge": "b", "labels": []}]
    found = cp.read(records, tags="labels", tell=False)
    assert list(found.questions) == ["x", "y"]
    assert found.n_annotations == 4


def test_the_command_line_writes_totals_and_questions_of_python(tagged, tmp_path):
    out = tmp_path / "out"
    given = ("--tags", "topics", "--empty", "no", "--story", "one_coin")
    prior = ("--set", "truth_prior=CorrelatedQuestions(kinds=2)")
    done = crowdppl("fit", tagged, *given, *prior, "--out", out)
    assert done.exit_code == 0, done.output
    fit = cp.fit(
        "one_coin",
        cp.read(tagged, tags="topics", empty="no", tell=False),
        truth_prior=cp.CorrelatedQuestions(kinds=2),
        progress=False,
    )
    for name, frame, index in (("totals", fit.totals, "task"), ("questions", fit.questions, "question")):
        written = pd.read_csv(out / f"{name}.csv", index_col=index)
        pd.testing.assert_frame_equal(written, frame, check_dtype=False, check_index_type=False, atol=1e-5)


def test_what_cannot_be_is_refused_in_the_shells_words(tagged, tmp_path):
    out = ("--out", tmp_path / "out")
    assert "--empty 'no' says" in refused("fit", tagged, "--tags", "topics", *out)
    assert "line 4 of" in refused("fit", tagged, "--tags", "topics", *out)
    assert "Did you mean --tags 'topics'?" in refused("fit", tagged, "--tags", "topic", *out)
    assert "is of a column of tags" in refused("fit", tagged, "--empty", "no", *out)
    tagged.write_text(ROWS.replace("|", ";"))
    assert "--tag-separator ';' takes it apart" in refused("fit", tagged, "--tags", "topics", "--empty", "no", *out)


@pytest.mark.parametrize("name", PRIORS)
def test_priors_of_the_truth_are_given_by_name(name):
    found = parse_settings([f"truth_prior={name}"], "dawid_skene", "em")["truth_prior"]
    assert found == getattr(cp, name)()


def test_a_prior_of_another_name_or_with_other_arguments_is_refused():
    assert parse_settings(["truth_prior=Prevalence(10)"], "dawid_skene", "em")["truth_prior"] == cp.Prevalence(10)
    for text in ("Foo(2)", "__import__('os')", "Prevalence(open('x'))", "0.5", "Prevalence(1).x"):
        with pytest.raises(ValueError, match="one of Prevalence, SmoothPrevalence"):
            parse_settings([f"truth_prior={text}"], "dawid_skene", "em")
    with pytest.raises(ValueError, match=r"CorrelatedQuestions.*kins"):
        parse_settings(["truth_prior=CorrelatedQuestions(kins=2)"], "dawid_skene", "em")
