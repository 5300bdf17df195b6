import datetime as dt
import json
import tracemalloc
import uuid
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crowdppl.data import AnnotationError, Ids

plain = st.one_of(
    st.text(max_size=5),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False),
    st.booleans(),
    st.none(),
    st.uuids(),
    st.dates(),
    st.datetimes(),
    st.datetimes(timezones=st.sampled_from([dt.UTC, ZoneInfo("Europe/Paris"), dt.timezone(dt.timedelta(hours=-5))])),
    st.datetimes(min_value=dt.datetime(1900, 1, 1), max_value=dt.datetime(2200, 1, 1)).map(pd.Timestamp),
)
identifiers = st.one_of(plain, st.tuples(plain, plain))


def exact(values):
    """What tells 1, True and 1.0 apart."""
    return [(type(v), exact(v) if isinstance(v, tuple) else v) for v in values]


def distinct(values):
    """Keep what `Ids` accepts together: no two values equal, or equal as text."""
    kept, faces = [], set()
    for value in values:
        face = {("value", value), ("text", str(value))}
        if not face & faces:
            kept.append(value)
            faces |= face
    return kept


id_lists = st.lists(identifiers, max_size=8).map(distinct)


@given(id_lists)
@example([dt.datetime(1918, 3, 9, 23, 0, tzinfo=ZoneInfo("Europe/Paris"))])  # an hour that clocks jumped over
@example([dt.datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Paris"), fold=1)])  # one that they showed twice
def test_json_brings_back_the_same_values_of_the_same_types(values):
    ids = Ids(values)
    back = Ids.from_json(json.loads(json.dumps(ids.to_json())))
    assert back == ids
    assert exact(back) == exact(values)


@given(id_lists)
def test_every_value_is_found_where_it_stands_and_others_nowhere(values):
    ids = Ids(values)
    assert ids.index_of(values).tolist() == list(range(len(values)))
    assert ids.index_of(["not there at all", 10**80]).tolist() == [-1, -1]


@given(id_lists)
def test_a_pandas_index_gives_the_same_values_back_with_their_types(values):
    assert exact(Ids(values).to_index("task")) == exact(values)
    assert len(Ids(values).coords()) == len(values)


@given(id_lists, id_lists)
def test_equality_is_that_of_values_and_types_and_equal_ones_have_equal_hashes(one, two):
    assert (Ids(one) == Ids(two)) == (exact(one) == exact(two))
    assert Ids(one) == Ids(list(one))
    assert hash(Ids(one)) == hash(Ids(list(one)))


@pytest.mark.parametrize(
    ("one", "two"), [([1], [True]), ([1], [1.0]), ([1, 2], [1.0, 2.0]), ([(1,)], [(True,)]), ([1, "a"], [True, "a"])]
)
def test_values_that_are_equal_but_of_other_types_make_other_ids(one, two):
    assert one == two
    assert Ids(one) != Ids(two)


@pytest.mark.parametrize(
    "values", [["1", 1], [1, True], [1, 1.0], [(1,), (True,)], [uuid.UUID(int=1), str(uuid.UUID(int=1))]]
)
def test_values_that_differ_only_in_type_are_refused_together(values):
    with pytest.raises(AnnotationError, match="differ only in type") as error:
        Ids(values)
    assert all(repr(value) in str(error.value) for value in values)


def test_types_count_when_looking_up():
    assert Ids([0, 1]).index_of([1, True, 1.0, "1"]).tolist() == [1, -1, -1, -1]
    assert Ids(["a", 1]).index_of(np.array([1, 2])).tolist() == [1, -1]
    assert 1 in Ids([0, 1])
    assert True not in Ids([0, 1])


def test_a_range_is_never_listed():
    tracemalloc.start()
    ids = Ids.range(1_000_000)
    assert hash(ids) == hash(Ids.range(1_000_000))
    assert ids == Ids.range(1_000_000)
    assert ids.index_of([999_999, 1_000_000, -1]).tolist() == [999_999, -1, -1]
    assert ids.to_json() == {"range": 1_000_000}
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # A list of a million numbers takes 8 MB.
    assert peak < 100_000


def test_a_range_equals_the_same_numbers_listed():
    assert Ids(np.arange(3)) == Ids.range(3) == Ids([0, 1, 2])
    assert hash(Ids([0, 1, 2])) == hash(Ids.range(3))
    assert Ids([]) == Ids.range(0)
    assert Ids([0, 2, 1]) != Ids.range(3)


def test_numpy_scalars_become_python_values():
    values = [
        np.int64(3),
        np.str_("a"),
        np.float32(0.5),
        np.bool_(False),
        np.datetime64("2020-01-02"),
        (np.int8(1), "b"),
    ]
    assert exact(Ids(values)) == exact([3, "a", 0.5, False, pd.Timestamp("2020-01-02"), (1, "b")])
    assert exact(Ids(np.array(["2020-01-02"], "M8[ns]"))) == exact([pd.Timestamp("2020-01-02")])


def test_coordinates_are_whole_numbers_or_text():
    assert Ids([3, -1]).coords().dtype == np.int64
    assert Ids([2**70, 1]).coords().tolist() == [str(2**70), "1"]
    assert Ids([(1, "a"), "b"]).coords().tolist() == ["1 · a", "b"]
    assert Ids([0.5, 1.0]).coords().tolist() == ["0.5", "1.0"]


def test_a_named_zone_comes_back_by_name_also_in_the_hour_that_clocks_show_twice():
    twice = dt.datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Paris"), fold=1)
    back = Ids.from_json(Ids([twice]).to_json())[0]
    assert (back.tzinfo, back.fold, back.utcoffset()) == (twice.tzinfo, 1, twice.utcoffset())
    stamp = pd.Timestamp("2024-10-27T01:30:00.000000001Z").tz_convert("Europe/Paris")
    back = Ids.from_json(Ids([stamp]).to_json())[0]
    assert (back, str(back.tz), back.unit) == (stamp, "Europe/Paris", stamp.unit)


def test_a_type_that_cannot_be_saved_is_named_with_its_value():
    with pytest.raises(AnnotationError, match=r"frozenset\(\{1\}\).*type frozenset"):
        Ids([frozenset({1})]).to_json()


def test_repeated_and_unhashable_values_and_one_text_are_refused():
    with pytest.raises(AnnotationError, match="tasks: 'a' stands at positions 0 and 2"):
        Ids(["a", "b", "a"], what="tasks")
    with pytest.raises(AnnotationError, match=r"position 1: \[1\] is a list"):
        Ids([0, [1]])
    with pytest.raises(AnnotationError, match="not one text: got 'abc'"):
        Ids("abc")
    with pytest.raises(AnnotationError, match=r"position 0: \[0\] is a list"):
        Ids([1]).index_of([[0]])


def test_slices_are_ids_and_the_text_says_how_many_there_are():
    assert Ids(["a", "b", "c"])[1:] == Ids(["b", "c"])
    assert Ids(["a", "b"])[-1] == "b"
    assert repr(Ids(range(1000))) == "Ids([0, 1, 2, 3, 4, ... 1000 in all])"
