"""Numbers are accepted within their bounds; everything else is refused with the argument, the value and the bounds."""

import re

import numpy as np
import pytest

from crowdppl.data.errors import real_number, whole_number


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3)])
def test_whole_numbers_of_python_and_numpy_come_back_as_int(value):
    number = whole_number("draws", value, least=3, most=3)
    assert (number, type(number)) == (3, int)


@pytest.mark.parametrize("value", [0, -1, 1.0, "1", None, True, float("nan"), np.float32(1), np.array([1]), [1]])
def test_what_is_no_whole_number_is_refused(value):
    with pytest.raises(ValueError, match=re.escape(f"draws={value!r}: a whole number from 1 is needed")):
        whole_number("draws", value, least=1)


def test_the_upper_bound_is_said():
    with pytest.raises(ValueError, match=r"folds=9000: a whole number from 2 to 1,000 is needed"):
        whole_number("folds", 9000, least=2, most=1000)


class Refused(ValueError):
    pass


@pytest.mark.parametrize("value", [0.5, np.float32(0.5), np.float64(0.5)])
def test_real_numbers_come_back_as_float(value):
    number = real_number("interval", value, above=0, below=1)
    assert (number, type(number)) == (0.5, float)
    assert real_number("concentration", 2, least=2) == 2.0


@pytest.mark.parametrize(
    ("value", "bounds", "said"),
    [
        (float("nan"), {}, "a finite number is needed"),
        (float("inf"), {"least": 0}, "a finite number from 0 is needed"),
        (-1, {"least": 0}, "a finite number from 0 is needed"),
        ("1", {"least": 0}, "a finite number from 0 is needed"),
        (True, {"least": 0}, "a finite number from 0 is needed"),
        (None, {"above": 0}, "a finite number above 0 is needed"),
        (0, {"above": 0}, "a finite number above 0 is needed"),
        (1, {"above": 0, "below": 1}, "a finite number above 0 and below 1 is needed"),
        (1.5, {"least": 0, "most": 1}, "a finite number from 0 to 1 is needed"),
        (1.0, {"least": 0, "below": 1}, "a finite number from 0 and below 1 is needed"),
    ],
)
def test_numbers_out_of_bounds_are_refused_with_the_bounds(value, bounds, said):
    with pytest.raises(ValueError, match=re.escape(f"rate={value!r}: {said}")):
        real_number("rate", value, **bounds)


@pytest.mark.parametrize("check", [whole_number, real_number])
def test_the_error_is_of_the_type_asked_for(check):
    with pytest.raises(Refused, match="rate='x'"):
        check("rate", "x", error=Refused)
