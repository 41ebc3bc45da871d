"""Runs inside an environment with nanobot itself, and does what it is told, a JSON line at a time.

    {"do": "start"}                  a nanobot that has just been started; where its files are
    {"do": "say", "key", "role", "content"}      add a message, save
    {"do": "messages", "key"}        what it has of a session
    {"do": "new", "key"}             clear it, save
    {"do": "list"}                   the keys of its sessions
    {"do": "memory"}                 what it tells a model of its long-term memory

Only what every version has is used; but for a store of ours, which a current one takes:

    {"do": "start", "url"}           the same over a store of ours
    {"do": "history", "key", ...}    what it gives a model
    {"do": "private", "key", "set"}  what it keeps of its provider's side, after setting it
    {"do": "fork", "key", "to", "at"}, {"do": "delete", "key"}, {"do": "rename", "key", "title"}
"""

import inspect
import json
import sys
from pathlib import Path

from nanobot.session.manager import SessionManager


class Driver:
    def __init__(self, workspace, root):
        self.workspace, self.root = Path(workspace), Path(root)
        self.manager = None
        self.store = None

    def do_start(self, asked):
        options = {}
        if self.store is not None:
            self.store.close()
            self.store = None
        if asked.get("url"):
            from holdfast.adapters import nanobot

            options["store"] = self.store = nanobot.store_for_nanobot(asked["url"])
        if "sessions_root" in inspect.signature(SessionManager).parameters:
            options["sessions_root"] = self.root
        self.manager = SessionManager(self.workspace, **options)
        return str(self.manager.sessions_dir)

    def do_say(self, asked):
        session = self.manager.get_or_create(asked["key"])
        session.add_message(asked["role"], asked["content"], **asked.get("extra", {}))
        self.manager.save(session)

    def do_messages(self, asked):
        return self.manager.get_or_create(asked["key"]).messages

    def do_metadata(self, asked):
        return self.manager.get_or_create(asked["key"]).metadata

    def do_new(self, asked):
        session = self.manager.get_or_create(asked["key"])
        session.clear()
        self.manager.save(session)

    def do_history(self, asked):
        return self.manager.get_or_create(asked["key"]).get_history(max_messages=asked["max"])

    def do_private(self, asked):
        session = self.manager.get_or_create(asked["key"])
        if asked.get("set"):
            from nanobot.providers.base import ProviderConversationState

            session.provider_state = ProviderConversationState.from_private_record(asked["set"])
            assert session.provider_state is not None
            self.manager.save(session)
        state = session.provider_state
        return None if state is None else state.to_private_record()

    def do_fork(self, asked):
        found = self.manager.fork_session_before_user_index(asked["key"], asked["to"], asked["at"])
        return None if found is None else found.messages

    def do_delete(self, asked):
        return self.manager.delete_session(asked["key"])

    def do_rename(self, asked):
        return self.manager.update_session_metadata(asked["key"], {"title": asked["title"]})

    def do_read(self, asked):
        return self.manager.read_session_file(asked["key"])

    def do_flush(self, _):
        return self.manager.flush_all()

    def do_titles(self, _):
        return [
            [each["key"], each["title"], each["preview"]] for each in self.manager.list_sessions()
        ]

    def do_memory(self, _):
        from nanobot.agent.memory import MemoryStore

        return MemoryStore(self.workspace).get_memory_context()

    def do_list(self, _):
        return [each["key"] for each in self.manager.list_sessions()]


def main(workspace, root):
    driver = Driver(workspace, root)
    for line in sys.stdin:
        asked = json.loads(line)
        answer = getattr(driver, f"do_{asked['do']}")(asked)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
