"""The options that several commands take, with their help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

File = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="Annotations: a .csv, .tsv, .parquet or .json file; or the name of a dataset.",
        show_default=False,
    ),
]
Task = Annotated[str | None, typer.Option(metavar="COL", help="Column of the tasks.", show_default="task")]
Worker = Annotated[str | None, typer.Option(metavar="COL", help="Column of the workers.", show_default="worker")]
Label = Annotated[str | None, typer.Option(metavar="COL", help="Column of the annotations.", show_default="label")]
Count = Annotated[
    str | None, typer.Option(metavar="COL", help="Column with how many equal annotations a row stands for.")
]
Seconds = Annotated[str | None, typer.Option(metavar="COL", help="Column with how long each annotation took.")]
Separator = Annotated[str | None, typer.Option(metavar="CHAR", help="What separates the columns of a CSV.")]
Classes = Annotated[
    str | None,
    typer.Option(metavar="A,B,C", help="All classes in their order.", show_default="the annotations, sorted"),
]
Repeats = Annotated[
    str, typer.Option(help="Several annotations of a worker to a task: keep all, take the first, or error.")
]
Gold = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="True labels to measure the result by, with the same columns but worker."),
]
UseGold = Annotated[bool, typer.Option("--use-gold", help="Tell the fit the gold labels.")]
Features = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Features of the tasks: a column of tasks, numbers in the others."),
]
Classifier = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Prior of the labels by the tasks' features: logistic, mlp or cnn."),
]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="The same seed gives the same result.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Hyperparameter of the story or option of the engine, such as diagonal=4 or draws=1000; repeatable.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Only warnings and errors.")]
