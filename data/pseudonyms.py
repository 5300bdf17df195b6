"""Names of workers that only the holder of a key can tell: keyed BLAKE2b."""

import hashlib
import json
import re
from collections.abc import Collection, Hashable, Mapping
from os import PathLike
from pathlib import Path

from .errors import AnnotationError, check_name
from .id_json import encode_id
from .id_text import name_text
from .ids import Ids
from .questions import Units

LEAST_KEY, MOST_KEY = 16, 64
"""Bytes of a key: fewer can be guessed, and BLAKE2b takes no more."""

MAKE_KEY = 'python -c "import secrets; print(secrets.token_hex(32))" > {}'
"""The command that makes a file with a key."""

_BYTES = 10  # of a pseudonym: two of a million workers are alike with a probability of 4e-13
_PERSON = b"crowdppl worker"

Key = bytes | str | PathLike[str]
"""A key's bytes, or the file that holds them."""


WORKERS = ("keep", "hash", "drop")
"""Forms in which an output has the workers: their names, pseudonyms, or nothing."""


def check_workers(workers: str, key: Key | None) -> None:
    """Refuse what says nothing of the workers in an output.

    Raises:
        UnknownNameError: `workers` is none of :data:`WORKERS`.
        AnnotationError: a key is given for something else than pseudonyms.
    """
    check_name("value of workers", workers, WORKERS)
    if key is not None and workers != "hash":
        raise AnnotationError(f"key= is of pseudonyms, and workers={workers!r} has none; give workers='hash' too")


def read_key(key: Key | None) -> bytes:
    """Return the bytes of a key.

    Args:
        key: 16 to 64 bytes that are random, or the path of a file with them; a line break at its end is left out.

    Raises:
        AnnotationError: there is no key, or it is shorter or longer.
    """
    if key is None:
        raise AnnotationError(
            "workers='hash' needs a key, which you keep: key=bytes or a file, such as one made once by "
            + MAKE_KEY.format("workers.key")
        )
    if isinstance(key, bytes | bytearray):
        found, where = bytes(key), "key="
    else:
        try:
            found, where = Path(key).read_bytes().rstrip(b"\r\n"), f"key={key}"
        except FileNotFoundError:
            raise AnnotationError(
                f"key={key}: there is no such file; make it once, and keep it, by {MAKE_KEY.format(key)}"
            ) from None
        except OSError as error:
            raise AnnotationError(f"key={key}: the file cannot be read: {error.strerror or error}") from None
    if not LEAST_KEY <= len(found) <= MOST_KEY:
        raise AnnotationError(f"{where} has {len(found)} bytes, and {LEAST_KEY} to {MOST_KEY} are needed")
    return found


def pseudonym(name: Hashable, key: bytes) -> str:
    """Return a worker's pseudonym: the same for the same name and key, and without the key not to be found out.

    It is ``w`` and 20 hexadecimal digits of the keyed BLAKE2b of the name with its type: the workers 1 and "1" differ.

    Args:
        name: of the worker.
        key: :func:`read_key`.
    """
    text = json.dumps(encode_id(name), ensure_ascii=True, sort_keys=True)
    return "w" + hashlib.blake2b(text.encode(), digest_size=_BYTES, key=key, person=_PERSON).hexdigest()


def pseudonyms(workers: Ids, key: Key | None) -> dict[Hashable, Hashable]:
    """Return the pseudonym of each worker; of a pair with a question the pair of the worker's and the question.

    Raises:
        AnnotationError: the key is missing or is none.
    """
    secret = read_key(key)
    if isinstance(workers, Units):
        of_worker = [pseudonym(name, secret) for name in workers.tasks]
        asked = (workers.questions[int(q)] for q in workers.question)
        return {pair: (of_worker[j], q) for pair, j, q in zip(workers, workers.task, asked, strict=True)}
    return {name: pseudonym(name, secret) for name in workers}


COUNTED = "of|tasks?|workers?|annotations?|times|more|standard|nats|independent|pairs?|labels?|comparisons?"
"""Words before which a number counts something, and is no name."""


def without_names(text: str, names: Mapping[Hashable, Hashable], listed: Collection[str] = ()) -> str:
    """Return a sentence with other names of the workers in it.

    Args:
        text: such as a warning, in which a worker is named after the word "worker", or anywhere by a name with letters.
        names: the other name of each worker.
        listed: names that the sentence is known to have, which are replaced without letters, too, but where they count
            something.
    """
    by_text = {form(name): form(other) for name, other in names.items() for form in (str, name_text)}
    if not by_text:
        return text
    is_number = {name: not any(letter.isalpha() for letter in name) for name in by_text}
    wheres = (
        (by_text, r"(?<=\bworker )", r"(?!\w)"),
        ([name for name in by_text if not is_number[name]], r"(?<!\w)", r"(?!\w)"),
        (
            [name for name in by_text if is_number[name] and name in listed],
            r"(?<![\w.])",
            rf"(?![\w%]|[.,]\d| (?:{COUNTED})\b)",
        ),
    )
    for some, before, after in wheres:
        if some:
            ordered = "|".join(re.escape(name) for name in sorted(some, key=len, reverse=True))
            text = re.sub(f"{before}(?:{ordered}){after}", lambda found: by_text[found[0]], text)
    return text
