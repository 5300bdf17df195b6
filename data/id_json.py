"""Identifiers as JSON values and back, with their types kept.

Text, whole numbers, truth values, None and finite floats are written as they are. Everything else becomes an object
with one key, its type: `{"uuid": "…"}`, `{"date": "2024-02-29"}`, `{"tuple": […]}`.
"""

import datetime as dt
import math
import uuid
from collections.abc import Hashable
from typing import Any
from zoneinfo import ZoneInfo

import pandas as pd

from .errors import AnnotationError


def encode_id(value: Hashable) -> Any:
    """Return the JSON value of an identifier.

    Raises:
        AnnotationError: the identifier is of a type that JSON cannot bring back; it is named with its type.
    """
    # Types are compared exactly: an IntEnum is an int, but would come back as a mere one.
    kind = type(value)
    if value is None or kind in (str, int, bool):
        return value
    if isinstance(value, float) and kind is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, uuid.UUID) and kind is uuid.UUID:
        return {"uuid": str(value)}
    if isinstance(value, pd.Timestamp):
        utc = value.tz_convert("UTC") if value.tz is not None else value
        zone = None if value.tz is None else str(value.tz)
        return {"timestamp": [utc.isoformat(), value.unit, zone]}
    if isinstance(value, dt.datetime) and kind is dt.datetime:
        return {"datetime": _encode_datetime(value)}
    if isinstance(value, dt.date) and kind is dt.date:
        return {"date": value.isoformat()}
    if isinstance(value, tuple) and kind is tuple:
        return {"tuple": [encode_id(part) for part in value]}
    raise AnnotationError(
        f"the id {value!r} is of type {kind.__name__}, which cannot be saved; use ids that are text, whole "
        "numbers, floats, truth values, UUIDs, dates, or tuples of these"
    )


def decode_id(data: Any) -> Hashable:
    """Return the identifier that `encode_id` turned into `data`."""
    if not isinstance(data, dict):
        return data
    ((kind, content),) = data.items()
    match kind:
        case "float":
            return float(content)
        case "uuid":
            return uuid.UUID(content)
        case "timestamp":
            text, unit, zone = content
            stamp = pd.Timestamp(text).as_unit(unit)
            return stamp if zone is None else stamp.tz_convert(zone)
        case "datetime":
            text, zone, fold = content
            moment = dt.datetime.fromisoformat(text)
            return moment if zone is None else moment.replace(tzinfo=ZoneInfo(zone), fold=fold)
        case "date":
            return dt.date.fromisoformat(content)
        case "tuple":
            return tuple(decode_id(part) for part in content)
    raise AnnotationError(f"{data!r} is no saved id: {kind!r} is not one of the types that are saved")


def _encode_datetime(value: dt.datetime) -> list[str | int | None]:
    # A named zone is kept by name beside what its clocks show: an hour may come twice there (`fold`), or not at all.
    zone = value.tzinfo.key if isinstance(value.tzinfo, ZoneInfo) else None
    return [(value.replace(tzinfo=None) if zone else value).isoformat(), zone, value.fold]
