"""Error messages name the command line's options where they would name Python's arguments."""

import re
import shlex

import pytest
from command_line import crowdppl, refused

import crowdppl as cp
from crowdppl.cli.advice import for_the_shell, mended
from crowdppl.cli.commands import ELSEWHERE
from crowdppl.data.kinds import fraction_text


@pytest.mark.parametrize(
    ("in_python", "on_the_command_line"),
    [
        ("Did you mean worker='rater'?", "Did you mean --worker 'rater'?"),
        ("is it the one, label='x y'?", "is it the one, --label 'x y'?"),
        ("Say which it is by task='COL'.", "Say which it is by --task COL."),
        ("If they are classes: columns='classes'.", "If they are classes: --columns 'classes'."),
        ("pass worker=None.", "pass --no-worker."),
        ("pass separator=';'.", "pass --separator ';'."),
        ("given for both task= and label=; name", "given for both --task and --label; name"),
        ("pass repeats='keep' to use", "pass --repeats 'keep' to use"),
        ("list all in classes=[...]", "list all in --classes A,B,C"),
        ("anew with truth_classes=[...] that", "anew with --truth-classes A,B that"),
        ("truth_classes=['very no', 1]: from 2 to 3", "--truth-classes 'very no,1': from 2 to 3"),
        ("abstain= and truth_classes= do not go together", "--abstain and --truth-classes do not go together"),
        ("8 is not in classes=[1, 2, 3]; add it to classes", "8 is not in --classes 1,2,3; add it to --classes"),
        (
            "merge= cannot be used; leave it out (options are gold, item_features)",
            "--merge cannot be used; leave it out",
        ),
        (
            "c.csv: meaning: no row has; leave out of meaning= what",
            "c.csv: --meaning: no row has; leave out of --meaning what",
        ),
        ("list its classes: classes={'is safe': [...]}", "list its classes: --classes 'is safe=A,B,C'"),
        ("classes['safe']=[0] must list", "--classes safe=0 must list"),
        ("ordered={'q': [1, 2, 3]} says so, and ordered={'q': False}", "--classes 'q=1<2<3' says so, and --no-ordered"),
        ("the greatest in ordered=[...]", "the greatest in --classes A,B,C beside --ordered"),
        (
            fraction_text("0.5", merges=False).partition(";")[0],
            "'0.5' is a fraction, and real numbers are not made classes: write a file with them rounded, or as a few "
            "named grades, such as low, mid and high",
        ),
        (
            fraction_text("0.5"),
            "'0.5' is a fraction, and real numbers are not made classes: bin them, as by --merge 0..0.3=0 --merge "
            "0.3..0.7=1 --merge 0.7..1=2, or write a file with them rounded; where they are names of classes, list all "
            "in --classes A,B,C, or from the least to the greatest in --classes A,B,C beside --ordered where they are "
            "steps of a scale",
        ),
        ("is not in ordered=[2.0, 2.5]; add it to ordered", "is not in --classes '2.0<2.5'; add it to --classes"),
        ("add it to classes, or leave classes out to", "add it to --classes, or leave --classes out to"),
        (
            "make annotations of everything with classes=[…], and",
            "make annotations of everything with --classes A,B,C, and",
        ),
        ("give those of tasks, by gold={task: label, …}", "give those of tasks, in the file of gold labels"),
        ("list all tasks in tasks=[...]", "list all tasks in Python, with tasks=[...]"),
        ("with Annotations.from_frame(frame, features={task: vector, …})", "with --features FILE"),
        ("ask to overwrite it", "give --overwrite to replace it"),
        ("name a new folder, or give overwrite=True", "name a new folder, or give --overwrite"),
        ("as in Annotations.from_frame(frame, abstain=['abstain'])", "as in --abstain VALUE"),
        ("label, give abstain=['n/a', 'none']", "label, give --abstain 'n/a' --abstain 'none'"),
        ("no label, give abstain=[-1, 99]", "no label, give --abstain -1 --abstain 99"),
        ("raise epochs, or leave out step for exact", "raise --set epochs=…, or leave out --set step for exact"),
        ("do not agree; raise warmup and draws", "do not agree; raise --set warmup=… and --set draws=…"),
        ("raise max_iterations or learning_rate", "raise --set max_iterations=… or --set learning_rate=…"),
        ("at step 3; lower learning_rate", "at step 3; lower --set learning_rate=…"),
        (
            "Smaller diagonal= and off_diagonal= weaken it",
            "Smaller --set diagonal=… and --set off_diagonal=… weaken it",
        ),
        ("Give scan(…, memory=…) more, or", "Give more --memory, or"),
        ("leave it out, or give step='stochastic'", "leave it out, or give --set step=stochastic"),
        ("fewer, or scan(…, memory=…) more", "fewer, or more --memory"),
        ("load the annotations with cp.Annotations.from_parquet(path) for that", "give --no-stream for that"),
        ("read it with from_parquet", "give it the suffix .parquet"),
        ("every=10.0 belongs to checkpoint=, the", "--every 10.0 belongs to --checkpoint DIR, the"),
        ("every='5min' belongs to checkpoint=, the", "--every 5min belongs to --checkpoint DIR, the"),
        ("resume=True belongs to checkpoint=, the", "--resume belongs to --checkpoint DIR, the"),
        ("every='soon': seconds, or", "--every soon: seconds, or"),
        (
            "cp.estimate(fit, gold) measures with them, cp.fit(…, gold=gold) uses them",
            "crowdppl estimate measures with them, --gold FILE --use-gold uses them",
        ),
        ("--columns 'classes' (cp.Annotations.from_counts takes them as well).", "--columns 'classes'."),
        ('confirm them with method="nuts".', "confirm them with --method nuts."),
        ("that they share: give shared_error=True", "that they share: give --set shared_error=true"),
        ("take method='svi' or 'nuts'", "take --method svi or --method nuts"),
        ("give task_difficulty=True too", "give --set task_difficulty=true too"),
        ("it needs membership='answer'", "it needs --set membership=answer"),
        ("memory='much': bytes", "--memory much: bytes"),
        ("goes on with resume=True there", "goes on with --resume there"),
        ("annotator_groups(gated=True) needs", "annotator_groups(gated=True) needs"),
        ("--set shared_error=true", "--set shared_error=true"),
        (
            "fit with worker_families={worker: family, …}",
            "fit with --set worker_families=FILE with the columns worker and family",
        ),
        (
            "['no', 'yes', 'maybe']; fit dawid_skene or one_coin",
            "['no', 'yes', 'maybe']; give --story dawid_skene or --story one_coin",
        ),
        (
            "needs a key, which you keep: key=bytes or a file, such as one",
            "needs a key, which you keep: --key FILE, such as one",
        ),
        ("fit with abstentions='uninformative'", "fit with --set abstentions=uninformative"),
        ("tasks in fit.mode_labels tell", "tasks in cp.load_fit('DIR').mode_labels in Python tell"),
        ("the file fit.json is not of it", "the file fit.json is not of it"),
        ("cp.error_correlation(fit, gold) says", "in Python cp.error_correlation(cp.load_fit('DIR'), gold) says"),
        ("--set draws=5: draws belongs to svi", "--set draws=5: draws belongs to svi"),
        (
            "gold labels of some tasks tell how often: cp.estimate(fit, gold)",
            "gold labels of some tasks tell how often: crowdppl estimate DIR GOLD",
        ),
        (
            "cp.estimate(fit, gold, of='population') has those",
            "crowdppl estimate DIR GOLD --of population has those",
        ),
        ("(true labels are taken by gold='truth')", "(true labels are taken by --gold FILE)"),
        ("item_features= is of comparisons", "--item-features is of comparisons"),
        ("such as meaning={'0': 'right', '1': 'left'}", "such as --meaning 0=right --meaning 1=left"),
        ("by meaning={value: 'left', …}; else comparisons=False", "by --meaning VALUE=left; else --no-comparisons"),
        ("diagonal=0.0: a positive number", "diagonal=0.0: a positive number"),
        (
            "for cp.Annotations.from_comparisons(table, worker=None)",
            "for cp.Annotations.from_comparisons(table, worker=None)",
        ),
        (
            "pd.concat([table.assign(a=(1, 2))], ignore_index=True), label='x'",
            "pd.concat([table.assign(a=(1, 2))], ignore_index=True), --label 'x'",
        ),
        (
            "by .cat.reorder_categories([...], ordered=True), or ordered=True",
            "by .cat.reorder_categories([...], ordered=True), or --ordered",
        ),
        (
            "cp.loo(fit, by='task', reloo=True) refits",
            "in Python cp.loo(cp.load_fit('DIR'), by='task', reloo=True) refits",
        ),
        (
            "Predictive(story, infer_discrete=True) in (a, resume=True",
            "Predictive(story, infer_discrete=True) in (a, --resume",
        ),
        ("is near that on all; cp.fit(…, quality='pooled').", "is near that on all; --set quality=pooled."),
        ("their column, Annotations.from_frame(…, seconds='column')", "their column, --seconds 'column'"),
        ("system='nope': there is no such column", "--system 'nope': there is no such column"),
        ("positive='2' is none of the classes 0, 1", "--positive '2' is none of the classes 0, 1"),
        ("leave them out: cp.scan(frame, missing='drop')", "leave them out: --missing 'drop'"),
        (
            "load the annotations with cp.Annotations.from_parquet(path, abstain=[...]), or",
            "give --no-stream --abstain VALUE, or",
        ),
        (
            "classes={question: [...]} and ordered={question: True} say it otherwise, or classes=[...]",
            "--classes QUESTION=A,B,C and --classes 'QUESTION=A<B<C', in an order, say it otherwise, or "
            "--classes A,B,C",
        ),
    ],
)
def test_advice_is_given_in_options(in_python, on_the_command_line):
    assert for_the_shell(in_python) == on_the_command_line


def test_a_saved_fit_is_named_where_its_folder_is_known():
    assert for_the_shell("fit.mode_labels", "my fit") == "cp.load_fit('my fit').mode_labels in Python"
    said = for_the_shell("cp.estimate(fit, gold, of='population') has those", "my fit")
    assert said == "crowdppl estimate 'my fit' GOLD --of population has those"
    assert for_the_shell("with checkpoint='folder'", "fit") == "with --checkpoint DIR"  # another folder


@pytest.mark.parametrize(
    ("said", "command"),
    [
        ("By what is in them: --task 'a b' --label 'c'?", "crowdppl fit a.csv --task 'a b' --label c"),
        ("Did you mean --worker 'rater'? Where", "crowdppl fit a.csv --worker rater"),
        ("first; --missing 'drop' leaves them out", "crowdppl fit a.csv --missing drop"),
        ("separated by ';': pass --separator ';'.", "crowdppl fit a.csv --separator ';'"),
        ("Say which it is by --task COL.", None),
        ("did you mean b.csv?", None),
    ],
)
@pytest.mark.parametrize("wrong", [[], ["--worker", "x"], ["--worker=x"]])
def test_the_command_that_mends_can_be_pasted(said, command, wrong):
    expected = (
        command if command is None or "--worker" in command else command.replace(" --", f" {' '.join(wrong)} --", 1)
    )
    assert mended(said, ["fit", "a.csv", *wrong]) == (expected and expected.replace("  ", " "))


def test_a_refused_command_is_shown_mended_and_does_what_was_wanted(tmp_path, monkeypatch):
    rows = [f"t{i},w{j},{(i + j) % 2}" for i in range(6) for j in range(3)]
    (tmp_path / "a b.csv").write_text("\n".join(["Aufgabe,Kollege,Urteil", *rows]))
    arguments = ["fit", str(tmp_path / "a b.csv"), "--story", "one_coin", "--out", str(tmp_path / "out")]
    monkeypatch.setattr("sys.argv", ["crowdppl", *arguments])
    shown = crowdppl(*arguments).stderr.splitlines()[-1]
    assert shown.startswith("Try: crowdppl fit ")
    assert crowdppl(*shlex.split(shown.removeprefix("Try: crowdppl "))).exit_code == 0


@pytest.mark.parametrize(("name", "said"), ELSEWHERE.items())
def test_a_name_that_is_no_command_is_told_what_does_what_it_says(name, said):
    assert said in refused(name, "a.csv")
    command, options = said.split()[1], re.findall(r"--[a-z]+", said)
    shown = crowdppl(command, "--help").output
    assert all(option in shown for option in options)


def test_a_name_near_a_command_is_told_the_command():
    assert "Did you mean 'fit'?" in refused("fti", "a.csv")


def test_where_every_task_has_a_gold_label_the_shell_is_told_its_option():
    annotations, _ = cp.simulate("one_coin", n_tasks=8, n_workers=3, seed=0)
    with pytest.raises(cp.AnnotationError) as error:
        cp.next_gold(cp.fit("majority_vote", annotations, progress=False), 2)
    said = for_the_shell(str(error.value))
    assert "--gold" in said
    assert "(" not in said
