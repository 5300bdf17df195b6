"""Warnings of likely slips in annotations that can be used: each given once, with the option that mends it."""

import itertools
import re
import unicodedata
from collections.abc import Callable, Hashable, Iterable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from .answers import BEFORE, LONGEST, NUMBER, SCALE, label_in
from .column_names import AGGREGATES, NAMES, TRUTHS, stem
from .columns import Column
from .errors import AnnotationError, nearest, warn
from .id_text import listing
from .ids import Ids
from .kinds import LARGEST_SCORE, MOST_SCORES, are_whole, sorted_labels
from .questions import Units
from .text import all_whole_numbers, are_digits

MISSING = frozenset({
    "-", "--", "<na>", "#n/a", "nil", "none",
    "n/a", "na", "nan", "null", "?", "missing", "refused", "refusal", "abstain", "abstained", "abstention", "skip",
    "skipped", "can't tell", "cannot tell", "can't say", "cannot say", "don't know", "i don't know", "invalid", "error",
    "unsure", "not sure", "uncertain", "no answer", "unanswered", "not applicable",
})  # fmt: skip
"""Labels that may stand for none, in small letters."""

BETWEEN_TAGS = ("|", ";", ",")
"""Characters that may stand between the tags of a text, of which the first is taken for one by itself."""

SENTINEL = re.compile(r"-?(9+|9*8|88+)")
"""Numbers, as text, that often stand for no label: 9, 99, 98, -99; and -1, which is one below 0."""

INVISIBLE = dict.fromkeys(map(ord, "\u00ad\u200b\u2060\ufeff"))  # hyphens and blanks of no width
MOST_NAMES = 100_000  # of tasks or workers, among which spellings are looked for

ENOUGH_ROWS, OFTEN = 5, 0.4  # annotations of a worker, and share of them, by which a scale is another one
FAR = 5  # spans of all other numbers from which one may be a slip
FEWEST_LEVELS = 3  # of classes that are said to be a scale
RANGE = re.compile(r"(-?\d*\.?\d+)\.\.(-?\d*\.?\d+)")  # 0..0.5
PERCENT = re.compile(r"-?\d+(?:\.\d+)? ?%")
NUMBERED = re.compile(r"(\d+) ?[-–—:=(.)]+ ?[^\W\d]")  # 4 - agree, 5 (very good)
PLAIN = re.compile(r"(-?\d+(?:[.,]\d+)?)(?: (?:stars?|points?))?", re.IGNORECASE)  # "4", "2,5", "4 stars"
STARS = re.compile(r"([★⭐]+)☆*")

SUMS = re.compile(
    r"(grand |sub)?totals?|sums?|averages?|avg\.?|means?|medians?|counts?|(% |percent )?agreement|accuracy|kappa|"
    r"gesamt|summe|mittelwert|durchschnitt|moyenne|somme|promedio|suma",
    re.IGNORECASE,
)
"""Names of rows that sum up those above."""

SCALES = (
    (
        "strongly disagree", "disagree", "somewhat disagree|slightly disagree",
        "neutral|neither agree nor disagree|undecided|neither", "somewhat agree|slightly agree", "agree",
        "strongly agree",
    ),
    ("terrible", "very poor", "poor", "fair|average|acceptable", "good", "very good", "excellent"),
    ("very bad", "bad", "ok|okay|neutral|average", "good", "very good"),
    ("never", "rarely|seldom", "sometimes|occasionally", "often|frequently|usually", "always"),
    ("very unlikely", "unlikely", "neutral|possible|possibly", "likely", "very likely"),
    ("very dissatisfied", "dissatisfied", "neutral", "satisfied", "very satisfied"),
    ("none", "very low", "low", "medium|moderate|mid|middle", "high", "very high"),
    ("none", "mild", "moderate", "severe"),
    ("very negative", "negative", "neutral", "positive", "very positive"),
    ("incorrect|wrong", "partially correct|partly correct", "mostly correct", "correct|fully correct"),
    ("irrelevant|not relevant", "somewhat relevant|partially relevant", "relevant", "highly relevant|very relevant"),
    ("not supported|unsupported", "partially supported|partly supported", "supported|fully supported"),
    (
        "stimme gar nicht zu|stimme überhaupt nicht zu", "stimme nicht zu|stimme eher nicht zu",
        "teils/teils|neutral|weder noch", "stimme zu|stimme eher zu", "stimme voll zu|stimme voll und ganz zu",
    ),
)  # fmt: skip
"""Words of usual scales from the least to the greatest; those of one level with | between them."""

FEWER = "tens (label // 10) or truth_classes=['low', 'high'] make fewer classes of them"
"""Advice on many scores, of which most pairs of a class and another are never seen."""


def tell_classes(classes: Ids) -> None:
    """Warn of classes that differ by what tidy=True overlooks, and of those that stand for a missing value."""
    if alike := alike_classes(classes):
        warn(
            "classes differ by case, blanks, '.0', a full stop, quotation marks, characters that do not show, or what "
            f"is around them ('Score: 4', '4/5') alone and count as different classes: {in_groups(alike)}; tidy=True "
            "makes one of them"
        )
    if found := standing_for_none(classes):
        names = ", ".join(map(repr, found))
        verb, pronoun = ("counts as a class", "it means") if len(found) == 1 else ("count as classes", "they mean")
        warn(f"{names} {verb}; where {pronoun} that there is no label, give abstain=[{names}]")


def scale_of(classes: Iterable[Hashable]) -> list[Any] | None:
    """Return classes from the least to the greatest where they are a scale: words, percentages, 7/10, text of numbers.

    None is returned of others, and of fewer than three.
    """
    names = {str(name).strip().casefold(): name for name in classes if isinstance(name, str)}
    given = list(classes)
    if len(names) < len(given) or len(given) < FEWEST_LEVELS:
        return None
    of_scale = [SCALE.fullmatch(name) for name in names]
    numbered = [NUMBERED.match(name) for name in names]
    place: Mapping[str, float] | None = None
    if all(PERCENT.fullmatch(name) for name in names):
        place = {name: float(name.rstrip("% ")) for name in names}
    elif len({found and found[2] for found in of_scale}) == 1 and all(of_scale):
        place = {found.string: float(found[1]) for found in of_scale if found}
    elif all(starred := [STARS.fullmatch(name) for name in names]):
        place = {found.string: len(found[1]) for found in starred if found}
    elif all(plain := [PLAIN.fullmatch(name) for name in names]):
        place = {found.string: float(found[1].replace(",", ".")) for found in plain if found}
        is_scale = len(place) <= MOST_SCORES and all(abs(value) <= LARGEST_SCORE for value in place.values())
        place = place if is_scale and len(set(place.values())) == len(names) else None
    elif all(numbered):
        place = {found.string: int(found[1]) for found in numbered if found}
        place = place if len(set(place.values())) == len(names) else None
    else:
        scales = ({word: at for at, words in enumerate(scale) for word in words.split("|")} for scale in SCALES)
        place = next((scale for scale in scales if names.keys() <= scale.keys()), None)
    return None if place is None else [names[name] for name in sorted(names, key=place.__getitem__)]


def tell_scale(title: str, classes: Ids) -> None:
    """Warn of words of a scale that are taken as classes without an order."""
    if in_order := scale_of(classes):
        mend = f"ordered={True if are_digits(map(str, in_order)) else in_order!r} says it"
        if all(SCALE.fullmatch(name) for name in map(str, in_order)):
            mend = f"tidy=True takes the number before the stroke, as in {in_order[0]!r}; or {mend}"
        warn(f"{title}: the classes are those of a scale, and are taken as names without an order; {mend}")


def tell_tags(title: str, classes: Ids) -> None:
    """Warn of classes that are several of the others in one."""
    if several := several_tags(classes):
        between = next(character for character in BETWEEN_TAGS if character in several[0])
        warn(
            f"{title}: {listing(several, 3)} {'is' if len(several) == 1 else 'are'} several of the other classes in "
            f"one, as tags are; tags='COL' with tag_separator={between!r} makes a question of each"
        )


def several_tags(names: Iterable[Hashable]) -> list[str]:
    """Return the texts whose parts are each another text, in their order."""
    texts = dict.fromkeys(name.strip() for name in names if isinstance(name, str))
    parts = {text: [text.split(character) for character in BETWEEN_TAGS if character in text] for text in texts}
    return [text for text, ways in parts.items() if any({part.strip() for part in way} <= texts.keys() for way in ways)]


def tell_codes(title: str, classes: Ids) -> None:
    """Warn of many or large whole numbers that are taken as classes without an order."""
    if are_whole(classes):
        warn(
            f"{title}: {span(classes)} are taken as names without an order, as codes are; ordered=False says so; "
            f"where they are scores, ordered=True says it{f', and {FEWER}' * (len(classes) > MOST_SCORES)}"
        )


def tell_two_scales(title: str, classes: Ids) -> None:
    """Warn of numbers beside words that are no missing values, as two scales in one file are."""
    numbers = [name for name in classes if NUMBER.fullmatch(str(name).strip())]
    words = [name for name in classes if isinstance(name, str) and name not in numbers and not _stands_in_more(name)]
    if len(numbers) >= FEWEST_LEVELS and len(words) > 1 and not standing_for_none(classes):
        warn(
            f"{title}: {listing(numbers, 5)} stand beside {listing(words, 5)}, as where two scales are in one file; "
            f"merge={{{words[0]!r}: …}} says which number each word stands for"
        )


def tell_sums(task: Column, label: np.ndarray, classes: Ids) -> None:
    """Warn of a task that is called as a row of sums or means is, and has a label that no other has."""
    if len(task.ids) > MOST_NAMES:
        return
    for place in [at for at, name in enumerate(task.ids) if isinstance(name, str) and SUMS.fullmatch(name.strip())]:
        is_of = task.codes == place
        own = np.setdiff1d(label[is_of], label[~is_of])
        if (own := own[own < len(classes)]).size:
            row = int(np.flatnonzero(is_of & (label == own[0]))[0])
            warn(
                f"{task.title}, {task.where(row)}: the task {task.ids[place]!r} is called as a row of sums or means "
                f"is, and has the label {classes[int(own[0])]!r}, as no other has; where it is one, remove the row"
            )


def tell_no_workers(workers: Ids) -> None:
    """Warn of workers that are called as true labels are, or as what was made of workers' labels, among several."""
    if not 2 < len(workers) <= MOST_NAMES:
        return
    short = {name: stem(name) for name in workers if isinstance(name, str)}
    found = [
        name
        for name, each in short.items()
        if each in NAMES["gold"] or TRUTHS.fullmatch(each) or AGGREGATES.fullmatch(each)
    ]
    if found:
        warn(
            f"the workers have {listing(found, 3)}, called as true labels are, or as what is made of several workers' "
            "labels; where it is no worker, leave it out: true labels are taken by gold='FILE'"
        )


def tell_other_scales(title: str, classes: Ids, label: np.ndarray, worker: Column) -> None:
    """Warn of workers whose numbers are mostly beyond the largest one of most workers, and reach twice as far.

    Args:
        title: the column.
        classes: ordered; nothing is said where one is no number.
        label: code of each row, shape (A,); those from the number of classes on are abstentions.
        worker: the workers of the rows.
    """
    if not all(isinstance(name, int | float) for name in classes):
        return
    values: list[Any] = list(classes)
    given = label < len(values)
    of, value = worker.codes[given], np.array(values, float)[label[given]]
    n = np.bincount(of, minlength=len(worker.ids))
    largest = np.full(len(n), -np.inf)
    np.maximum.at(largest, of, value)
    enough = n >= ENOUGH_ROWS
    usual = float(np.median(largest[enough])) if enough.sum() > 2 else 0.0
    beyond = np.bincount(of, value > usual, minlength=len(n)) >= OFTEN * np.maximum(n, 1)
    if usual > 0 and (far := np.flatnonzero(enough & beyond & (largest >= 2 * usual))).size:
        names = listing([worker.ids[int(j)] for j in far], 3)
        warn(
            f"{title}: most numbers of {names} are above {usual:g}, the largest of most workers, and go to "
            f"{largest[far].max():g}, as on another scale; bring all to one scale first, or leave these workers out"
        )


def tell_order(title: str, classes: Ids) -> None:
    """Say of whole numbers that they are taken as ordered, and how to say it, or refuse it."""
    many, none = len(classes) > MOST_SCORES, standing_for_none(classes)
    scores = Ids(name for name in classes if name not in none)
    numbers = span(scores) if many else f"the whole numbers {listing(scores, 5)}"
    numbers += f" and, unless it is no label, {none[0]}" if len(none) == 1 else ""
    warn(
        f"{title}: {numbers} are taken as ordered classes, by which agreement, costs and expected "
        "scores go; ordered=True says so, and ordered=False that they are names; until one is said 'auto' uses the "
        f"order only if workers confuse neighbouring classes most{'; ' * many}{FEWER * many}"
    )


def tell_far(title: str, classes: Ids) -> None:
    """Warn of a whole number that lies far from all others: 55 beside 1 to 5."""
    if not are_whole(classes) or len(classes) <= FEWEST_LEVELS:
        return
    numbers: list[Any] = sorted(classes)
    for far, others in ((numbers[0], numbers[1:]), (numbers[-1], numbers[:-1])):
        apart = min(abs(far - number) for number in others)
        if apart > FAR * (others[-1] - others[0]) and not SENTINEL.fullmatch(str(far)):
            rest = f"{others[0]} to {others[-1]}"
            warn(
                f"{title}: {far} lies far from the other numbers, which are from {rest}, and counts as a class; where "
                f"it is a slip correct it, or give abstain=[{far}]; ordered=[…] refuses what is none of its scores"
            )


def span(classes: Ids) -> str:
    """Return how many whole numbers there are, and the least and the greatest."""
    numbers: list[Any] = list(classes)
    return f"{len(numbers):,} whole numbers from {min(numbers)} to {max(numbers)}"


def tell_repeated_table(task: np.ndarray, worker: np.ndarray, label: np.ndarray, *others: np.ndarray) -> None:
    """Warn where each row of all columns, ``(A,)`` of each, is there twice or more often.

    Args:
        task: the tasks.
        worker: the workers.
        label: the labels.
        others: what else tells two annotations apart, such as times.
    """
    if not _all_twice(task, worker, label, *others):
        return
    n_pairs, n_labels = (len(np.unique(np.stack(of), axis=1).T) for of in ((task, worker), (task, worker, label)))
    kept = "keeps one of each"
    if n_pairs < n_labels:
        kept = f"keeps each worker's first for a task, {n_pairs:,} of {n_labels:,} that differ"
    warn(
        f"each of the {len(task):,} annotations is there twice or more often, as where a table was appended to itself; "
        f"repeats='first' {kept}"
    )


def tidied(label: Column, wanted: Iterable[Any] = ()) -> Column:
    """Return labels whose spellings that differ by slips alone (`_plain`) are one: a wanted one, or the most frequent.

    Of "4", "Score: 4" and "4/5" it is what is left without what stands around it, "4"; and where whole numbers are left
    of all labels that are not wanted, it is the number.

    Raises:
        AnnotationError: two of those wanted differ by slips alone.
    """
    wanted = list(wanted)
    key = _keys([*label.ids, *wanted])
    spelt: dict[Hashable, Any] = {}
    for name in wanted:
        if spelt.setdefault(key(name), name) != name:
            raise AnnotationError(
                f"{spelt[key(name)]!r} and {name!r} are one label under tidy=True, as they differ by case, blanks "
                "or a full stop alone; list one of them, or leave tidy=True out"
            )
    uses = np.bincount(label.codes, minlength=len(label.ids))
    spellings: dict[Hashable, list[int]] = {}
    for code, name in enumerate(label.ids):
        spellings.setdefault(key(name), []).append(code)
    are_numbers = _become_numbers(label.ids, [plain for plain in spellings if plain not in spelt], wanted)
    tidy: dict[Hashable, Any] = {}
    for plain, codes in spellings.items():
        alone = [code for code in codes if not _stands_in_more(label.ids[code])]
        name = label.ids[max(alone or codes, key=lambda code: uses[code])]
        if isinstance(name, str):
            name = _tidy(name) if alone or (len(codes) == 1 and len(name) <= LONGEST) else plain
        tidy[plain] = int(str(plain)) if are_numbers and plain not in spelt else spelt.get(plain, name)
    return label.renamed(tidy[key(name)] for name in label.ids)


def _become_numbers(labels: Iterable[Any], plain: list[Any], wanted: list[Any]) -> bool:
    """Return whether labels, of which some are whole numbers and others are not yet, are such without slips."""
    given = [str(name) for name in labels if name not in wanted]
    numbers = [name for name in given if all_whole_numbers([name])]
    is_text = any(isinstance(name, str) and all_whole_numbers([name]) for name in wanted)
    are_whole = all(isinstance(name, str) for name in plain) and all_whole_numbers(plain)
    has_scale = all(SCALE.fullmatch(_unmarked(name)) for name in given)
    return (len(numbers) > 0 or has_scale) and len(numbers) < len(given) and are_whole and not is_text


def tidied_names(column: Column, *, case: bool) -> Column:
    """Return names whose spellings that differ by blanks or ".0", and maybe by case, alone are one: the usual one."""
    if isinstance(column.ids, Units):
        return column
    uses = np.bincount(column.codes, minlength=len(column.ids))
    names = list(column.ids)
    spelt: dict[Hashable, Hashable] = {}
    for code in np.argsort(-uses, kind="stable").tolist():
        spelt.setdefault(_spelling(names[code], case), names[code])
    return column.renamed(spelt[_spelling(name, case)] for name in names)


def tell_alike_names(title: str, names: Ids, *, case: bool, mend: str = "tidy=True makes one of them") -> None:
    """Warn of :func:`alike_names`, and say what mends them."""
    if alike := alike_names(names, case=case):
        by = f"{'case, ' * case}blanks, '.0' or characters that do not show"
        said = f"{title}: names differ by {by} alone and count as different: {in_groups(alike)}"
        warn(f"{said}; {mend}")


def alike_names(names: Ids | Units, *, case: bool) -> list[list[Hashable]]:
    """Return the groups of names that differ by blanks or ".0", and maybe by case, alone; none of over MOST_NAMES."""
    if isinstance(names, Units) or len(names) > MOST_NAMES:
        return []
    text = (name for name in names if isinstance(name, str))
    return _alike(text, lambda name: _spelling(name, case))


def _alike(names: Iterable[Hashable], key: Callable[[Any], Hashable]) -> list[list[Hashable]]:
    """Return the groups of names of one key."""
    by_key: dict[Hashable, list[Hashable]] = {}
    for name in names:
        by_key.setdefault(key(name), []).append(name)
    return [found for found in by_key.values() if len(found) > 1]


def _spelling(name: Hashable, case: bool) -> Hashable:
    """A name without blanks around it or doubled within, ".0" after a whole number, and maybe without case."""
    if not isinstance(name, str):
        return name
    tidy = _tidy(name)
    return tidy.casefold() if case else tidy


def _as_it_looks(name: str) -> str:
    """A name without what shows in no font: Unicode's composed form."""
    return unicodedata.normalize("NFC", name).translate(INVISIBLE)


def in_groups(alike: list[list[Hashable]]) -> str:
    """Return groups of names that are alike, with escapes for what does not show."""
    return listing(alike, 3, lambda found: " and ".join(map(_quoted, found)), between="; ")


def _quoted(name: Hashable) -> str:
    return ascii(name) if isinstance(name, str) and name != _as_it_looks(name) else repr(name)


def merged(label: Column, merge: Mapping[Any, Any]) -> Column:
    """Return labels of which some stand for others.

    Args:
        label: the labels.
        merge: the other label of each that is replaced; text stands for the label that is written so, and a range such
            as "0..0.5" for the numbers in it.

    Raises:
        AnnotationError: `merge` is no mapping, nobody gave one of its labels, ranges overlap, or a number is in none.
    """
    if not isinstance(merge, Mapping):
        raise AnnotationError(f"merge={merge!r} is no dictionary from labels to labels, such as {{'Yess': 'Yes'}}")
    if ranges := {name: found for name in merge if isinstance(name, str) and (found := RANGE.fullmatch(name))}:
        of_ranges = [(float(found[1]), float(found[2]), merge[name]) for name, found in ranges.items()]
        label = _in_ranges(label, of_ranges, ", ".join(ranges))
        merge = {name: other for name, other in merge.items() if name not in ranges}
    known = list(label.ids)
    by_text = {str(name): name for name in known}
    asked = {name if name in known else by_text.get(str(name), name): other for name, other in merge.items()}
    if unknown := [name for name in asked if name not in known]:
        near = nearest(unknown[0], known)
        raise AnnotationError(
            f"merge names {unknown[0]!r}, which is no value of {label.title}"
            f"{f'; did you mean {near!r}?' if near else '.'} There are {listing(sorted_labels(label.ids), 10)}"
        )
    return label.renamed(by_text.get(str(asked[name]), asked[name]) if name in asked else name for name in known)


def _in_ranges(label: Column, ranges: list[tuple[float, float, Any]], said: str) -> Column:
    """Return labels of which each number is that of its range, from the low end up to the high one, without it.

    The greatest range has its high end, too.
    """
    ranges = sorted(ranges, key=lambda one: one[:2])
    if any(low >= high for low, high, _ in ranges) or any(one[1] > other[0] for one, other in pairwise(ranges)):
        raise AnnotationError(f"merge: the ranges {said} overlap, or have a low end that is not below the high one")

    def of_range(code: int, name: Any) -> Any:
        try:
            number = name if isinstance(name, bool) else float(name)
        except (TypeError, ValueError):
            return name  # an abstention in words
        for low, high, other in ranges:
            if low <= number < high or number == high == ranges[-1][1]:
                return int(other) if isinstance(other, str) and other.lstrip("-").isdecimal() else other
        row = int(label.rows_with(code)[0])
        raise AnnotationError(f"{label.title}, {label.where(row)}: {name!r} is in none of the ranges of merge, {said}")

    return label.renamed([of_range(code, name) for code, name in enumerate(label.ids)])


def spelt_as(given: Column, known: Ids, what: str, kept: Iterable[Hashable] = ()) -> Column:
    """Return labels, of which those that differ from one that is known by slips alone are this one, with a warning.

    Args:
        given: the labels.
        known: the classes or items.
        what: both, for the warning.
        kept: labels that are something else.
    """
    meant = spellings([name for name in given.ids if name not in set(kept)], known)
    if not meant:
        return given
    taken = listing([f"{name!r} for {of!r}" for name, of in meant.items()], 3, str)
    warn(f"{what} by type, case, blanks or a full stop alone, and are taken for these: {taken}")
    return given.renamed(meant.get(name, name) for name in given.ids)


def spellings(given: Iterable[Hashable], classes: Iterable[Hashable]) -> dict[Hashable, Hashable]:
    """For each label that is no class the one class from which it differs by slips alone, if there is one."""
    given, known = list(given), set(classes)
    key = _keys([*given, *known])
    by_text: dict[Hashable, list[Hashable]] = {}
    for name in known:
        by_text.setdefault(key(name), []).append(name)
    others = [name for name in given if isinstance(name, str) and name not in known]
    alike = {name: by_text.get(key(name), []) for name in others}
    return {name: found[0] for name, found in alike.items() if len(found) == 1}


def _keys(names: Iterable[Any]) -> Callable[[Any], Hashable]:
    """Return a key that is equal for labels that differ by slips alone; of numbers it is their text.

    Of "4/5" it is "4" where the largest number among the labels is the 5 after every stroke: 1/2 beside 1 is a half;
    and where all numbers have that stroke.
    """
    plain = {name: _plain(str(name)) for name in names if _is_text_or_whole(name)}
    parts = [SCALE.fullmatch(text) for text in plain.values()]
    scales = {float(found[2]) for found in parts if found}
    given = [float(found[1]) for found in parts if found]
    alone = [float(text) for text in plain.values() if NUMBER.fullmatch(text)]
    largest = max([*given, *alone], default=0.0)
    are_shares = len(given) > 1 and not alone and scales == {max(scales, default=0.0)} and largest <= max(scales)
    if scales == {largest} or are_shares:
        plain = {name: SCALE.sub(r"\1", text) for name, text in plain.items()}
    return lambda name: plain.get(name, name) if _is_text_or_whole(name) else name


def _is_text_or_whole(name: object) -> bool:
    return isinstance(name, str | int | np.integer) and not isinstance(name, bool)


def _stands_in_more(name: object) -> bool:
    """Return whether a label has a word such as "Score:" before it, or a scale after it."""
    text = _unmarked(str(name))
    return any(of.match(text) for of in (BEFORE, SCALE)) or label_in(text) not in (None, text)


def _tidy(name: str) -> str:
    tidy = " ".join(_as_it_looks(name).split())
    return tidy.removesuffix(".0") if re.fullmatch(r"-?\d+\.0", tidy) else tidy


def _plain(name: str) -> str:
    """A name without what may be a slip, or what stands around it.

    Language models answer "yes", "Yes.", "**Yes**" and "Answer: yes": of these are left out case, blanks, ".0" after a
    whole number, a full stop, quotation marks and such a word.
    """
    unmarked = _unmarked(name)
    said = label_in(unmarked)
    return _unmarked(BEFORE.sub("", unmarked) if said is None else said).casefold() or name


def _unmarked(name: str) -> str:
    """A name without blanks, a full stop and quotation marks or asterisks around it, or around a word before it."""
    if not any(map(str.isalnum, name)):
        return name  # such as "***" of five
    inner = re.sub(r"^([\"'`*]+)(.+)\1$", r"\2", _tidy(name.replace("**", "")).removesuffix("."))
    return _tidy(inner.removesuffix("."))


def alike_classes(classes: Iterable[Hashable]) -> list[list[Hashable]]:
    """Return the groups of classes that differ by what tidy=True overlooks."""
    classes = list(classes)
    return _alike(classes, _keys(classes))


def standing_for_none(classes: Ids) -> list[Any]:
    """Return the classes that may stand for no label: their names, a few words beside numbers, numbers far off."""
    text = [name for name in classes if isinstance(name, str) and not NUMBER.fullmatch(name.strip())]
    words = [name for name in text if not _stands_in_more(name)]
    n_numbers = len(classes) - len(text)
    found = [name for name in words if name.strip().casefold() in MISSING]
    return [*(words if words and n_numbers >= 3 * len(words) else found), *_far_off(classes)]


def _far_off(classes: Iterable[Hashable]) -> list[int]:
    """Return the whole numbers that are no step of the others' scale.

    Such is -1 below three numbers or more from 0; and a :data:`SENTINEL` beyond two others or more, at more than twice
    their widest step.
    """
    whole = sorted(name for name in classes if type(name) is int)
    marks = [value for value in whole if value == -1 or SENTINEL.fullmatch(str(value))]
    scale = [value for value in whole if value not in marks]
    found: list[int] = []
    for mark in sorted(marks, key=abs):
        least = min(abs(value - mark) for value in scale) if scale else 0
        step = max((after - before for before, after in itertools.pairwise(scale)), default=least)
        is_below = mark == -1 and len(scale) >= FEWEST_LEVELS and scale[0] >= 0
        is_beyond = least > 2 * step and not scale[0] <= mark <= scale[-1]
        if is_below or is_beyond:
            found.append(mark)
        else:
            scale = sorted([*scale, mark])
    return sorted(found)


def _all_twice(*columns: np.ndarray) -> bool:
    if len(columns[0]) < 4:
        return False
    rows = np.nan_to_num(np.stack(columns, axis=1).astype(float), nan=-1)
    _, counts = np.unique(rows, axis=0, return_counts=True)
    return bool((counts > 1).all())
