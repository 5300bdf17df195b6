"""The options that several subcommands take: one table with their help texts."""

from typing import Annotated, Any

import typer

ANNOTATIONS, KNOWN, FIT, OUTPUT = "Annotations", "Gold labels and features", "Fit", "Output"  # panels of the help
FILE = (
    "Annotations: a table (CSV, TSV, Excel, Parquet, JSON, JSON Lines; a row for each annotation, or a column for each "
    "worker or class), an export of Label Studio, Labelbox, Argilla, Prodigy, doccano, MTurk, Ground Truth, "
    "Zooniverse, Toloka or Appen, a folder of logs of evaluations (inspect_ai, lm-evaluation-harness, promptfoo, "
    "OpenAI evals, deepeval, langfuse, Braintrust, Weave, Phoenix, MLflow), - for standard input, or the name of a "
    "dataset (see crowdppl datasets). "
)
FOLDER = "Or a folder of .parquet files, which are streamed."
SAVED = (
    "Or the folder of a saved fit, which crowdppl fit or fit.save in Python wrote: its page is written without fitting "
    "again."
)


def option(
    text: str, metavar: str | None = None, *flags: str, default: bool | str = True, **more: Any
) -> typer.models.OptionInfo:
    """Return an option of this help text; without flags it has the name of its parameter.

    Args:
        text: the help.
        metavar: what stands for its value there.
        flags: how it is given.
        default: what the help says of its default; True for the value itself.
        more: as of ``typer.Option``.
    """
    return typer.Option(*flags, metavar=metavar, help=text, show_default=default, **more)


def out(text: str, metavar: str, panel: str | None = OUTPUT) -> typer.models.OptionInfo:
    """Return the option of where to write."""
    return option(text, metavar, "--out", "-o", rich_help_panel=panel)


Overwrite = Annotated[
    bool, option("Replace a file that is there, which is refused else.", None, "--overwrite", rich_help_panel=OUTPUT)
]


def _panel(name: str, **options: typer.models.OptionInfo) -> dict[str, typer.models.OptionInfo]:
    """Options by the names of their parameters, in one panel of the help."""
    for each in options.values():
        each.rich_help_panel = name
    return options


OPTIONS = (
    _panel(
        ANNOTATIONS,
        task=option("Column of the tasks, or two of them: A,B.", "COL", default="found by its name"),
        worker=option("Column of the workers.", "COL", default="found by its name"),
        no_worker=option("No column names the workers."),
        label=option("Column of the annotations: what each worker gave.", "COL", default="found by its name"),
        count=option("Column of how many equal annotations a row stands for.", "COL"),
        seconds=option("Column of how many seconds each annotation took.", "COL"),
        when=option("Column of when each annotation was given: dates, or numbers that grow with time.", "COL"),
        separator=option("Character between the columns of a CSV file.", "CHAR", default="found out"),
        encoding=option("Encoding of a text file.", "NAME", default="found out"),
        sheet=option("Sheet of an Excel file with several.", "NAME"),
        question=option(
            "Of several questions the one to read: of an export, in a table's column of questions, or a column with "
            "its labels; or the column of questions; or columns of labels, one for each question, A,B,C.",
            "NAME",
        ),
        only_question=option("Of several questions about each task the one to take, and no other.", "NAME"),
        columns=option(
            "What the columns of a table with a row for each task, or the keys of a dictionary for each, are: workers, "
            "with their labels, or classes, with vote counts; or tasks, of a table with a row for each worker, such as "
            "answers to a form.",
            "workers|classes|tasks",
            default="found out",
        ),
        outer=option("What the outer keys of nested dictionaries are.", "task|worker"),
        several=option("What is done with annotations of several classes in an export.", "refuse|leave_out"),
        comparisons=option(
            "Whether a table with two columns of items, such as model_a and model_b, is of comparisons: which item is "
            "better.",
            None,
            "--comparisons/--no-comparisons",
            default="found by the columns' names",
        ),
        meaning=option(
            "What a label of comparisons stands for that is neither a side nor an item, such as 0=left; may be given "
            "several times.",
            "LABEL=left|right|tie",
        ),
        preferences=option(
            "Each row of comparisons is a preference of its own, and no annotation of a true label that the rows of a "
            "pair share; or it is none.",
            None,
            "--preferences/--no-preferences",
            default="where nearly every task has one annotation",
        ),
        tags=option(
            "Column whose cells have several tags, such as sports|politics: whether each is given is then a question.",
            "COL",
        ),
        tag_separator=option("Character between the tags.", "CHAR", default="|"),
        empty=option("What a cell without tags is: no tag was given, or a row to drop.", "no|drop"),
        log_tasks=option(
            "What a task is in logs of evaluations: a sample, each model's answer to it, or the answer of each epoch.",
            "sample|answer|epoch",
            default="answer where there are several models",
        ),
        log_workers=option(
            "Who annotates in logs of evaluations: scorers, or the models under test, whose labels are their answers.",
            "scorer|model",
            default="scorer",
        ),
        classes=option(
            "All classes; '1<2<3', in quotation marks, from the least to the greatest. QUESTION=A,B,C, such as "
            "safe=no,yes or 'helpful=1<2<3<4<5', are those of one question and may be given for each.",
            "[QUESTION=]A,B,C",
            default="the annotations' values, sorted",
        ),
        ordered=option(
            "The classes are ordered: whole numbers, or --classes from the least to the greatest; or they are not.",
            default="3 to 20 whole numbers from -100 to 100, without --classes, are ordered",
        ),
        truth_classes=option(
            "The classes of the truth where annotations are ordered levels of something else, such as scores from 0 to "
            "9: in the order of the levels that speak for them.",
            "no,yes",
            default="the annotations' own",
        ),
        abstain=option(
            "A value that is no class, such as abstain; may be given several times. Whether abstentions say "
            "something of the true class: --set abstentions=uninformative for no.",
            "VALUE",
        ),
        repeats=option(
            "Where a worker annotated a task more than once: keep all annotations, the first, or refuse the file.",
            "keep|first|error",
        ),
        tidy=option(
            "Make one class of labels that differ by case, blanks, a full stop, quotation marks, or what is around "
            "them alone, such as 4, Score: 4 and 4/5.",
        ),
        merge=option(
            "A label that stands for another, such as Yess=Yes, or a range of numbers that does, such as 0..0.5=low; "
            "may be given several times.",
            "LABEL=LABEL",
        ),
        missing=option(
            "Where a row lacks its task, worker or label: refuse the file, or drop the row.",
            "refuse|drop",
            default="refuse",
        ),
    )
    | _panel(
        KNOWN,
        gold=option(
            "Known true labels, with the same columns as the annotations but without workers. The labels found are "
            "compared with them.",
            "FILE",
        ),
        use_gold=option("Use the gold labels in the fit, as known true labels."),
        features=option(
            "Features of the tasks: a .csv, .tsv or .parquet file with the tasks in one column and numbers in the "
            "others.",
            "FILE",
        ),
        item_features=option(
            "Features of compared items, of which their scores may follow: a .csv, .tsv or .parquet file with the "
            "items in the column item and numbers in the others. Items that nobody compared are ranked, too.",
            "FILE",
        ),
        probabilities=option(
            "Probabilities of the classes by a classifier or a language model, which may be wrong and too sure: a "
            ".csv, .tsv or .parquet file with the tasks in one column and a column for each class. What they are "
            "worth is learned. May be given several times; the files' names are those of the models.",
            "FILE",
        ),
        classifier=option(
            "Classifier of the features, trained with the fit, as prior of the true labels.", "logistic|mlp|cnn"
        ),
    )
    | _panel(
        FIT,
        story=option("Of annotations, as for crowdppl fit.", "NAME"),
        method=option(
            "Engine: em finds the posterior's mode, svi approximates the posterior, nuts samples it.", "em|svi|nuts"
        ),
        seed=option("The same seed gives the same result.", None, min=0, max=2**32 - 1),
        settings=option(
            "Hyperparameter of the story or option of the engine, such as diagonal=4 or max_iterations=500; may be "
            "given several times.",
            "NAME=VALUE",
            "--set",
        ),
        stream=option(
            "Read Parquet files chunk by chunk, so that they may be larger than memory; by EM or SVI.",
            None,
            "--stream/--no-stream",
            default="for folders, and for files that are too large for memory",
        ),
        memory=option("What a streamed fit may take of memory, such as 4GiB.", "SIZE", default="half of the machine's"),
        checkpoint=option(
            "Folder where the fit keeps where it stands, so that it survives what ends it: --resume goes on from "
            "there, to the same results.",
            "DIR",
            default="nothing is kept",
        ),
        every=option(
            "How often --checkpoint is written: seconds, or a time such as 30s, 5min or 1h.", "TIME", default="5min"
        ),
        resume=option("Go on from what --checkpoint has; begin where it has nothing."),
        work=option(
            "Keep what a streamed fit prepares, and its state after each pass over the data: the same command goes "
            "on from there.",
            "DIR",
            default="a temporary folder",
        ),
    )
    | _panel(
        OUTPUT,
        workers=option(
            "What the output has of the workers: their names, pseudonyms by --key, or nothing.", "keep|hash|drop"
        ),
        overwrite=option("Replace the results of an earlier fit."),
        to=option(
            "Write the labels for a tool too: label-studio, argilla, hf (Hugging Face, with soft labels), jsonl, or "
            "inspect (copies of inspect_ai's logs with one more scorer); may be given several times.",
            "TOOL",
        ),
        plot=option(
            "Draw the workers' confusion matrices, to workers.png, and the ranking of compared items, to ranking.png."
        ),
        title=option("Heading of the page."),
        checks=option(
            "Make posterior predictive checks: whether annotations simulated from the fit look like the data.",
            None,
            "--checks/--no-checks",
        ),
        key=option("The key of the pseudonyms, 16 to 64 random bytes, which you keep.", "FILE"),
        min_group=option(
            "With --workers drop, write worker_groups.csv, in which every row stands for at least K workers.", "K"
        ),
        quiet=option("Print only warnings and errors.", None, "--quiet", "-q"),
    )
)
"""The options by the names of the parameters of commands that they describe."""
