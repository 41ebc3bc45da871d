"""Runs inside an environment with nanobot itself, and does what it is told, a JSON line at a time.

    {"do": "start"}                  a nanobot that has just been started; where its files are
    {"do": "say", "key", "role", "content"}      add a message, save
    {"do": "messages", "key"}        what it has of a session
    {"do": "new", "key"}             clear it, save
    {"do": "list"}                   the keys of its sessions

Only what every version has is used.
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

    def do_start(self, _):
        options = {}
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
