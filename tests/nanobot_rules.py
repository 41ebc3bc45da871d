"""Nanobot's own rules for its session files, written anew from what is known of its versions.

`load_early` is February 2026: one line that cannot be read, and the session is not there. `load` is
what April and later do: read line by line, leave out what is broken; a file that is not UTF-8 is
lost as a whole. `Nanobot` is a process with its cache: it saves what it has in memory, all of it.
"""

import json
import os
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path


def load_early(path):
    """The messages, or None: February 2026."""
    try:
        return _messages(path.read_text(encoding="utf-8").split("\n"))[1]
    except (ValueError, KeyError, AttributeError):
        return None


def load(path):
    """The metadata line and the messages, or None: April 2026 and later."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError:
        return None
    try:
        return _messages(lines)
    except (ValueError, KeyError, AttributeError):
        return _repaired(lines)


def _messages(lines):
    metadata, messages = {}, []
    for line in filter(None, map(str.strip, lines)):
        data = json.loads(line)
        if data.get("_type") == "metadata":
            metadata = data
            for name in ("created_at", "updated_at"):
                if data.get(name):
                    datetime.fromisoformat(data[name])
        elif data.get("_type") != "provider_state":
            messages.append(data)
    return metadata, messages


def _repaired(lines):
    metadata, messages = {}, []
    for line in filter(None, map(str.strip, lines)):
        try:
            data = json.loads(line)
        except ValueError:
            continue
        if not isinstance(data, dict):
            continue
        if data.get("_type") == "metadata":
            metadata = data
        elif data.get("_type") != "provider_state":
            messages.append(data)
    return (metadata, messages) if metadata or messages else None


class Nanobot:
    """A nanobot that runs: it loads a session once, and then saves from memory."""

    def __init__(self, folder, *, is_early=False):
        self.folder = Path(folder)
        self.is_early = is_early
        self.cache = {}

    def path(self, key):
        return self.folder / f"{key.replace(':', '_')}.jsonl"

    def session(self, key):
        if key not in self.cache:
            found = load(self.path(key)) if self.path(key).exists() else None
            metadata, messages = found or ({}, [])
            now = datetime.now().isoformat()
            metadata.setdefault("created_at", now)
            metadata.setdefault("metadata", {})
            self.cache[key] = (metadata, messages)
        return self.cache[key]

    def say(self, key, role, content, **extra):
        now = datetime.now().isoformat()
        message = {"role": role, "content": content, "timestamp": now} | extra
        self.session(key)[1].append(message)

    def new(self, key):
        """What `/new` does: the conversation begins again, in the same file."""
        self.session(key)[1].clear()
        self.session(key)[0]["last_consolidated"] = 0

    def save(self, key):
        metadata, messages = self.session(key)
        first = {
            "_type": "metadata",
            "key": key,
            "created_at": metadata["created_at"],
            "updated_at": datetime.now().isoformat(),
            "metadata": metadata["metadata"],
            "last_consolidated": metadata.get("last_consolidated", 0),
        }
        text = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in [first, *messages])
        if self.is_early:
            self.path(key).write_text(text, encoding="utf-8")
        else:
            part = self.folder / f".{self.path(key).name}.tmp"
            part.write_text(text, encoding="utf-8")
            os.replace(part, self.path(key))

    def restart(self):
        self.cache.clear()


@dataclass
class Private:
    """What a current nanobot keeps of its provider's side of a conversation."""

    payload: dict

    @classmethod
    def from_private_record(cls, value):
        return cls(value["payload"])

    def to_private_record(self):
        return {"kind": "responses", "payload": self.payload}


@dataclass
class Session:
    """A session of a current nanobot: compared by what is in it, and without a hash."""

    key: str
    messages: list = field(default_factory=list)
    created_at: datetime = field(default_factory=datetime.now)
    updated_at: datetime = field(default_factory=datetime.now)
    metadata: dict = field(default_factory=dict)
    last_consolidated: int = 0
    provider_state: Private | None = None

    def say(self, role, content, **extras):
        self.messages.append({"role": role, "content": content} | extras)
