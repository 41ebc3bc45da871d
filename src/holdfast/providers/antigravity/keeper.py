"""The accounts of a provider while it works: whose turn it is, their tokens, their projects.

What changes is kept in the file, so that other processes and the next start know of it. A token is
replaced 300 seconds before it ends, by one refresh for all calls that need it; where another
process was quicker, its token is used.
"""

import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from holdfast.providers.antigravity import accounts
from holdfast.providers.antigravity.accounts import LIMITED_S, Account, Sheet
from holdfast.providers.antigravity.accounts_file import AccountsFile
from holdfast.providers.antigravity.oauth import Token
from holdfast.providers.credentials import Secret, unusable
from holdfast.providers.shared_work import SharedWork

_VENDOR = "antigravity"


class Keeper:
    """The accounts of `file` for one quota. `refresh` asks for another token of an account."""

    def __init__(
        self,
        file: AccountsFile,
        quota: str,
        *,
        rotate: bool,
        refresh: Callable[[Account], Awaitable[Token]],
    ) -> None:
        self.rotates = rotate
        self._file = file
        self._quota = quota
        self._refresh = refresh
        self._work = SharedWork()
        self._refused: dict[str, Secret] = {}  # the last refused token of an account

    async def account(self) -> Account:
        """Whose turn it is, with a token that is good for a while."""
        found = self._chosen(await self._file.read())
        if found is None:
            where, way_out = str(self._file.path), 'set "active" to true for one'
            raise accounts.wrong(where, 'has no account that is "active"', way_out)
        if self._is_good(found):
            return found
        return await self._work.done(("token", found.name), partial(self._refreshed, found.name))

    def refuse(self, account: Account) -> None:
        """The service does not take the token of this account."""
        if account.access_token is not None:
            self._refused[account.name] = account.access_token

    async def limited(self, account: Account, wait_s: float | None) -> float | None:
        """The account may not ask for so long. None if another may; else until one of them may."""
        now_s = time.time()
        until = now_s + (wait_s or LIMITED_S)

        def edit(document: dict[str, Any]) -> None:
            accounts.limit(document, account.name, self._quota, until, now_s)
            found = self._chosen(accounts.sheet(document, ""))
            if found is not None:
                document["current"] = found.name

        sheet = await self._file.change(edit)
        waits = [each.wait_s(self._quota, time.time()) for each in sheet.active]
        return min(waits, default=0.0) or None

    async def project(self, account: Account, find: Callable[[], Awaitable[str]]) -> str:
        """The project of an account that has none yet, found out and kept."""
        return await self._work.done(
            ("project", account.name), partial(self._with_project, account.name, find)
        )

    def _chosen(self, sheet: Sheet) -> Account | None:
        return accounts.chosen(sheet, self._quota, time.time(), rotate=self.rotates)

    def _is_good(self, account: Account) -> bool:
        if account.access_token is None or not account.is_fresh(time.time()):
            return False
        refused = self._refused.get(account.name)
        return refused is None or refused.reveal() != account.access_token.reveal()

    async def _refreshed(self, name: str) -> Account:
        account = self._there(await self._file.read(), name)
        if self._is_good(account):
            return account
        token = await self._refresh(account)
        written = {"access_token": token.access_token.reveal(), "expires_at": token.expires_at}
        if token.refresh_token is not None:
            written["refresh_token"] = token.refresh_token.reveal()
        return await self._noted(name, **written)

    async def _with_project(self, name: str, find: Callable[[], Awaitable[str]]) -> str:
        known = self._there(await self._file.read(), name).project
        if known is not None:
            return known
        found = await find()
        await self._noted(name, project=found)
        return found

    async def _noted(self, name: str, **fields: Any) -> Account:
        sheet = await self._file.change(partial(accounts.change, name=name, **fields))
        return self._there(sheet, name)

    def _there(self, sheet: Sheet, name: str) -> Account:
        found = sheet.account(name)
        if found is None:
            why = f"account {name!r} was taken out of {self._file.path} meanwhile"
            raise unusable(why, "ask again", _VENDOR)
        return found
