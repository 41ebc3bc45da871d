"""Synchronous classes, made of the asynchronous ones.

`class Session(Face, of=holdfast.session.Session)` has every public name of that class. Whatever is
asked of it is asked of the object beneath, on the loop of the process, by these rules:

    what can be awaited      is awaited; a manager and a store are so open when they are made
    an async iterator        is a generator
    one of our objects       is its face, the same one for the same object
    `async with`, `aclose`   are `with`, `close`

There is nothing here about what a session can do.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial, wraps
from inspect import getattr_static, isawaitable, iscoroutine
from typing import Any, ClassVar, TypeVar

from holdfast.sync.background import Background, background

_RENAMED = {"__aenter__": "__enter__", "__aexit__": "__exit__", "__aiter__": "__iter__"}
_RENAMED["aclose"] = "close"
_Function = TypeVar("_Function", bound=Callable[..., Any])
_END = object()


class Face:
    """A synchronous object over an asynchronous one."""

    __slots__ = ("__weakref__", "_inner", "_loop")

    _of: ClassVar[type]
    _inner: Any
    _loop: Background

    def __init_subclass__(cls, *, of: type) -> None:
        cls._of = of
        cls.__doc__ = of.__doc__
        _kinds[of] = cls
        for name in dir(of):
            if name in _RENAMED or not name.startswith("_"):
                setattr(cls, _RENAMED.get(name, name), _derived(of, name))
        if hasattr(of, "__await__"):  # it was opened when it was made
            cls.__enter__ = _itself  # type: ignore[attr-defined]

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return _opened(cls._of, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        """What only this object has, or its own class."""
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        found = _value(name, self)
        return partial(_method(name), self) if callable(found) else found

    def __repr__(self) -> str:
        return f"<sync {self._inner!r}>"


_kinds: dict[type, type[Face]] = {}


def sync(function: _Function) -> _Function:
    """A function that makes or opens something, for synchronous code."""

    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        return _opened(function, args, kwargs)

    return called  # type: ignore[return-value]


def _opened(make: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    loop, question = background(), _call(make, args, kwargs)
    return _ask(loop, question if loop.is_here else partial(_made, loop, question))


# Names of a class


def _derived(of: type, name: str) -> Any:
    found = getattr_static(of, name)
    if callable(found):
        return wraps(found)(_method(name))
    # A constant of the class as well: an object may have its own.
    return property(lambda face: _value(name, face), doc=found.__doc__)


def _value(name: str, face: Face) -> Any:
    return _ask(face._loop, partial(getattr, face._inner, name))


def _method(name: str) -> Callable[..., Any]:
    def method(face: Face, *args: Any, **kwargs: Any) -> Any:
        result = _ask(face._loop, _call(partial(_get, face._inner, name), args, kwargs))
        if name in ("close", "__aexit__"):
            face._loop.closed(face._inner)
        return result

    return method


def _get(inner: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    return getattr(inner, name)(*args, **kwargs)


def _itself(face: Face) -> Face:
    return face


# On the loop and back


def _call(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Callable[[], Any]:
    named = {name: _beneath(value) for name, value in kwargs.items()}
    return partial(function, *map(_beneath, args), **named)


def _ask(loop: Background, question: Callable[[], Any]) -> Any:
    """The answer of the loop. In its own thread what need not be waited for is answered too."""
    if not loop.is_here or loop.is_inherited:
        return _face(loop, loop.run(_answer(question)))
    found = question()
    if isawaitable(found):
        if iscoroutine(found):
            found.close()  # nobody will await it
        loop.check()
    return _face(loop, found)


async def _made(loop: Background, question: Callable[[], Any]) -> Any:
    """What was opened is closed at the end, though a Ctrl-C may have it that nobody is given it."""
    found = await _answer(question)
    if hasattr(found, "__await__"):
        loop.opened(found)
    return found


async def _answer(question: Callable[[], Any]) -> Any:
    found = question()
    return await found if isawaitable(found) else found


def _beneath(value: Any) -> Any:
    """What a face stands for; also in lists."""
    if isinstance(value, Face):
        return value._inner
    if type(value) in (list, tuple, set, frozenset):
        return type(value)(map(_beneath, value))
    return value


def _face(loop: Background, value: Any) -> Any:
    """What synchronous code is given for a value."""
    if (kind := _kind(value)) is not None:
        return _face_of(loop, value, kind)
    if isinstance(value, AsyncIterator):
        return _drawn(loop, value)
    if type(value) is tuple and value and _kind(value[0]):  # messages are many, and have none
        return tuple([_face(loop, each) for each in value])
    return value


def _kind(value: Any) -> type[Face] | None:
    return next((_kinds[each] for each in type(value).__mro__ if each in _kinds), None)


def _face_of(loop: Background, inner: Any, kind: type[Face]) -> Face:
    with loop.guard:
        face: Face | None = loop.faces.get(id(inner))
        if face is None:
            face = loop.faces[id(inner)] = object.__new__(kind)
            face._inner, face._loop = inner, loop
        return face


def _drawn(loop: Background, iterator: AsyncIterator[Any]) -> Iterator[Any]:
    """An async iterator, drawn from as its generator is. Left early, it is closed."""
    loop.drawn.add(iterator)  # or both would be collected at once, and closed by two
    try:
        while (value := loop.run(_next(iterator))) is not _END:
            yield _face(loop, value)
    finally:
        loop.finish(_left(iterator))
        loop.drawn.discard(iterator)


async def _next(iterator: AsyncIterator[Any]) -> Any:
    return await anext(iterator, _END)


async def _left(iterator: Any) -> None:
    if hasattr(iterator, "aclose"):
        await iterator.aclose()
