"""Where the files of a scope are: each has a folder that is its own, whatever its name is.

| scope     | whose memory it is         | folder                                    |
|-----------|----------------------------|-------------------------------------------|
| session   | one session's              | `<folder>/memory/sessions/<shown>~<digest>` |
| tenant    | all sessions of a tenant   | `<folder>/memory/tenants/<shown>~<digest>`  |
| workspace | everybody's                | `<folder>/memory`, as nanobot has it       |

The digest is of the whole name, so no two names share a folder; what is shown of it is for people.
A session is named by its tenant, key and id: one that is made anew under the same key remembers
nothing of the one before.
"""

import json
from pathlib import Path
from typing import Literal

from holdfast.errors import InvalidInput
from holdfast.private_files import absolute
from holdfast.stores.jsonl.names import digest_of, shown_part

Scope = Literal["session", "tenant", "workspace"]
SCOPES = ("session", "tenant", "workspace")
OWN = ".holdfast"


class Places:
    """The folders of a memory."""

    def __init__(self, folder: object, scope: object) -> None:
        if scope not in SCOPES:
            raise InvalidInput("scope", f"is one of {', '.join(SCOPES)}, not {scope!r:.80}")
        self.scope = scope
        path = folder.rstrip("/") if isinstance(folder, str) else folder
        self.root = absolute(path) / "memory"  # type: ignore[arg-type]

    def lock(self, folder: Path) -> Path:
        """Held by whoever changes anything in that folder: another one is not waited for."""
        return self._beside("lock", folder)

    def busy(self, folder: Path) -> Path:
        """Held by whoever asks a model what to keep in that folder."""
        return self._beside("busy", folder)

    def _beside(self, what: str, folder: Path) -> Path:
        return self.root / OWN / f"{what}-{digest_of(str(folder.relative_to(self.root)))}"

    def of(self, tenant: str, key: str, id: str) -> Path:
        """The folder in which a session's memory is."""
        if self.scope == "session":
            return self.root / "sessions" / _named(key, tenant, key, id)
        if self.scope == "tenant":
            return self.root / "tenants" / _named(tenant, tenant)
        return self.root

    def all(self) -> list[Path]:
        """The folders that there are."""
        if self.scope == "workspace":
            return [self.root] if self.root.is_dir() else []
        below = self.root / f"{self.scope}s"
        return sorted(each for each in below.iterdir() if each.is_dir()) if below.is_dir() else []


def _named(shown: str, *names: str) -> str:
    return f"{shown_part(shown)}~{digest_of(json.dumps(names))}"
