"""Values that cannot change: the base of every struct here, and JSON that is frozen too.

`Value` is a frozen msgspec struct that checks what a *caller* builds. What the codec decodes from
our own rows is already checked, typed by msgspec and covered by a digest, so decoding runs no
Python at all; that is why the check sits in the metaclass and not in `__post_init__`, which
msgspec would also run for every struct it decodes (what that costs: `bench/values.py`).
"""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Never, Self, dataclass_transform

import msgspec
from msgspec.structs import force_setattr

from holdfast import text
from holdfast.errors import InvalidInput

DEPTH_MAX = 64
DIGITS_MAX = 1_000
_TOO_LONG = 10**DIGITS_MAX


class FrozenDict(dict[str, Any]):
    """A JSON object that cannot change, all the way down: arrays inside are tuples.

    It is a dict, so it compares, prints and encodes as one; `thaw` gives a copy to work on.
    """

    __slots__ = ()

    def __new__(cls, value: Mapping[str, Any] | Iterable[tuple[str, Any]] = ()) -> Self:
        self = super().__new__(cls)
        for key, item in dict(value).items():
            _check_key(key, "a FrozenDict")
            dict.__setitem__(self, key, freeze(item, key, DEPTH_MAX - 1))
        return self

    def __init__(self, value: object = ()) -> None:
        """Everything is done in __new__: dict.__init__ could fill it a second time."""

    def _refuse(self, *_: object, **__: object) -> Never:
        raise TypeError("a FrozenDict cannot change: work on thaw(value), a copy")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[type[Self], tuple[dict[str, Any]]]:
        return type(self), (dict(self),)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self


EMPTY = FrozenDict()

# The type of a field that takes any mapping, and freezes it. It is given back as FrozenDict.
if TYPE_CHECKING:
    JSONObject = Mapping[str, Any]
else:
    JSONObject = FrozenDict
_new, _fill = dict.__new__, dict.__init__
_FLAT = frozenset((str, bool, int, float, type(None)))
_PLAIN: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (str, str.__str__),
    (int, int.__int__),
    (float, float.__float__),
)


def freeze(value: Any, what: str = "value", room: int = DEPTH_MAX) -> Any:
    """A frozen copy of a JSON value, nested at most `room` deep.

    InvalidInput names the place of what cannot be kept.
    """
    kind = type(value)
    if kind is str:
        text.check(value, what)
        return value
    if value is None or kind is bool or (kind is FrozenDict and room == DEPTH_MAX):
        return value
    if isinstance(value, Mapping | list | tuple):
        return _freeze_nested(value, what, room)
    if kind is int:
        if not -_TOO_LONG < value < _TOO_LONG:
            raise InvalidInput(what, f"has more than {DIGITS_MAX} digits: keep it as a string")
        return value
    if kind is float:
        if not math.isfinite(value):
            raise InvalidInput(what, f"is {value}, which JSON cannot hold: use a string or None")
        return value
    for plain, convert in _PLAIN:  # a subclass, such as an enum: its plain value
        if isinstance(value, plain):
            return freeze(convert(value), what)
    raise InvalidInput(what, f"is a {kind.__name__}, which JSON cannot hold: convert it first")


def _freeze_nested(value: Any, what: str, room: int) -> Any:
    if not room:
        raise InvalidInput(what[:80], f"is nested too deeply: at most {DEPTH_MAX} levels are kept")
    if not isinstance(value, Mapping):
        return tuple(freeze(v, f"{what}[{i}]", room - 1) for i, v in enumerate(value))
    frozen = FrozenDict()
    for key, item in value.items():
        _check_key(key, what)
        dict.__setitem__(frozen, key, freeze(item, f"{what}.{key}", room - 1))
    return frozen


def _check_key(key: object, what: str) -> None:
    if type(key) is not str:
        raise InvalidInput(what, f"has the key {key!r}: JSON keys are strings")
    text.check(key, f"a key of {what}")


def decode_hook(kind: type, value: Any) -> Any:
    """For msgspec: FrozenDict is the one type here that it does not know."""
    if kind is not FrozenDict or not isinstance(value, dict):
        raise ValueError(f"a JSON object belongs here, not {type(value).__name__}")
    return from_decoded(value)


def from_decoded(value: dict[str, Any]) -> FrozenDict:
    """An object that a JSON decoder made, frozen."""
    for item in value.values():
        if type(item) not in _FLAT:
            return FrozenDict(value)
    frozen = _new(FrozenDict)  # as most are: there is nothing to freeze in it
    _fill(frozen, value)
    return frozen


def thaw(value: Any) -> Any:
    """A copy of a frozen value in plain dicts and lists, for you to change."""
    if isinstance(value, dict):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [thaw(item) for item in value]
    return value


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class _Checked(msgspec.StructMeta):
    """Runs `_settle` on what a caller builds, before anybody else can see it."""

    if not TYPE_CHECKING:  # type checkers go by the fields, as for any struct

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:  # noqa: N805 - a metaclass
            value = super().__call__(*args, **kwargs)
            value._settle()
            return value


class Value(
    msgspec.Struct,
    frozen=True,
    omit_defaults=True,
    repr_omit_defaults=True,
    forbid_unknown_fields=True,
    gc=False,  # frozen values cannot form cycles, so the collector need not visit them
    metaclass=_Checked,
):
    """The base of all values: frozen, compared and hashed by content, checked when built."""

    def _settle(self) -> None:
        """Check the fields of a new value, and put frozen ones in the place of what can change."""

    def replace(self, **changes: Any) -> Self:
        """A copy with other values in the named fields, checked like a new one."""
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        return type(self)(**(fields | changes))

    __replace__ = replace  # copy.replace of Python 3.13

    def _set(self, name: str, value: Any) -> None:
        """Only from `_settle`, on a value that nobody else has seen yet."""
        force_setattr(self, name, value)

    def _settle_texts(self, *names: str, optional: tuple[str, ...] = ()) -> None:
        """The named fields hold text that can be stored; the optional ones may be None."""
        for name in (*names, *optional):
            value = getattr(self, name)
            if type(value) is str:
                text.check(value, name)
            elif isinstance(value, str):  # a subclass, such as an enum: its plain value
                self._set(name, freeze(value, name))
            elif value is not None or name in names:
                raise InvalidInput(name, f"is a string, not {type(value).__name__}")

    def _settle_flags(self, *names: str) -> None:
        for name in names:
            if type(getattr(self, name)) is not bool:
                raise InvalidInput(name, "is True or False")

    def _settle_counts(self, *names: str, optional: tuple[str, ...] = ()) -> None:
        """The named fields hold whole numbers from 0 up; the optional ones may be None."""
        for name in (*names, *optional):
            value = getattr(self, name)
            if value is None and name in optional:
                continue
            if type(value) is not int or value < 0:
                raise InvalidInput(name, f"is a whole number from 0 up, not {value!r}")

    def _settle_number(self, *names: str, optional: tuple[str, ...] = ()) -> None:
        """The named fields hold finite numbers from 0 up, kept as floats."""
        for name in (*names, *optional):
            value = getattr(self, name)
            if value is None and name in optional:
                continue
            if type(value) not in (int, float) or not 0 <= value < math.inf:
                raise InvalidInput(name, f"is a number from 0 up, not {value!r}")
            self._set(name, float(value))

    def _settle_objects(self, *names: str) -> None:
        """The named fields hold JSON objects, which are frozen here."""
        for name in names:
            value = getattr(self, name)
            if not isinstance(value, Mapping):
                raise InvalidInput(name, f"is a dict, not {type(value).__name__}")
            # One empty object for all: a field that is its default is left out of the JSON.
            self._set(name, freeze(value, name) if value else EMPTY)

    def _settle_tuple(self, name: str, kind: type | tuple[type, ...]) -> None:
        """The named field holds a tuple of `kind`; a list is taken and copied."""
        value = getattr(self, name)
        if not isinstance(value, list | tuple):
            raise InvalidInput(name, f"is a list or tuple, not {type(value).__name__}")
        for index, item in enumerate(value):
            if not isinstance(item, kind):
                kinds = kind if isinstance(kind, tuple) else (kind,)
                known = ", ".join(each.__name__ for each in kinds)
                raise InvalidInput(
                    f"{name}[{index}]", f"is a {type(item).__name__}: here go {known}"
                )
        if type(value) is not tuple:
            self._set(name, tuple(value))
