"""Error messages name the command line's options where they would name Python's arguments."""

import pytest

from crowdppl.cli.advice import for_the_shell


@pytest.mark.parametrize(
    ("in_python", "on_the_command_line"),
    [
        ("Did you mean worker='rater'?", "Did you mean --worker 'rater'?"),
        ("is it the one, label='x y'?", "is it the one, --label 'x y'?"),
        ("pass worker=None.", "pass --no-worker."),
        ("pass separator=';'.", "pass --separator ';'."),
        ("given for both task= and label=; name", "given for both --task and --label; name"),
        ("pass repeats='keep' to use", "pass --repeats 'keep' to use"),
        ("list all in classes=[...]", "list all in --classes A,B,C"),
        ("list all tasks in tasks=[...]", "list all tasks in Python, with tasks=[...]"),
        ("with Annotations.from_frame(frame, features={task: vector, …})", "with --features FILE"),
        ("ask to overwrite it", "give --overwrite to replace it"),
        ("read it with from_parquet", "give it the suffix .parquet"),
        ("--set draws=5: draws belongs to svi", "--set draws=5: draws belongs to svi"),
        ("diagonal=0.0: a positive number", "diagonal=0.0: a positive number"),
    ],
)
def test_advice_is_given_in_options(in_python, on_the_command_line):
    assert for_the_shell(in_python) == on_the_command_line
