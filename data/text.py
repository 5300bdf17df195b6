"""Identifiers in text files: "7" is read as a number, "007" as text."""

import re
from collections.abc import Collection, Iterable
from typing import Any

import pandas as pd

# As Python writes a whole number; one of up to 19 digits may fit into 64 bits.
_CANONICAL = re.compile(r"0|-?[1-9][0-9]{0,18}")
_DIGITS = re.compile(r"-?[0-9]+")
_DECIMAL = re.compile(r"[-+]?(?=[0-9.,])(0|[1-9][0-9]*)?([.,][0-9]+)?([eE][-+]?[0-9]+)?")
_THOUSANDS = re.compile(r"[-+]?[1-9][0-9]{0,2},[0-9]{3}")


def all_whole_numbers(values: Iterable[str]) -> bool:
    """Tell whether every text is a whole number of 64 bits as Python writes it, so that the number loses nothing."""
    return all(_CANONICAL.fullmatch(value) and -(2**63) <= int(value) < 2**63 for value in values)


def are_digits(values: Iterable[str]) -> bool:
    """Tell whether every text is a whole number, which may have leading zeros."""
    return all(_DIGITS.fullmatch(value) for value in values)


def as_numbers(values: Iterable[Any]) -> dict[Any, Any]:
    """Map each text to its number if all of them are whole numbers, else to itself, as what is no text."""
    values = list(values)
    if all(isinstance(value, str) for value in values) and all_whole_numbers(values):
        return {value: int(value) for value in values}
    return {value: value for value in values}


def convert_labels(*columns: pd.Series, abstentions: Iterable[object] = ()) -> list[pd.Series]:
    """Return columns of labels in text as `convert_text` does, where "1.0" is 1 as well.

    Tables write whole numbers so that stood beside an empty cell. Abstentions that are no numbers stay text.
    """
    plain = [column.map(without_point, na_action="ignore") for column in columns]
    words = {str(value) for value in abstentions}
    converted = convert_text(*plain, words={word for word in words if not all_whole_numbers([word])})
    return [old if new is same else new for old, same, new in zip(columns, plain, converted, strict=True)]


def without_point(text: str) -> str:
    """Return text without ".0" at its end."""
    return text.removesuffix(".0")


def convert_text(*columns: pd.Series, words: Collection[str] = ()) -> list[pd.Series]:
    """Return columns of text as whole numbers, if every value of all of them is one; else unchanged.

    Columns that name the same things are decided on together, so that the "1" in a file of gold labels is the
    "1" in the file of annotations. Only distinct values are looked at. Missing values (NaN) do not take part, nor do
    `words`, which stay text.
    """
    coded = [pd.factorize(column) for column in columns]
    if not all(all_whole_numbers(text for text in distinct if text not in words) for _, distinct in coded):
        return list(columns)
    converted = []
    for column, (codes, distinct) in zip(columns, coded, strict=True):
        if (codes < 0).any() or any(text in words for text in distinct):
            numbers = {text: text if text in words else int(text) for text in distinct}
            values = [numbers.get(text) for text in column]
            converted.append(pd.Series(values, index=column.index, dtype=object))
        else:
            converted.append(pd.Series(distinct.astype("int64").to_numpy()[codes], index=column.index))
    return converted


def decimal_numbers(column: pd.Series) -> pd.Series:
    """Return a column of text as float64 where all of it are numbers, with a decimal point or a comma; else unchanged.

    Where every comma stands before three digits it may part thousands, and the text stays. Missing values are NaN.
    """
    values = [value.strip() for value in column.dropna().unique()]
    with_comma = [value for value in values if "," in value]
    if not all(value and _DECIMAL.fullmatch(value) for value in values):
        return column
    if with_comma and (any("." in value for value in values) or all(map(_THOUSANDS.fullmatch, with_comma))):
        return column
    numbers = column.map(lambda value: float(value.replace(",", ".")), na_action="ignore")
    return numbers.astype("float64")


def truth_values(column: pd.Series) -> pd.Series:
    """Return a column of text as 1.0 and 0.0 where all of it is True and False, in any case; else unchanged."""
    numbers = column.str.strip().str.casefold().map({"true": 1.0, "false": 0.0})
    return numbers if numbers.notna().equals(column.notna()) and numbers.notna().any() else column
