"""The page of all claims with their verdicts and rules, of every experiment that has been run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crowdppl import __version__
from crowdppl.data.atomic import write_whole
from crowdppl.data.id_text import listing

from .experiment import FAILS, HOLDS, HOLDS_IF, NOT_TESTED, REPRODUCED, TWICE, Experiment
from .experiments import EXPERIMENTS
from .kept_cells import VERSIONS, cell_frame, cell_name, records, store_of
from .sources import whole
from .written_results import cell_text, judged

if TYPE_CHECKING:
    import pandas as pd

INTRODUCTION = f"""# The papers, run again

Each section is an experiment of a paper whose story is here. It was run by the command that it names, which prints the
same tables and verdicts, keeps every run in a file NAME.jsonl of a folder, goes on where it stopped, and draws the
figures. `python -m benchmarks.papers all --stored --out FOLDER --page PAGE.md` makes the sections again that have their
runs there. *Sources* is a digest of the program that made the runs; `python -m benchmarks.papers all --stored --stale
--out FOLDER` says how many runs are of another program than today's, and without `--stored` runs these again.

A claim *holds* by this rule:

> {TWICE}

With five seeds that is a one-sided test at 5.8 %. Elsewhere it *fails*, also where so many seeds cannot tell. A claim
with another rule has its number in the last column; the rules are below the table. *Reproduced* is said of a figure
that is found again in data that are given, which tests nothing. Parts of a paper that were *not run* are listed at
the end of its section, with the reason and what it would take, and counted below. *Where* has the number of the paper's
table, figure or section as far as it is known here, and else what is shown there. Figures are means ± standard
deviations over the seeds, or over what the rule or the table's title names; n is how many there are.
"""
KINDS = (HOLDS, HOLDS_IF, FAILS, REPRODUCED, NOT_TESTED)
UNRUN = "Not run:"
NUMBERED = "Rules of the verdicts that have a number:"
LISTED = 3  # cells of another version that are named
UNTRAINED = ("the classifier was still learning", "the classifier is hardly trained")  # beginnings of a warning
SECTION, CLAIMS = "## ", "\n| claim "


def write_page(path: Path, experiments: Iterable[Experiment], out: Path, seeds: int) -> None:
    """Write the page as Markdown; what it has of experiments that have no runs here stays as it is.

    Args:
        path: the file to write or to replace.
        experiments: those of which the page is to have the runs.
        out: the folder of the runs.
        seeds: how many.

    Raises:
        StorageError: the file cannot be written.
    """
    experiments = list(experiments)
    written = {
        each.name: section(each, out, seeds) for each in experiments if records(each, store_of(each, out), seeds)
    }
    sections = sections_of(path.read_text(encoding="utf-8") if path.exists() else "") | written
    known = {each.name: each for each in experiments}
    sections = {name: _with_not_run(text, known.get(name)) for name, text in sections.items()}
    order = sorted(sections, key=lambda name: list(EXPERIMENTS).index(name) if name in EXPERIMENTS else -1)
    parts = [INTRODUCTION, markdown(overview({name: sections[name] for name in order}))]
    write_whole(path, "\n\n".join(part.strip() for part in [*parts, *(sections[name] for name in order)]) + "\n")


def section(experiment: Experiment, out: Path, seeds: int) -> str:
    """Return what the page has of an experiment: claims, rules, tables and notes."""
    store = store_of(experiment, out)
    frame = cell_frame(experiment, store, seeds)
    claims = judged(experiment, frame)
    rules = [rule for rule in dict.fromkeys(claims["rule"]) if rule != TWICE]
    numbers = {rule: str(number) for number, rule in enumerate(rules, start=1)}
    parts = [f"{SECTION}{experiment.name}", f"{experiment.title.rstrip('.')}. {experiment.paper}"]
    parts.append(f"`python -m benchmarks.papers {experiment.name} --seeds {seeds}`")
    parts.append(circumstances(records(experiment, store, seeds), len(experiment.cells(seeds))))
    parts.append(markdown(claims.assign(rule=[numbers.get(rule, "") for rule in claims["rule"]])))
    if rules:
        parts += [NUMBERED, "\n".join(f"{number}. {rule}" for rule, number in numbers.items())]
    for title, table in experiment.tables(frame).items():
        parts += [f"**{title}**", markdown(table.reset_index())]
    return "\n\n".join([*parts, experiment.notes]).strip()


def _with_not_run(text: str, experiment: Experiment | None) -> str:
    """Return a section with the parts of the paper that were not run at its end, as the code has them."""
    if experiment is None:
        return text
    text = text.partition(f"\n\n{UNRUN}")[0]
    return f"{text}\n\n{not_run(experiment)}" if experiment.not_run else text


def not_run(experiment: Experiment) -> str:
    """Return the table of what was not run."""
    import pandas as pd

    rows = [(each.says, each.where, each.why, each.takes) for each in experiment.not_run]
    return f"{UNRUN}\n\n" + markdown(pd.DataFrame(rows, columns=["part", "where", "why", "what it would take"]))


def n_not_run(text: str) -> int:
    """Return how many parts of its paper a section says were not run."""
    return max(text.partition(UNRUN)[2].count("\n| ") - 2, 0)


def sections_of(page: str) -> dict[str, str]:
    """Return the sections of a page that have claims, by the experiment's name."""
    found = re.split(rf"^{SECTION}", page, flags=re.MULTILINE)[1:]
    return {text.split("\n", 1)[0].strip(): f"{SECTION}{text.strip()}" for text in found if CLAIMS in text}


def claims_of(text: str) -> list[dict[str, str]]:
    """Return the rows of a section's claims by the names of the columns, each with its rule in words."""
    head, _, *lines = text[text.index(CLAIMS) + 1 :].partition("\n\n")[0].splitlines()
    rules = dict(re.findall(r"^(\d+)\. (.+)$", text.partition(NUMBERED)[2].partition("\n\n**")[0], re.MULTILINE))
    rows = [dict(zip(_cells(head), _cells(line), strict=True)) for line in lines]
    return [row | {"rule": rules[row["rule"]] if row.get("rule") else TWICE} for row in rows]


def _cells(line: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def overview(sections: Mapping[str, str]) -> pd.DataFrame:
    """Return by experiment, and of all, how many claims there are, and how many have each kind of verdict."""
    import pandas as pd

    rows = []
    for name, text in sections.items():
        kinds = [kind_of(row["verdict"]) for row in claims_of(text)]
        rows.append(
            {
                "experiment": name,
                "claims": len(kinds),
                **{kind: kinds.count(kind) for kind in KINDS},
                "not run": n_not_run(text),
            }
        )
    table = pd.DataFrame(rows)
    return pd.concat([table, pd.DataFrame([{**table.sum(numeric_only=True), "experiment": "all"}])])


def kind_of(verdict: str) -> str:
    """Return which of :data:`KINDS` a verdict is, without its reason."""
    return next((kind for kind in (HOLDS_IF, NOT_TESTED) if verdict.startswith(kind)), verdict)


def circumstances(runs: list[dict[str, Any]], wanted: int) -> str:
    """Return how many runs there are, of which seeds where some are missing, their days and the versions, in a line.

    It has the digests of the runs' sources. Where there are some it says which runs are of another version than this
    one, of how many no warnings were kept, and in which a network was still learning at the end.
    """
    seeds = [run["cell"].get("seed") for run in runs]
    by_seed = ", ".join(f"{seeds.count(seed)} of seed {seed}" for seed in sorted(set(seeds) - {None}))
    days = sorted(run.get("ran", "day unknown") for run in runs)
    made_by = dict.fromkeys(_versions(run) for run in runs)
    number = f"{len(runs)} runs" if len(runs) == wanted else f"{len(runs)} of {wanted} runs ({by_seed})"
    line = [number, " to ".join(sorted({days[0], days[-1]})), "; and ".join(made_by), _of_sources(runs)]
    return " · ".join([*line, *_of_other_versions(runs), *_without_warnings(runs), *_still_learning(runs)])


def _of_other_versions(runs: list[dict[str, Any]]) -> list[str]:
    """Return for each version but this one which runs are of it."""
    others: dict[str, list[str]] = {}
    for run in runs:
        if run.get("version") != __version__:
            others.setdefault(run.get("version", "of an unknown version"), []).append(cell_name(run["cell"]))
    return [
        f"by crowdppl {version} and not by {__version__}, this version: {_share(len(cells), len(runs))} "
        f"({listing(cells, LISTED, str, between='; ')}); without --stored the command runs them again"
        for version, cells in others.items()
    ]


def _of_sources(runs: list[dict[str, Any]]) -> str:
    """Return of which sources the runs are, by their digest, and of how many no digest was kept."""
    each = Counter(whole(run["sources"]) if "sources" in run else None for run in runs)
    n_before = each.pop(None, 0)
    said = [f"sources {digest}{'' if number == len(runs) else f' ({number} runs)'}" for digest, number in each.items()]
    return ", ".join(said + [f"of before digests of sources were kept: {_share(n_before, len(runs))}"] * bool(n_before))


def _without_warnings(runs: list[dict[str, Any]]) -> list[str]:
    """Return of how many runs it was not kept what the program warned of; nothing where it was of all."""
    n_unkept = sum(run["warnings"] is None for run in runs)
    return [f"without their warnings, which were not kept: {_share(n_unkept, len(runs))}"] if n_unkept else []


def _still_learning(runs: list[dict[str, Any]]) -> list[str]:
    """Return by method or way, and epochs, how many runs were warned of a network that would have learnt on."""
    by_method: dict[str, list[bool]] = {}
    for run in runs:
        name = run["cell"].get("method") or run["cell"].get("way") or "all"
        name += f" after {epochs} epochs" if (epochs := run["cell"].get("epochs")) else ""
        by_method.setdefault(name, []).append(any(each in said for said in run["warnings"] or () for each in UNTRAINED))
    shares = [f"{name} {sum(are)} of {len(are)}" for name, are in by_method.items() if any(are)]
    return [f"{UNTRAINED[0]} when the epochs ended: {', '.join(shares)}"] if shares else []


def _share(number: int, of: int) -> str:
    return f"all {of} runs" if number == of else f"{number} of the {of} runs"


def _versions(run: Mapping[str, Any]) -> str:
    ours = f"crowdppl {run.get('version', 'of an unknown version')}"
    if "versions" not in run:
        return f"{ours}, with unknown versions of other packages"
    others = ", ".join(f"{name} {run['versions'].get(name, 'unknown')}" for name in VERSIONS)
    return f"{ours}, Python {run.get('python', 'unknown')}, {others}"


def markdown(table: pd.DataFrame) -> str:
    """Return a frame as a table in Markdown."""
    rows = [[str(name) for name in table.columns], ["---"] * table.shape[1]]
    rows += [[cell_text(value).replace("|", "\\|") for value in row] for row in table.itertuples(index=False)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
