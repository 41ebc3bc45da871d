"""What every command is given: where conversations are, and where to print."""

import os
import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.cli import config
from holdfast.cli.failures import NOT_FOUND, USAGE, Failure
from holdfast.cli.screen import Screen, safe

if TYPE_CHECKING:  # neither is needed to print help
    from holdfast.manager import SessionManager


class App:
    """One run of the program."""

    def __init__(
        self,
        store: str | None = None,
        tenant: str | None = None,
        color: str | None = None,
        is_debug: bool = False,
    ) -> None:
        self._store = store
        self._tenant = tenant
        self._color = color
        self.is_debug = is_debug

    @cached_property
    def screen(self) -> Screen:
        color, where = config.setting("color", self._color)
        if color not in ("", "auto", "always", "never"):
            raise Failure(f"color is auto, always or never, not {color!r}: mend {where}", 2)
        return Screen(color or "auto")

    @cached_property
    def store_url(self) -> str:
        """Where the conversations are."""
        return config.setting("store", self._store)[0] or config.default_store()

    @property
    def tenant(self) -> str:
        return config.setting("tenant", self._tenant)[0]

    @property
    def go_on(self) -> str:
        """What somebody types to go on with the latest conversation."""
        words = [os.environ.get("HOLDFAST_PROGRAM") or "holdfast chat", "-c"]
        if self._store:
            has_secret = "@" in self._store or "password=" in self._store
            words += ["--store", "…" if has_secret else shlex.quote(self._store)]
        if self._tenant:
            words += ["--tenant", shlex.quote(self._tenant)]
        return safe(" ".join(words), keep="")

    def forgetful(self) -> "App":
        """The same, but keeping nothing."""
        return App("memory:", self._tenant, self._color, self.is_debug)

    @property
    def is_default_store(self) -> bool:
        return self.store_url == config.default_store()

    @asynccontextmanager
    async def sessions(
        self, *, create: bool = False, **options: Any
    ) -> AsyncIterator["SessionManager"]:
        """The conversations, open; Failure where there is no store yet, unless it is to be made.

        `options` go to `holdfast.open`.
        """
        from holdfast.manager import open as open_sessions

        if create and self.is_default_store:
            config.data_folder().mkdir(mode=0o700, parents=True, exist_ok=True)
        if not create and self.store_url.lower().startswith("memory:"):
            raise Failure(
                "memory: is forgotten at the end of each command, so nothing is in it: "
                "name another store with --store",
                USAGE,
            )
        if not create and (path := _place(self.store_url)) is not None:
            if not path.exists():
                raise NoStore(path, is_default=self.is_default_store)
            options["create"] = False
        # A command is over before anything could expire in the background.
        options = {"tenant": self.tenant, "expire_every": None} | options
        async with open_sessions(self.store_url, **options) as sessions:
            yield sessions


class NoStore(Failure):
    """There is no store where it should be."""

    def __init__(self, path: Path, *, is_default: bool) -> None:
        way_out = (
            "holdfast chat begins one"
            if is_default
            else "check --store, or begin one there with holdfast chat"
        )
        super().__init__(f"there are no conversations yet at {path}: {way_out}", NOT_FOUND)


def _place(url: str) -> Path | None:
    """The file or folder of a store on this machine's disk."""
    from holdfast.stores import place_of

    return place_of(url)
