"""Tables of comparisons are found by their columns, whatever tool wrote them, and can be refused."""

import json

import pandas as pd
import pytest

import crowdppl as cp
from crowdppl.cli.arguments import read_annotations
from crowdppl.cli.request import Request
from crowdppl.data import AnnotationError, Annotations
from crowdppl.data.errors import AnnotationWarning

ARENA = pd.DataFrame(
    [
        ("q1", "gpt", "llama", "j1", "model_a"),
        ("q1", "llama", "gpt", "j2", "model_b"),
        ("q2", "gpt", "vicuna", "j1", "tie (bothbad)"),
        ("q2", "vicuna", "llama", "j2", "tie"),
        ("q3", "gpt", "vicuna", "j2", "model_b"),
    ],
    columns=["question_id", "model_a", "model_b", "judge", "winner"],
)
WANTED = Annotations.from_comparisons(
    ARENA, left="model_a", right="model_b", worker="judge", label="winner", prompt="question_id"
)


def same(ours, theirs):
    return ours.pairs.equals(theirs.pairs) and ours.to_frame().equals(theirs.to_frame())


def test_pairs_of_which_both_are_bad_are_said_to_be_ties_unless_something_is_said_of_them(capsys):
    for word in ("both_bad", "both"):
        table = ARENA.replace("tie (bothbad)", word)
        for options, said in (({}, True), ({"abstain": word}, False), ({"meaning": {word: "tie"}}, False)):
            cp.read(table, **options)
            assert (f"'{word}' as a tie" in capsys.readouterr().err) == said


def test_an_export_of_an_arena_is_read_from_csv_json_and_a_table_and_it_is_said_as_what(tmp_path, capsys):
    told = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]
    records = [
        {**row, "conversation_a": told, "conversation_b": told, "turn": 1} for row in ARENA.to_dict(orient="records")
    ]
    (tmp_path / "arena.json").write_text(json.dumps(records))
    ARENA.to_csv(tmp_path / "arena.csv", index=False)
    for source in (tmp_path / "arena.json", tmp_path / "arena.csv", ARENA):
        assert same(cp.read(source), WANTED)
        said = capsys.readouterr().err
        assert "'model_a' with 'model_b', label 'winner', worker 'judge', prompt 'question_id'" in said
        assert "5 comparisons of 3 items, 3 pairs, 2 workers" in said


@pytest.mark.parametrize(
    "names",
    [
        ("left", "right", "label", "worker"),
        ("item1", "item2", "preference", "rater"),
        ("left_system", "right_system", "verdict", "annotator"),
        ("option_first", "option_second", "choice", "user"),
        ("Response A", "Response B", "Winner", "Judge"),
    ],
)
def test_columns_and_labels_have_many_names(names):
    left, right, label, worker = names
    frame = ARENA[["model_a", "model_b", "winner", "judge"]].set_axis([left, right, label, worker], axis=1)
    for words in ({"model_a": "A", "model_b": "B"}, {"model_a": "left", "model_b": "right"}, {}):
        said = frame.assign(**{label: ARENA["winner"].replace(words)})
        by_pair = Annotations.from_comparisons(
            ARENA, left="model_a", right="model_b", worker="judge", label="winner", task=None
        )
        if words or left == "left":
            assert same(cp.read(said, tell=False), by_pair)
    winners = [row.model_a if row.winner == "model_a" else row.model_b for row in ARENA.itertuples()]
    winners = ["tie" if "tie" in said else name for said, name in zip(ARENA["winner"], winners, strict=True)]
    assert same(cp.read(frame.assign(**{label: winners}), tell=False), by_pair)


def test_numbers_in_text_are_numbers_and_a_column_task_names_the_pairs_where_it_does(tmp_path):
    frame = pd.DataFrame(
        {"task": [7, 7, 8], "left": [10, 20, 20], "right": [20, 10, 30], "worker": [1, 2, 1], "label": [10, 10, 30]}
    )
    frame.to_csv(tmp_path / "pairs.csv", index=False)
    found = cp.read(tmp_path / "pairs.csv", tell=False)
    assert list(found.tasks) == [7, 8]
    assert list(found.items) == [10, 20, 30]
    assert found.votes().tolist() == [[2, 0], [0, 1]]
    of_prompts = cp.read(frame.assign(task=1), tell=False)
    assert list(of_prompts.tasks) == [(1, 10, 20), (1, 20, 30)]


def test_what_is_no_comparison_stays_what_it_was(capsys):
    labels = ARENA.assign(label=["good", "bad", "good", "good", "bad"]).drop(columns="winner")
    assert list(cp.read(labels).classes) == ["bad", "good"]
    assert "'model_a' and 'model_b' are not compared (comparisons=True" in capsys.readouterr().err
    refused = cp.read(ARENA, comparisons=False, tell=False)
    assert refused.sides is None
    assert "tie (bothbad)" in refused.classes
    with pytest.raises(AnnotationError, match=r"'label', row 0: 'good'"):
        cp.read(labels, comparisons=True)
    with pytest.raises(AnnotationError, match=r"no two columns of items.*model_a"):
        cp.read(ARENA[["question_id", "judge", "winner"]], comparisons=True)
    with pytest.raises(AnnotationError, match=r"comparisons='no'"):
        cp.read(ARENA, comparisons="no")
    with pytest.raises(AnnotationError, match=r"'model_a' and 'model_b', row 0: 'gpt' is compared with itself"):
        cp.read(ARENA.assign(model_b="gpt"))


@pytest.mark.parametrize("name", ["winner", "label"])
@pytest.mark.parametrize(("place", "value"), [(1, "unsure"), (3, "lamma"), (4, "c")])
def test_an_unknown_winner_is_an_error_with_its_row_and_never_a_class(name, place, value):
    frame = ARENA.rename(columns={"winner": name})
    frame.loc[place, name] = value
    left, right = ARENA.loc[place, ["model_a", "model_b"]]
    accepted = f"left, right or tie .*here '{left}' or '{right}'"
    with pytest.raises(AnnotationError, match=rf"'{name}', row {place}: '{value}' .*{accepted}.*comparisons=False"):
        cp.read(frame)
    assert cp.read(frame, comparisons=False, tell=False).sides is None
    assert cp.read(frame, abstain=value, tell=False).n_by_worker().sum() == 5
    tie = cp.read(frame, meaning={value: "tie"}, tell=False)
    assert same(tie, cp.read(frame.assign(**{name: frame[name].replace(value, "tie")}), tell=False))


@pytest.mark.parametrize("said", [[0, 1, 0, 0, 1], [False, True, False, False, True], ["0", "1", "0", "0", "1"]])
def test_what_0_and_1_mean_is_asked(said, tmp_path):
    frame = ARENA.assign(winner=said)
    mend = r"meaning=\{'?(0|False)'?: 'right', '?(1|True)'?: 'left'\}"
    with pytest.raises(AnnotationError, match=rf"'winner', row 0: '?(0|False)'? is neither.*{mend}"):
        cp.read(frame)
    wanted = cp.read(ARENA.assign(winner=[["model_b", "model_a"][int(value)] for value in said]), tell=False)
    ones = {said[0]: "right", said[1]: "left"}
    assert same(cp.read(frame, meaning=ones, tell=False), wanted)
    frame.to_csv(tmp_path / "pairs.csv", index=False)
    told = [f"{value}={side}" for value, side in ones.items()]
    assert same(read_annotations(Request(file=str(tmp_path / "pairs.csv"), quiet=True, meaning=told)), wanted)
    for meaning, message in (({0: "up"}, r"0 means 'up'.*'tie'"), ("left", r"meaning='left': a dictionary")):
        with pytest.raises(AnnotationError, match=message):
            cp.read(frame, meaning=meaning)
    with pytest.raises(AnnotationError, match=r"leave it out, or comparisons=False"):
        cp.read(frame, meaning=ones, comparisons=False)
    with pytest.raises(ValueError, match=r"--meaning left: LABEL=left"):
        read_annotations(Request(file=str(tmp_path / "pairs.csv"), quiet=True, meaning=["left"]))


def test_numbers_of_sides_may_be_floats_and_numbers_of_other_labels_are_no_sides():
    numbers = ARENA.assign(winner=[1.0, 2.0, 1.0, 1.0, 2.0])
    assert cp.read(numbers, tell=False).sides is not None
    rated = ARENA.assign(rating=[1, 2, 3, 4, 5]).drop(columns="winner")
    assert cp.read(rated, tell=False).sides is None


def test_the_command_line_finds_and_refuses_them(tmp_path):
    path = str(tmp_path / "arena.csv")
    ARENA.to_csv(path, index=False)
    assert same(read_annotations(Request(file=path, quiet=True)), WANTED)
    assert read_annotations(Request(file=path, quiet=True, comparisons=False)).sides is None
    unnamed = read_annotations(Request(file=path, quiet=True, no_worker=True))
    assert unnamed.sides is not None
    assert not unnamed.named


def test_a_table_of_more_comparisons_is_joined_as_what_these_are():
    half, rest = ARENA.iloc[:3], ARENA.iloc[3:]
    named = {"left": "model_a", "right": "model_b", "worker": "judge", "label": "winner"}
    first = Annotations.from_comparisons(half, **named, prompt="question_id")
    joined = first.joined(rest)
    assert joined.pairs.loc[list(WANTED.tasks)].equals(WANTED.pairs)
    pd.testing.assert_frame_equal(joined.to_frame(), WANTED.to_frame())
    by_pair = Annotations.from_comparisons(half, **named).joined(rest)
    assert list(by_pair.tasks) == [("gpt", "llama"), ("gpt", "vicuna"), ("llama", "vicuna")]
    unnamed = {**named, "worker": None}
    assert Annotations.from_comparisons(half, **unnamed).joined(rest).n_annotations == 5
    with pytest.raises(AnnotationError, match=r"no column of prompts.*\('q1', 'gpt', 'llama'\)"):
        first.joined(rest.drop(columns="question_id"))
    with pytest.raises(AnnotationError, match=r"no column 'worker'"):
        first.joined(rest.drop(columns="judge"))
    with pytest.raises(AnnotationError, match=r"no table of comparisons"):
        first.joined(rest.drop(columns="winner"))


def test_a_fit_goes_on_with_a_table_of_more_comparisons_also_of_new_items():
    named = {"left": "model_a", "right": "model_b", "worker": "judge", "label": "winner"}
    fit = cp.fit("one_coin", Annotations.from_comparisons(ARENA.iloc[:3], **named), progress=False)
    more = fit.update(ARENA.iloc[3:].replace("llama", "new"))
    assert sorted(more.ranking.index) == ["gpt", "llama", "new", "vicuna"]
    assert more.ranking["n_comparisons"]["new"] == 1


def test_turns_of_a_prompt_are_prompts_of_their_own_unless_the_prompt_is_named(capsys):
    turns = pd.concat([ARENA.assign(turn=1), ARENA.assign(turn=2, winner="tie")], ignore_index=True)
    annotations = cp.read(turns)
    assert "prompt 'question_id', each 'turn' of which is a prompt of its own" in capsys.readouterr().err
    named = turns.assign(prompt=turns["question_id"] + ", turn " + turns["turn"].astype(str))
    columns = {"left": "model_a", "right": "model_b", "worker": "judge", "label": "winner", "prompt": "prompt"}
    assert same(annotations, Annotations.from_comparisons(named, **columns))
    assert annotations.n_tasks == 2 * WANTED.n_tasks
    merged = cp.read(turns, task="question_id")
    assert merged.n_tasks == WANTED.n_tasks
    unknown = turns.assign(turn=turns["turn"].where(turns.index > 0))
    with pytest.raises(AnnotationError, match="'turn', row 0: there is no turn"):
        cp.read(unknown)


@pytest.mark.parametrize("slip", [" GPT", "Gpt "])
def test_a_winner_that_differs_from_an_item_by_slips_alone_is_this_item_which_is_told(slip):
    """It was refused by a message that did not show the blank, and tidy=True is of no comparisons."""
    winners = [row.model_a if row.winner == "model_a" else row.model_b for row in ARENA.itertuples()]
    named = ARENA.assign(winner=winners)
    with pytest.warns(AnnotationWarning, match=f"'winner': labels differ from the items .* '{slip}' for 'gpt'"):
        assert same(cp.read(named.replace({"winner": {"gpt": slip}}), tell=False), cp.read(named, tell=False))


def test_a_winner_that_is_an_item_of_other_rows_is_refused_with_the_two_of_its_row():
    with pytest.raises(AnnotationError, match=r"row 0: 'vicuna' is neither .*here 'gpt' or 'llama';"):
        cp.read(ARENA.assign(winner=["vicuna", "gpt", "gpt", "llama", "gpt"]))


@pytest.mark.parametrize("winners", [["gpt", "vicuna", "llama", "tie", "gpt"], ["A", "B", "A", "tie", "B"]])
def test_columns_a_and_b_are_items_where_the_winner_is_one_of_both_and_workers_elsewhere(winners):
    """The winner was taken for the class of the prompt, and the models that it may be for the classes."""
    items = {"A": ["gpt", "gpt", "llama", "gpt", "vicuna"], "B": ["llama", "vicuna", "gpt", "llama", "gpt"]}
    table = pd.DataFrame({"prompt": [1, 2, 3, 4, 5], **items, "judge": "j1", "winner": winners})
    read = cp.read(table, tell=False)
    assert read.pairs.equals(Annotations.from_comparisons(table, prompt="prompt").pairs)
    assert list(read.items) == ["gpt", "llama", "vicuna"]
    votes = pd.DataFrame({"prompt": range(6), "A": list("xxyyxy"), "B": list("xyyyxx"), "winner": list("xyyyxx")})
    assert cp.read(votes, worker=None, tell=False).sides is None
