"""Advice in error messages, which name Python's arguments, in the words of the command line."""

import re
import shlex
from collections.abc import Callable, Iterator, Sequence

_COLUMNS = "task|worker|label|count|seconds|when"
_OF_FILES = "tags|empty|separator|repeats|question|sheet|columns|outer|several|encoding|missing"
_FLAGS = "comparisons|preferences|tidy|ordered|overwrite|resume"
_OPTIONS = "draws|warmup|epochs|max_iterations|learning_rate|target_accept|max_tree_depth"
NAME = r"(?<=')[^',][^']*(?=')|(?<=\")[^\",][^\"]*(?=\")"  # in a list as Python writes it
_ALONE = r"(?<!--set )(?<![\w(.-])"  # of an argument that is neither translated nor one of a call
_Rules = tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...]


def _listed(names: str) -> str:
    """Names in a list as Python writes it, as an option takes them."""
    return shlex.quote(re.sub(r"(['\"])([^',\"]*)\1", r"\2", names).replace(", ", ","))


_OF_CALLS: _Rules = (
    (
        r": table = annotations\.to_frame\(\)",
        r", in Python: import crowdppl as cp, pandas as pd; table = cp.load_fit('DIR').annotations.to_frame()",
    ),
    (r"\bannotations\.of_question\(name\)", "--only-question NAME"),
    (r"\bannotations\.of_question\('([^']*)'\)", lambda found: f"--only-question {shlex.quote(found[1])}"),
    (
        r"\bcp\.fit\((['\"])auto\1, cp\.read\(…, preferences=True\)\)",
        "crowdppl fit FILE --preferences --story auto --out preferences",
    ),
    (r"\bAnnotations\.from_frame\(frame, abstain=\[[^]]*\]\)", "--abstain VALUE"),
    (r"\bcp\.estimate\(fit, gold, of='population'\) has", "crowdppl estimate DIR GOLD --of population has"),
    (r"\bcp\.estimate\(fit, gold\) measures", "crowdppl estimate measures"),
    (r"\bcp\.fit\(…, gold=gold\) uses", "--gold FILE --use-gold uses"),
    (
        r"\bfit annotations\.without_gold\(\) to leave out the gold labels that the annotations carry",
        "fit without --gold, or with a --gold FILE that has fewer of them",
    ),
    (r"\bcp\.fit\(…, probabilities=frame\)", "--probabilities FILE"),
    (  # what stands for the command itself
        r"(?:(?<!, )\bcp\.(?:(?:fit|read)\(…|scan\(frame)|\bAnnotations\.from_\w+\(…), ([^()]*)\)",
        r"\1",
    ),
    (
        r"\bload the annotations with cp\.Annotations\.from_parquet\(path(?:,( [^()]*))?\)( for that)?",
        lambda found: f"give --no-stream{found[1] or ''}{found[2] or ''}",
    ),
    (r"Annotations\.from_frame\(frame, features=\{[^}]*\}\)", "--features FILE"),
    (
        r"\bcp\.next_(gold|annotations|comparisons)\(fit, (n|\d+)\)",
        lambda found: f"crowdppl next-{found[1]} DIR -n {found[2].upper()}",
    ),
    (r"\bcp\.estimate\(fit, gold\)", "crowdppl estimate DIR GOLD"),
    (r"\bcp\.(\w+)\(fit\b", r"in Python cp.\1(cp.load_fit('DIR')"),
    (r"(?<![\w./])fit\.(?!json\b)([a-z_]+)\b(\([^)]*\))?", r"cp.load_fit('DIR').\1\2 in Python"),
)
_OF_ARGUMENTS: _Rules = (
    (rf"\b({_COLUMNS})='COL'", r"--\1 COL"),
    (r"\bworker=None\b", "--no-worker"),
    (
        rf"\b({_COLUMNS}|{_OF_FILES})=('[^']*'|\"[^\"]*\")",
        r"--\1 \2",
    ),
    (rf"(--(?:{_COLUMNS}) '[^']*'), (?=--)", r"\1 "),  # so that they can be pasted
    (r"\b(system|positive)=('[^']*')(?=: there| is none)", r"--\1 \2"),
    (r"\btasks='(sample|answer|epoch)'", r"--log-tasks \1"),
    (r"\bworkers='(scorer|model)'", r"--log-workers \1"),
    (r"\bquestion=\[([^]]*)\]", lambda found: f"--question {shlex.quote(','.join(re.findall(NAME, found[1])))}"),
    (r"\btag_separator=('[^']*')", r"--tag-separator \1"),
    (r"\babstain='N'", "--abstain N"),
    (r"\bmeaning=\{'?(\w+)'?: '(\w+)', '?(\w+)'?: '(\w+)'\}", r"--meaning \1=\2 --meaning \3=\4"),
    (r"\bmeaning=\{value: 'left', …\}", "--meaning VALUE=left"),
    (r"\btruth_prior=cp\.(\w+)\(\)", r"--set truth_prior=\1"),
    (r"\bresume=True belongs to checkpoint=,", "--resume belongs to --checkpoint DIR,"),
    (r"\bthe same call with checkpoint=('[^']*'), resume=True", r"the same command with --checkpoint \1 --resume"),
    (rf"\b({_FLAGS})=True\b", r"--\1"),
    (rf"\b({_FLAGS})=False\b", r"--no-\1"),
    (rf"\b({_COLUMNS}|{_OF_FILES}|{_FLAGS}|abstain|meaning|merge)=(?=[\s,;.]|$)", r"--\1"),
    (r"\bmeaning: (?=no row|\S+ means)", "--meaning: "),
    (r" \(options are [\w, ]+\)", ""),
    (r"\bin ordered=\[\.\.\.\]", "in --classes A,B,C beside --ordered"),
    (
        r"\bordered=\[('[^]]*)\]",
        lambda found: f"--ordered --classes {shlex.quote(','.join(re.findall(NAME, found[1])))}",
    ),
    (
        r"\bordered=\[(-?\d[^]]*)\]",
        lambda found: f"--classes {shlex.quote('<'.join(found[1].split(', ')))}",
    ),
    (r"\b(add it to|or leave) (?:classes|ordered)\b(?! cannot)", r"\1 --classes"),
    (r"\btruth_classes=\[(?:\.\.\.|…)\]", "--truth-classes A,B"),
    (r"\btruth_classes=\[([^]]*)\]", lambda found: f"--truth-classes {_listed(found[1])}"),
    (r"\btruth_classes=", "--truth-classes"),
    (
        r"\bor the verdicts that the levels are by annotations\.verdicts\(\)",
        "by --story, or leave --truth-classes out",
    ),
    (
        r"\bclasses=\{question: \[\.\.\.\]\} and ordered=\{question: True\} say it otherwise",
        "--classes QUESTION=A,B,C and --classes 'QUESTION=A<B<C', in an order, say it otherwise",
    ),
    (
        r"\bordered=\{'([^']*)': \[(\d[^]]*)\]\}",
        lambda found: f"--classes {shlex.quote(f'{found[1]}=' + '<'.join(found[2].split(', ')))}",
    ),
    (r"\bordered=\{'([^']*)': False\}", r"--no-ordered"),
    (r"\bordered=\{'([^']*)': True\}", r"--ordered"),
    (r"\bclasses=\{question: \[\.\.\.\]\}", "--classes QUESTION=A,B,C"),
    (r"\bclasses=\{'([^']*)': \[\.\.\.\]\}", lambda found: f"--classes {shlex.quote(f'{found[1]}=A,B,C')}"),
    (r"\bclasses\['([^']*)'\]=\[([^]]*)\]", lambda found: f"--classes {shlex.quote(f'{found[1]}={found[2]}')}"),
    (
        r"\bordered\['([^']*)'\]=\[([^]]*)\]",
        lambda found: f"--classes {shlex.quote(f'{found[1]}=' + '<'.join(found[2].split(', ')))}",
    ),
    (r"\bclasses=\[(?:\.\.\.|…)\]", "--classes A,B,C"),
    (r"\bis not in classes=\[([^]]*)\](?=.*; add it to)", lambda found: f"is not in --classes {_listed(found[1])}"),
    (
        r"round them \(\.round\(\)\), bin them, as by merge=\{.*?\}, or rank them",
        "bin them, as by --merge 0..0.3=0 --merge 0.3..0.7=1 --merge 0.7..1=2, or write a file with them rounded",
    ),
    (
        r"round them \(\.round\(\)\), bin them \(pd\.cut\) or rank them",
        "write a file with them rounded, or as a few named grades, such as low, mid and high",
    ),
    (r"\babstain=\[\.\.\.\]", "--abstain VALUE"),
    (r"\babstain=\[(['\"\d-][^]]*)\]", lambda found: " ".join(f"--abstain {each}" for each in found[1].split(", "))),
    (r"\bkey=(?=\S+:)", "--key "),
    (r"\bthe same call\b", "the same command"),
    (r"\bwith checkpoint='folder'", "with --checkpoint DIR"),
    (r"\bevery='?([^' ]+)'? belongs to checkpoint=,", r"--every \1 belongs to --checkpoint DIR,"),
    (r"\bevery='([^']*)':", r"--every \1:"),
    (r" \(cp\.Annotations\.from_counts takes them as well\)", ""),
    (r"\bmethod=['\"](em|svi|nuts)['\"] or (?:method=)?['\"](em|svi|nuts)['\"]", r"--method \1 or --method \2"),
    (r"\bmethod=['\"](em|svi|nuts)['\"]", r"--method \1"),
    (r"\bfolder='(\w+)'", r"--work \1"),
    (r"\b(story|classifier|workers|memory|checkpoint)='(\w+)'", r"--\1 \2"),
    (r"\btrue labels are taken by gold='[^']*'", "true labels are taken by --gold FILE"),
    (r"\bgold=True\b", "--use-gold"),
    (r"\bgive gold=\{[^}]*\}", "give --gold FILE"),
    (r"\bby gold=\{[^}]*\}", "in the file of gold labels"),
    (r"\bworker_families=\{[^}]*\}", "--set worker_families=FILE with the columns worker and family"),
    (r"\bkey=bytes or a file, such as", "--key FILE, such as"),
    (r"\bgive classifier= \(annotations need features\)[^.]*truth_prior=", "give --classifier mlp and --features FILE"),
    (r"\bgive a classifier, probabilities as truth_prior, or", "give --classifier logistic, or"),
    (r"\bfit dawid_skene or one_coin\b", "give --story dawid_skene or --story one_coin"),
    (r"\bleave out step\b", "leave out --set step"),
    (rf"\b(raise|lower) ({_OPTIONS})\b", r"\1 --set \2=…"),
    (rf"(--set \w+=…) (and|or) ({_OPTIONS})\b", r"\1 \2 --set \3=…"),
    (r"\bSmaller (\w+)= and (\w+)= weaken\b", r"Smaller --set \1=… and --set \2=… weaken"),
    (r"\bgive step='stochastic'", "give --set step=stochastic"),
    (r"\bGive scan\(…, memory=…\) more\b", "Give more --memory"),
    (r"\bscan\(…, memory=…\) more\b", "more --memory"),
    (r"\bscan\(…, memory=…\)", "--memory"),
    (r"\b(classes|tasks|workers)=\[", r"\1 ["),
    (r"\blist all tasks in tasks \[\.\.\.\]", "list all tasks in Python, with tasks=[...]"),
    (r"\bitem_features=(?= is\b)", "--item-features"),
    (r"\bask to overwrite it\b", "give --overwrite to replace it"),
    (r"\bread it with from_parquet\b", "give it the suffix .parquet"),
    (rf"{_ALONE}([a-z_]+)=True\b", r"--set \1=true"),
    (rf"{_ALONE}([a-z_]+)=False\b", r"--set \1=false"),
    (rf"{_ALONE}([a-z_]+)='(\w+)'", r"--set \1=\2"),
    (r"\bfit by EM with restarts=(?=\W|$)", "fit by --method em --set restarts=5"),
    (
        r"; and fit the table, --when 'when'",
        "; table.to_csv('two.csv', index=False); and crowdppl fit two.csv --when when",
    ),
    (r"; and fit the table$", "; table.to_csv('others.csv', index=False); and crowdppl fit others.csv"),
)

_MENDS = (r"\b(?:By what is in them:|Did you mean|pass) ((?:--\w+ {0} ?)+)", r"(--missing {0}) leaves")
_CALL = re.compile(r"(?:(?:\b\w+|\))?\.\w+(?:\.\w+)*|\b[A-Z]\w*)\(")
_QUOTED = r"('[^']*'|\"[^\"]*\")"

MANY = ("--set", "--abstain")
"""Options that a command may have several times, with what each adds."""


def for_the_shell(message: str, folder: str | None = None) -> str:
    """Return an error message with the command line's options in place of Python's arguments.

    Args:
        message: for Python.
        folder: where the fit that it speaks of is saved; None where that is not known.

    >>> for_the_shell("the table has no column 'worker'. Did you mean worker='rater'?")
    "the table has no column 'worker'. Did you mean --worker 'rater'?"
    """
    for pattern, replacement in _OF_CALLS:
        message = re.sub(pattern, replacement, message)
    message = "".join(part if is_code else _with_options_of(part) for part, is_code in _parts(message))
    if folder is None:
        return message
    message = message.replace("load_fit('DIR')", f"load_fit({folder!r})")
    return re.sub(
        r"\b(crowdppl (?:estimate|next-\w+)) DIR\b", lambda found: f"{found[1]} {shlex.quote(folder)}", message
    )


def _with_options_of(prose: str) -> str:
    for pattern, replacement in _OF_ARGUMENTS:
        prose = re.sub(pattern, replacement, prose)
    return prose


def _parts(message: str) -> Iterator[tuple[str, bool]]:
    """Return what a message is made of, and of each part whether it is a call in Python with arguments by name."""
    start = 0
    for call in _CALL.finditer(message):
        end = _end_of_call(message, call.end())
        if call.start() >= start and "=" in message[call.start() : end]:
            yield message[start : call.start()], False
            yield message[call.start() : end], True
            start = end
    yield message[start:], False


def _end_of_call(message: str, start: int) -> int:
    """Return where the call ends whose arguments start there; the start where its bracket is not closed."""
    depth = 1
    for found in re.finditer(rf"{_QUOTED}|[()]", message[start:]):
        depth += {"(": 1, ")": -1}.get(found[0], 0)
        if depth == 0:
            return start + found.end()
    return start


def mended(message: str, arguments: Sequence[str]) -> str | None:
    """Return the command that an error message asks for; None where it asks for none.

    Args:
        message: in the words of the command line.
        arguments: those of the command that was refused.

    >>> mended("Did you mean --worker 'the rater'?", ["fit", "a.csv", "--worker", "rater"])
    "crowdppl fit a.csv --worker 'the rater'"
    """
    found = next(filter(None, (re.search(mend.format(_QUOTED), message) for mend in _MENDS)), None)
    options = re.findall(rf"(--\w+) {_QUOTED}", found[1]) if found else []
    if not options:
        return None
    return _with_options(arguments, [(option, text[1:-1]) for option, text in options])


def fitted_again(command: str, arguments: Sequence[str]) -> str:
    """Return a command that fits FILE in another way, with the file and all options of a fit that was made.

    Args:
        command: as it is where it fits no FILE.
        arguments: those of the fit; where they are of another command, FILE stays.

    >>> fitted_again("crowdppl fit FILE --story auto --out b", ["fit", "a.csv", "--worker", "rater", "-o", "a"])
    'crowdppl fit a.csv --worker rater --story auto --out b'
    """
    if not command.startswith("crowdppl fit FILE ") or arguments[:1] != ["fit"] or "--" in arguments:
        return command
    options: list[tuple[str, ...]] = []
    for part in shlex.split(command)[3:]:
        options = [*options, (part,)] if part.startswith("--") else [*options[:-1], (*options[-1], part)]
    short = ["--out" if each == "-o" else each for each in arguments]
    return _with_options(short, options)


def _with_options(arguments: Sequence[str], options: Sequence[tuple[str, ...]]) -> str:
    """Return the command of the arguments with other options in place of those of the same name, but for MANY."""
    kept = list(arguments)
    for option, *value in options:
        if option in MANY:
            continue
        kept = [each for each in kept if not each.startswith(f"{option}=")]
        if option in kept:
            at = kept.index(option)
            del kept[at : at + 1 + len(value)]
    return shlex.join(["crowdppl", *kept, *(part for pair in options for part in pair)])
