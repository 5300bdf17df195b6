"""The options that several subcommands take, with their help texts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ANNOTATIONS, KNOWN, FIT, OUTPUT = "Annotations", "Gold labels and features", "Fit", "Output"  # panels of the help


def _column(text: str) -> typer.models.OptionInfo:
    return typer.Option(metavar="COL", help=text, rich_help_panel=ANNOTATIONS)


def _file(more: str) -> typer.models.ArgumentInfo:
    return typer.Argument(
        metavar="FILE",
        help="Annotations: a table (CSV, TSV, Excel, Parquet, JSON, JSON Lines; a row for each annotation, or a column "
        "for each worker or class), an export of Label Studio, Argilla, Prodigy, doccano, MTurk, Toloka or Appen, - "
        f"for standard input, or the name of a dataset (see crowdppl datasets). {more}",
        show_default=False,
    )


File = Annotated[str, _file("Or a folder of .parquet files, which are streamed.")]
FileOrFit = Annotated[
    str,
    _file(
        "Or the folder of a saved fit, which crowdppl fit or fit.save in Python wrote: its page is written without "
        "fitting again."
    ),
]
Task = Annotated[
    str | None,
    typer.Option(
        metavar="COL", help="Column of the tasks.", show_default="found by its name", rich_help_panel=ANNOTATIONS
    ),
]
Worker = Annotated[
    str | None,
    typer.Option(
        metavar="COL", help="Column of the workers.", show_default="found by its name", rich_help_panel=ANNOTATIONS
    ),
]
NoWorker = Annotated[
    bool, typer.Option("--no-worker", help="No column names the workers.", rich_help_panel=ANNOTATIONS)
]
Label = Annotated[
    str | None,
    typer.Option(
        metavar="COL",
        help="Column of the annotations: what each worker gave.",
        show_default="found by its name",
        rich_help_panel=ANNOTATIONS,
    ),
]
Count = Annotated[str | None, _column("Column of how many equal annotations a row stands for.")]
Seconds = Annotated[str | None, _column("Column of how many seconds each annotation took.")]
Separator = Annotated[
    str | None,
    typer.Option(
        metavar="CHAR",
        help="Character between the columns of a CSV file.",
        show_default="found out",
        rich_help_panel=ANNOTATIONS,
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Encoding of a text file.", show_default="found out", rich_help_panel=ANNOTATIONS
    ),
]
Sheet = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Sheet of an Excel file with several.", rich_help_panel=ANNOTATIONS),
]
Question = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Question of an export that has several, to read.", rich_help_panel=ANNOTATIONS),
]
Columns = Annotated[
    str | None,
    typer.Option(
        metavar="workers|classes|tasks",
        help="What the columns of a table with a row for each task are: workers, with their labels, or classes, with "
        "vote counts; or tasks, of a table with a row for each worker, such as answers to a form.",
        show_default="found out",
        rich_help_panel=ANNOTATIONS,
    ),
]
Outer = Annotated[
    str | None,
    typer.Option(
        metavar="task|worker", help="What the outer keys of nested dictionaries are.", rich_help_panel=ANNOTATIONS
    ),
]
Several = Annotated[
    str | None,
    typer.Option(
        metavar="refuse|leave_out",
        help="What is done with annotations of several classes in an export.",
        rich_help_panel=ANNOTATIONS,
    ),
]
Classes = Annotated[
    str | None,
    typer.Option(
        metavar="A,B,C",
        help="All classes in their order.",
        show_default="the annotations' values, sorted",
        rich_help_panel=ANNOTATIONS,
    ),
]
Abstain = Annotated[
    list[str] | None,
    typer.Option(
        metavar="VALUE",
        help="A value that is no class, such as abstain; may be given several times. Whether abstentions say something "
        "of the true class: --set abstentions=uninformative for no.",
        rich_help_panel=ANNOTATIONS,
    ),
]
Repeats = Annotated[
    str,
    typer.Option(
        metavar="keep|first|error",
        help="Where a worker annotated a task more than once: keep all annotations, the first, or refuse the file.",
        rich_help_panel=ANNOTATIONS,
    ),
]
Tidy = Annotated[
    bool,
    typer.Option(
        "--tidy",
        help="Make one class of labels that differ by case, blanks, a full stop, quotation marks, or what is around "
        "them alone, such as 4, Score: 4 and 4/5.",
        rich_help_panel=ANNOTATIONS,
    ),
]
Missing = Annotated[
    str | None,
    typer.Option(
        metavar="refuse|drop",
        help="Where a row lacks its task, worker or label: refuse the file, or drop the row.",
        show_default="refuse",
        rich_help_panel=ANNOTATIONS,
    ),
]
Gold = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Known true labels, with the same columns as the annotations but without workers. The labels found are "
        "compared with them.",
        rich_help_panel=KNOWN,
    ),
]
UseGold = Annotated[
    bool,
    typer.Option("--use-gold", help="Use the gold labels in the fit, as known true labels.", rich_help_panel=KNOWN),
]
Features = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Features of the tasks: a .csv, .tsv or .parquet file with the tasks in one column and numbers in the "
        "others.",
        rich_help_panel=KNOWN,
    ),
]
Probabilities = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE",
        help="Probabilities of the classes by a classifier or a language model, which may be wrong and too sure: a "
        ".csv, .tsv or .parquet file with the tasks in one column and a column for each class. What they are worth "
        "is learned. May be given several times; the files' names are those of the models.",
        rich_help_panel=KNOWN,
    ),
]
Classifier = Annotated[
    str | None,
    typer.Option(
        metavar="logistic|mlp|cnn",
        help="Classifier of the features, trained with the fit, as prior of the true labels.",
        rich_help_panel=KNOWN,
    ),
]
Method = Annotated[
    str,
    typer.Option(
        metavar="em|svi|nuts",
        help="Engine: em finds the posterior's mode, svi approximates the posterior, nuts samples it.",
        rich_help_panel=FIT,
    ),
]
Seed = Annotated[
    int, typer.Option(min=0, max=2**32 - 1, help="The same seed gives the same result.", rich_help_panel=FIT)
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Hyperparameter of the story or option of the engine, such as diagonal=4 or max_iterations=500; may be "
        "given several times.",
        rich_help_panel=FIT,
    ),
]
Workers = Annotated[
    str,
    typer.Option(
        "--workers",
        metavar="keep|hash|drop",
        help="What the output has of the workers: their names, pseudonyms by --key, or nothing.",
        rich_help_panel=OUTPUT,
    ),
]
Key = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="The key of the pseudonyms, 16 to 64 random bytes, which you keep.", rich_help_panel=OUTPUT
    ),
]
MinGroup = Annotated[
    int | None,
    typer.Option(
        "--min-group",
        metavar="K",
        help="With --workers drop, write worker_groups.csv, in which every row stands for at least K workers.",
        rich_help_panel=OUTPUT,
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only warnings and errors.", rich_help_panel=OUTPUT)]
Stream = Annotated[
    bool | None,
    typer.Option(
        "--stream/--no-stream",
        help="Read Parquet files chunk by chunk, so that they may be larger than memory; by EM or SVI.",
        show_default="for folders, and for files that are too large for memory",
        rich_help_panel=FIT,
    ),
]
Memory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="What a streamed fit may take of memory, such as 4GiB.",
        show_default="half of the machine's",
        rich_help_panel=FIT,
    ),
]
Checkpoint = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Folder where the fit keeps where it stands, so that it survives what ends it: --resume goes on from "
        "there, to the same results.",
        show_default="nothing is kept",
        rich_help_panel=FIT,
    ),
]
Every = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="How often --checkpoint is written: seconds, or a time such as 30s, 5min or 1h.",
        show_default="5min",
        rich_help_panel=FIT,
    ),
]
Resume = Annotated[
    bool,
    typer.Option("--resume", help="Go on from what --checkpoint has; begin where it has nothing.", rich_help_panel=FIT),
]
Work = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Keep what a streamed fit prepares, and its state after each pass over the data: the same command goes on "
        "from there.",
        show_default="a temporary folder",
        rich_help_panel=FIT,
    ),
]
