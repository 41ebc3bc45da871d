"""Settings: JSON values with types, and names of others that survive."""

import copy
import json
import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidInput
from holdfast.frozen import thaw
from holdfast.settings import Settings

FULL = {
    "model": "acme:large",
    "system": "Be kind.",
    "thinking": "high",
    "temperature": 0.5,
    "max_tokens": 4096,
    "budget": {"window_tokens": 8000, "shares": [0.5, 0.25]},
    "limits": {"rounds_max": 12},
    "extra": {"colour": "red", "nested": {"l": [1]}},
}

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
OBJECTS = st.dictionaries(
    st.sampled_from([*FULL, "colour", "a b", ""]) | WORDS,
    st.none() | st.booleans() | st.integers(0, 9) | WORDS | st.lists(WORDS, max_size=2),
    max_size=4,
)


def test_the_fields_are_those_that_were_designed():
    """Model system thinking temperature max_tokens budget limits extra."""
    assert Settings.__struct_fields__ == tuple(FULL)


def test_settings_that_are_not_set_are_none_or_empty():
    """None means: as the model or the library has it by default."""
    settings = Settings()

    for name in ("model", "system", "thinking", "temperature", "max_tokens"):
        assert getattr(settings, name) is None
    assert settings.budget == settings.limits == settings.extra == {}
    assert settings.values == {}


def test_settings_keep_what_they_were_given():
    """Typed accessors for every setting."""
    settings = Settings(**FULL)

    for name, given_ in FULL.items():
        assert thaw(getattr(settings, name)) == given_


def test_values_and_of_are_each_others_way_back():
    """Stored with the session as a JSON object, and read from one."""
    settings = Settings(**FULL)

    values = settings.values

    assert Settings.of(values) == settings
    assert Settings.of(json.loads(json.dumps(values))) == settings
    assert Settings.of({}) == Settings()


def test_names_that_are_not_settings_go_to_extra_and_survive():
    """Unknown fields survive; a newer version's settings are not lost."""
    settings = Settings.of({"model": "m", "verbosity": "low", "seed": 7, "n": None})

    assert settings.model == "m"
    assert thaw(settings.extra) == {"verbosity": "low", "seed": 7, "n": None}
    assert Settings.of(settings.values) == settings


@given(
    st.builds(
        dict,
        model=st.none() | WORDS,
        system=st.none() | WORDS,
        thinking=st.none() | WORDS | st.integers(0, 10**6),
        temperature=st.none() | st.floats(0, 2),
        max_tokens=st.none() | st.integers(1, 10**6),
        budget=OBJECTS,
        limits=OBJECTS,
        extra=OBJECTS,
    )
)
def test_any_settings_survive_the_way_to_values_and_back(fields):
    """For every setting and every name in extra, those of settings included: kept, or refused."""
    try:
        settings = Settings(**fields)
    except InvalidInput:
        assert fields["extra"].keys() & FULL.keys()
        return

    assert Settings.of(settings.values) == settings
    assert Settings.of(json.loads(json.dumps(settings.values))) == settings


@given(OBJECTS)
def test_nothing_in_a_foreign_object_is_lost(values):
    """What `of` took, `values` gives back; None says that a setting is not set."""
    try:
        settings = Settings.of(values)
    except InvalidInput:
        assert values.keys() & FULL.keys()
        return

    again = thaw(settings.values)
    for name, value in values.items():
        if name not in FULL:
            assert again.get(name, (again.get("extra") or {}).get(name, "lost")) == value


TEXT_BAD = {"number": 1, "bytes": b"x", "true": True, "list": ["x"], "surrogate": "a\ud800"}
OBJECT_BAD = {"none": None, "list": [], "text": "x", "key": {1: 2}, "nan": {"a": math.nan}}

REFUSED = {
    "model": TEXT_BAD,
    "system": TEXT_BAD,
    "thinking": {"float": 1.5, "true": True, "list": [], "negative": -1, "surrogate": "\ud800"},
    "temperature": {
        "text": "0.5",
        "true": True,
        "nan": math.nan,
        "inf": math.inf,
        "list": [0.5],
    },
    "max_tokens": {"negative": -1, "float": 1.0, "true": True, "text": "1", "list": [1]},
    "budget": OBJECT_BAD,
    "limits": OBJECT_BAD,
    "extra": OBJECT_BAD,
}
CASES = [(field, name) for field, bad in REFUSED.items() for name in bad]


@pytest.mark.parametrize(("field", "name"), CASES, ids=[f"{f}-{n}" for f, n in CASES])
def test_a_setting_refuses_what_it_cannot_keep_and_says_which_setting(field, name):
    """Bad inputs 36, 55: by every way in, with the name of the setting."""
    bad = REFUSED[field][name]

    with pytest.raises(InvalidInput, match=field):
        Settings(**{field: bad})
    with pytest.raises(InvalidInput, match=field):
        Settings().replace(**{field: bad})
    if bad is not None:
        with pytest.raises(InvalidInput, match=field):
            Settings.of({field: bad})


def test_every_setting_is_in_the_table():
    """A control of this file."""
    assert set(REFUSED) == set(Settings.__struct_fields__)


@pytest.mark.parametrize("bad", [None, [], "x", 1, [("model", "m")]], ids=str)
def test_settings_are_read_from_an_object(bad):
    """Bad inputs 55: a list or null is a typed error."""
    with pytest.raises(InvalidInput):
        Settings.of(bad)


@pytest.mark.parametrize("bad", [{1: 2}, {"\ud800": 1}, {"x": b""}, {"x": math.nan}], ids=str)
def test_names_and_values_of_others_are_json_too(bad):
    """What goes to extra has to be stored."""
    with pytest.raises(InvalidInput):
        Settings.of(bad)


def test_a_whole_number_is_a_temperature():
    """JSON knows one kind of number."""
    assert Settings(temperature=1).temperature == 1
    assert Settings(temperature=0).temperature == 0


def test_thinking_is_a_level_or_a_budget():
    """A level by its name, or a number of tokens."""
    assert Settings(thinking="low").thinking == "low"
    assert Settings(thinking=2048).thinking == 2048


def test_settings_are_values():
    """Compared and hashed by content; they pickle and copy."""
    settings = Settings(**FULL)

    assert settings == Settings(**FULL)
    assert hash(settings) == hash(Settings(**FULL))
    assert settings != Settings(**{**FULL, "model": "other"})
    for twin in (
        pickle.loads(pickle.dumps(settings)),
        copy.copy(settings),
        copy.deepcopy(settings),
    ):
        assert twin == settings


def test_settings_go_by_name_only():
    """Nothing is told by its position."""
    with pytest.raises(TypeError):
        Settings("acme:large")


def test_a_name_in_extra_and_beside_it_is_refused():
    """Which of the two is meant nobody can say, and neither may be lost."""
    with pytest.raises(InvalidInput, match="mood"):
        Settings.of({"mood": 1, "extra": {"mood": 2}})
