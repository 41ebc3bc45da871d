"""How to break each behaviour that docs/checklist.md calls done: one small change to the source.

A break takes the behaviour away and leaves the rest alone. `scripts/break-checklist` applies them,
one at a time, to a copy, and expects the tests that the page names to fail.
"""

from typing import NamedTuple


class Break(NamedTuple):
    """In `file`, `old` (which stands there once) becomes `new`; `why` says what is then wrong."""

    file: str
    old: str
    new: str
    why: str


SRC = "src/holdfast"

BREAKS = {
    "S0-1": Break(
        f"{SRC}/history.py",
        "self._seen = tuple(self._messages)",
        "self._seen = tuple(self._messages[-1:])",
        "only the last message is read back",
    ),
    "S0-2": Break(
        f"{SRC}/history.py",
        "    if type(entry) not in ENTRY_TYPES:",
        "    if False:",
        "anything may be appended",
    ),
    "S0-3": Break(
        f"{SRC}/messages.py", '    TOOL = "tool"', '    TOOL = "tools"', "a role is misspelt"
    ),
    "S0-4": Break(
        f"{SRC}/messages.py",
        "    arguments: str\n    output: str | None = None",
        '    arguments: str\n    type: str = "function"\n    output: str | None = None',
        "a call has a type, as on a wire",
    ),
    "S0-5": Break(
        f"{SRC}/codec/foreign.py",
        'inner = object_of(raw.get("function", EMPTY), "function")',
        "inner = EMPTY",
        "nested calls are not mapped to flat ones",
    ),
    "S0-6": Break(
        f"{SRC}/messages.py",
        "    synthetic: str | None = None\n    extra: FrozenDict = EMPTY",
        "    synthetic: str | None = None\n    tint: str = ''\n    extra: FrozenDict = EMPTY",
        "a message has a field that nobody designed",
    ),
    "S0-7": Break(
        f"{SRC}/codec/plain.py",
        "        if value := getattr(message, name):",
        "        if (value := getattr(message, name)) or True:",
        "empty fields are written",
    ),
    "S0-8": Break(
        f"{SRC}/codec/plain.py",
        "    if message.tool_calls:",
        "    if True:",
        "tool_calls is written when there are none",
    ),
    "S0-9": Break(
        f"{SRC}/messages.py",
        "    tool_call_id: str | None = None\n    name: str | None = None",
        '    tool_call_id: str | None = None\n    name: str | None = "someone"',
        "a new message has a name nobody gave it",
    ),
    "S0-10": Break(
        f"{SRC}/messages.py",
        '            self._set("role", Role.of(self.role))',
        "            pass",
        "a role given as text stays text",
    ),
    "S0-11": Break(
        f"{SRC}/messages.py",
        "(Message.system(system),) if system else ()",
        '(Message.system(system or ""),)',
        "an empty system message comes first",
    ),
    "S0-12": Break(
        f"{SRC}/messages.py",
        "        _settle_content(self)\n        self._settle_tuple(",
        '        self._set("role", self.role.canonical)\n'
        "        _settle_content(self)\n        self._settle_tuple(",
        "older roles are rewritten",
    ),
    "S0-13": Break(
        f"{SRC}/history.py", "    def clear(self)", "    def wipe(self)", "there is no clear"
    ),
    "S0-14": Break(
        f"{SRC}/history.py", "self._id = ids.new_id()", 'self._id = ""', "a new history has no id"
    ),
    "S0-15": Break(
        f"{SRC}/ids.py",
        '{ms & 0xFFFF:04x}-7"',
        '{ms & 0xFFFF:04x}-4"',
        "ids say that they are of version 4",
    ),
    "S0-16": Break(
        f"{SRC}/history.py",
        "        return self._id\n",
        "        return ids.new_id()\n",
        "the id is another one each time",
    ),
    "S0-17": Break(
        f"{SRC}/history.py",
        "        self._messages += messages",
        "        self._messages[:0] = messages",
        "the newest message comes first",
    ),
    "S0-18": Break(
        f"{SRC}/history.py",
        "            self._seen = tuple(self._messages)",
        "            return self._messages",
        "a reader gets the list itself",
    ),
    "S0-19": Break(
        f"{SRC}/frozen.py",
        "    __setitem__ = __delitem__ = __ior__ = _refuse",
        "    __delitem__ = __ior__ = _refuse",
        "a frozen dict takes new values",
    ),
    "S0-20": Break(
        f"{SRC}/history.py",
        "self._entries, self._messages, self._starts, self._seen = [], [], [], ()",
        "self._seen = ()",
        "clear leaves the messages",
    ),
    "S0-21": Break(
        f"{SRC}/history.py",
        "        with self._lock:\n            self._drop()\n            self._add(entries)",
        "        self._drop()\n        self._add(entries)",
        "replace takes no lock",
    ),
    "S0-22": Break(
        f"{SRC}/history.py",
        "        self._head += len(entries)",
        "        self._head += 1",
        "seq does not count every entry",
    ),
    "S0-23": Break(
        f"{SRC}/history.py",
        "        self._messages += messages",
        "        self._messages = messages",
        "only the last message is kept",
    ),
    "S0-24": Break(
        f"{SRC}/codec/foreign.py",
        '({"id": "", "name": ""} | fields)',
        "fields",
        "an empty object is no call",
    ),
    "S0-25": Break(
        f"{SRC}/ids.py",
        "                self._counter += 1",
        "                self._counter += 0",
        "ids repeat within a millisecond",
    ),
    "S0-26": Break(
        f"{SRC}/codec/writing.py",
        "(0x3C, 0x3E, 0x26, 0x2028, 0x2029)",
        "(0x3E,)",
        "Go's escapes are not written",
    ),
    "S0-27": Break(
        f"{SRC}/codec/foreign.py",
        '    fields |= {name: inner[name] for name in ("name", "arguments") if name in inner}',
        "    fields |= {}",
        "the name in a nested call is not read",
    ),
    "S0-32": Break(
        f"{SRC}/codec/foreign.py",
        '    if type(raw) is FrozenDict and raw.get("type") == "image_url":',
        "    if False:",
        "image_url is not read as a picture",
    ),
    "S0-34": Break(
        f"{SRC}/frozen.py",
        "            self._set(name, freeze(value, name) if value else EMPTY)",
        "            pass",
        "a message keeps the caller's own dict",
    ),
    "S1-4": Break(
        f"{SRC}/messages.py", 'FUNCTION = "function"', 'FUNCTION = "func"', "a legacy role is lost"
    ),
    "S1-5": Break(
        f"{SRC}/messages.py",
        "        if type(self.role) is not Role:",
        "        if False:",
        "raw text gets in as a role",
    ),
    "S1-6": Break(
        f"{SRC}/messages.py",
        '    ASSISTANT = "assistant"',
        '    ASSISTANT = "Assistant"',
        "the string on disk is another",
    ),
    "S1-7": Break(
        f"{SRC}/messages.py",
        "    role: Role\n    content: Content = None",
        "    role: str\n    content: Content = None",
        "a role is read as a string",
    ),
    "S1-8": Break(
        f"{SRC}/messages.py", '    USER = "user"', '    USER = "User"', "the JSON changes"
    ),
    "S1-22": Break(
        f"{SRC}/codec/plain.py",
        'for name in ("tool_call_id", "name", "author"):',
        'for name in ("tool_call_id", "name"):',
        "the author is not written",
    ),
    "S1-25": Break(
        f"{SRC}/messages.py",
        "if outputs := [call for call in self.tool_calls if call.output is not None]:",
        "if outputs := []:",
        "an output is no result",
    ),
    "S1-26": Break(
        f"{SRC}/codec/lango.py", 'output=raw.get("output"),', "output=None,", "outputs are not read"
    ),
    "S1-27": Break(
        f"{SRC}/codec/lango.py",
        'signature=raw.get("thoughtSignature") or None,',
        "signature=None,",
        "signatures are not read",
    ),
    "S1-29": Break(
        f"{SRC}/codec/lango.py", '"agentId": "agent_id",', '"agent": "agent_id",', "a name differs"
    ),
    "S1-30": Break(
        f"{SRC}/codec/lango.py",
        "    if message.author:",
        "    if True:",
        "an empty author is written",
    ),
    "S1-31": Break(
        f"{SRC}/codec/lango.py",
        '"input": call.arguments}',
        '"arguments": call.arguments}',
        "the input has another name",
    ),
    "S1-32": Break(
        f"{SRC}/messages.py",
        "{Role.MODEL: Role.ASSISTANT, Role.FUNCTION: Role.TOOL}",
        "{Role.MODEL: Role.ASSISTANT}",
        "function is not taken for tool",
    ),
    "S2-9": Break(
        f"{SRC}/history.py",
        "return tuple(self._messages[start:stop])",
        "return tuple(self._messages[start:])",
        "slice has no end",
    ),
    "S2-10": Break(
        f"{SRC}/history.py",
        "return tuple(self._messages[start:stop])",
        "return tuple(m.replace() for m in self._messages[start:stop])",
        "a read copies messages",
    ),
    "S2-17": Break(
        f"{SRC}/codec/jaato.py",
        '        fields["id"] = raw["message_id"]',
        "        pass",
        "message ids are invented anew",
    ),
    "S2-18": Break(
        f"{SRC}/codec/jaato.py",
        "content += [*places, _read_part(raw, kind)]",
        "content += [_read_part(raw, kind)]",
        "the order of words and calls is lost",
    ),
    "S2-19": Break(
        f"{SRC}/messages.py",
        "if type(part) is Text) or None",
        'if type(part) is Text) or ""',
        "no words are an empty text",
    ),
    "S2-20": Break(
        f"{SRC}/usage.py",
        "        return self.input + self.output\n",
        "        return self.input\n",
        "the total leaves the output out",
    ),
    "S2-22": Break(
        f"{SRC}/cancel.py",
        'str(reason or "") if found is None else found',
        'str(reason or "")',
        "a later reason replaces the first",
    ),
    "S2-23": Break(
        f"{SRC}/tools.py",
        "        self._settle_parameters()\n",
        "",
        "a tool takes any parameters",
    ),
    "S2-24": Break(
        f"{SRC}/codec/jaato.py",
        '            found["signature"] = part.signature',
        "            pass",
        "the signature of a thought is dropped",
    ),
    "S2-47": Break(
        f"{SRC}/history.py",
        "firsts = starts if before or not count else (0, *starts)",
        "firsts = starts",
        "what stands before the first turn belongs to none",
    ),
    "S2-77": Break(
        f"{SRC}/codec/jaato.py",
        ', "message_id": message.id}',
        "}",
        "message ids are not written",
    ),
    "S2-118": Break(
        f"{SRC}/codec/plain.py",
        '"role": str(message.role),',
        '"role": message.role.name,',
        "plain data says something else",
    ),
    "S3-5": Break(
        f"{SRC}/codec/shepherd.py",
        "    if role is Role.ASSISTANT and message.calls:",
        "    if False:",
        "a request for a tool is not told apart",
    ),
    "S3-6": Break(
        f"{SRC}/codec/shepherd.py",
        'return "TOOL_RESPONSE" if role is Role.TOOL else role.name',
        "return role.name",
        "a tool's message has another type",
    ),
    "S3-7": Break(
        f"{SRC}/codec/shepherd.py",
        "    if message.role is Role.FUNCTION:",
        "    if False:",
        "the legacy type is lost",
    ),
    "S3-42": Break(
        f"{SRC}/codec/shepherd.py", '{"messages": rows}', '{"items": rows}', "the list is misnamed"
    ),
    "S4-13": Break(
        f"{SRC}/codec/nanobot.py", 'found["timestamp"] =', 'found["time"] =', "the time is misnamed"
    ),
    "S4-15": Break(
        f"{SRC}/codec/writing.py", '(", ", ": ") if', '(",", ":") if', "the bytes are not Python's"
    ),
    "S4-16": Break(
        f"{SRC}/codec/nanobot.py",
        "text = time.astimezone(zone).replace(tzinfo=None).isoformat()",
        "text = time.astimezone(zone).isoformat()",
        "times are written with a zone",
    ),
    "S4-17": Break(
        f"{SRC}/codec/nanobot.py",
        '        extra["timestamp"] = raw["timestamp"]',
        "        pass",
        "another writer's time is rewritten",
    ),
    "S4-18": Break(
        f"{SRC}/codec/nanobot.py",
        r'enumerate(data.split(b"\n"), start=1)',
        "enumerate([x.encode() for x in data.decode().splitlines()], start=1)",
        "U+2028 ends a line",
    ),
    "S4-19": Break(
        f"{SRC}/codec/nanobot.py",
        "        if not line.strip():",
        "        if False:",
        "a blank line is an error",
    ),
    "S4-25": Break(
        f"{SRC}/codec/nanobot.py",
        "    extra = foreign.gather(raw, known)",
        "    extra: dict[str, Any] = {}",
        "unknown fields are dropped",
    ),
    "S4-27": Break(
        f"{SRC}/strict.py",
        "    if _SURROGATE.search(source):",
        "    if False:",
        "half of a pair gets in",
    ),
    "B10": Break(
        f"{SRC}/codec/jaato.py",
        'if type(raw.get("message_id")) is str and raw["message_id"]:',
        "if False:",
        "message ids are not read",
    ),
    "S1-1": Break(
        f"{SRC}/stores/document.py",
        "        metadata=record.metadata,\n        counters",
        "        counters",
        "metadata is not stored",
    ),
    "S1-2": Break(
        f"{SRC}/stores/values.py",
        '            self._set("id", ids.new_id())',
        '            self._set("id", "01900000-0000-7000-8000-000000000000")',
        "all sessions have the same id",
    ),
    "S1-3": Break(
        f"{SRC}/stores/document.py",
        "        agent=record.agent,\n",
        "",
        "the agent is not stored",
    ),
    "S1-9": Break(
        f"{SRC}/stores/requests.py",
        "    shelf.add_rows(head, rows)",
        "    shelf.add_rows(head, rows[:0])",
        "a message is not stored",
    ),
    "S1-10": Break(
        f"{SRC}/stores/requests.py",
        "    shelf.add_rows(head, rows)",
        "    shelf.add_rows(head, rows[1:])",
        "the first of a batch is not stored",
    ),
    "S1-11": Break(
        f"{SRC}/stores/document.py",
        '        "settings": Settings.of(document.settings),',
        '        "settings": Settings(),',
        "settings are not loaded",
    ),
    "S1-12": Break(
        f"{SRC}/stores/views.py",
        "    if head is None:\n        raise SessionNotFound(key)",
        '    if head is None:\n        raise InvalidInput("key", key)',
        "an unknown key is another error",
    ),
    "S1-13": Break(
        f"{SRC}/stores/document.py",
        "        settings=FrozenDict(record.settings.values),\n",
        "",
        "settings are not stored",
    ),
    "S1-14": Break(
        f"{SRC}/stores/requests.py",
        "        shelf.save_document(head, written)\n        head.touch(self.now)",
        "        head.touch(self.now)",
        "an update is not stored",
    ),
    "S1-15": Break(
        f"{SRC}/stores/document.py",
        '        "settings": Settings.of(document.settings),',
        '        "settings": Settings(),',
        "a loaded session has no settings",
    ),
    "S1-16": Break(
        f"{SRC}/stores/sqlite/settings.py",
        '("foreign_keys", 1)',
        '("foreign_keys", 0)',
        "what belongs to a session outlives it",
    ),
    "S1-17": Break(
        f"{SRC}/stores/requests.py",
        "                head.marked = self.now\n",
        "",
        "nothing is ever marked",
    ),
    "S1-18": Break(
        f"{SRC}/stores/sqlite/shelf.py",
        "self._db.execute(sql.FIND_KEY, (tenant, key)).fetchone()",
        "self._db.execute(sql.FIND_KEY.replace('?', \"'%s'\") % (tenant, key)).fetchone()",
        "a key becomes part of a statement",
    ),
    "S1-19": Break(
        f"{SRC}/stores/document.py",
        "        agent=record.agent,\n",
        "",
        "not everything is stored",
    ),
    "S1-20": Break(
        f"{SRC}/stores/requests.py",
        "        _add(shelf, head, line, self.entries)\n        shelf.save(head)",
        "        shelf.save(head)",
        "a session is made without its messages",
    ),
    "S1-21": Break(
        f"{SRC}/stores/sqlite/shelf.py",
        "        values: list[Any] = list(_flatten(rows))\n",
        "        values: list[Any] = list(_flatten(rows))\n"
        "        self._db.execute('UPDATE entries SET rid = -rid')\n",
        "an append moves what was there",
    ),
    "S1-23": Break(
        f"{SRC}/codec/record.py",
        "        return _encode(_Record(1, entry))",
        "        return _encode(_Record(1, entry.replace(author=None)))",
        "the author is not stored",
    ),
    "S1-24": Break(
        f"{SRC}/codec/record.py",
        "        return message if is_alone and is_whole else None",
        "        return message.replace(author=None) if is_alone and is_whole else None",
        "the author is not loaded",
    ),
    "S1-33": Break(
        f"{SRC}/stores/base.py",
        "    async def delete(self, id: str) -> bool:",
        "    async def remove(self, id: str) -> bool:",
        "an operation has another name",
    ),
    "S1-34": Break(
        f"{SRC}/stores/sqlite/tables.py",
        '    UniqueConstraint("tenant", "key"),\n',
        "",
        "a key is not unique in the file",
    ),
    "S1-35": Break(
        f"{SRC}/stores/requests.py",
        "            raise DuplicateSession(record.key)\n        if shelf.find",
        "            raise DuplicateSession(record.id)\n        if shelf.find",
        "an error names something else",
    ),
    "S1-36": Break(
        f"{SRC}/stores/front.py",
        "            now if not keep_times or time is NO_TIME else micros(time)",
        "            now if time is NO_TIME else micros(time)",
        "the caller's times are kept",
    ),
    "S1-37": Break(
        f"{SRC}/stores/head.py",
        "now - self.updated > self.ttl",
        "now - self.updated >= self.ttl",
        "a session expires too early",
    ),
    "S1-38": Break(
        f"{SRC}/stores/changes.py",
        "FrozenDict({n: v for n, v in merged.items() if v is not None})",
        "FrozenDict(merged)",
        "a name cannot be taken away",
    ),
    "S1-39": Break(
        f"{SRC}/stores/requests.py",
        "        if head is not None:\n            shelf.delete(head)\n",
        "        if head is None:\n            raise SessionNotFound(self.id)\n"
        "        shelf.delete(head)\n",
        "deleting twice is an error",
    ),
    "S1-40": Break(
        f"{SRC}/stores/requests.py",
        "        head.touch(self.now)\n        shelf.move(head)",
        "        shelf.move(head)",
        "an append does not let the time begin anew",
    ),
    "S1-42": Break(
        f"{SRC}/notes.py",
        "interrupted due to a timeout",
        "interrupted",
        "the words are others",
    ),
    "S1-43": Break(
        f"{SRC}/notes.py",
        'COMPACTED = "[Compacted Summary]\\n"',
        'COMPACTED = "[Summary]\\n"',
        "the words are others",
    ),
    "S1-44": Break(
        f"{SRC}/stores/sqlite/tables.py",
        "sessions.c.updated.desc(), sessions.c.number.desc()",
        "sessions.c.number.desc()",
        "a list goes by creation",
    ),
    "S1-45": Break(
        f"{SRC}/stores/private_files.py",
        "name = os.path.expanduser(name)",
        "pass",
        "~ is not the home folder",
    ),
    "S1-59": Break(
        f"{SRC}/stores/requests.py",
        "        head.check_alive(self.now)\n        if self.lease",
        "        if self.lease",
        "an expired session can be appended to",
    ),
    "S1-49": Break(
        f"{SRC}/providers/answer.py",
        "id=call.id or f\"call_{self._new_id().replace('-', '')}\",",
        "id=call.id,",
        "a call without an id stays without one",
    ),
    "S1-50": Break(
        f"{SRC}/window/render.py",
        "group = self._last if result.call_id is None else",
        "group = None if result.call_id is None else",
        "results without ids belong to no call",
    ),
    "S1-56": Break(
        f"{SRC}/providers/prepare.py",
        "if not self._messages and self._rules.first_is_user and role is Role.ASSISTANT:",
        "if False:",
        "the model has the first word",
    ),
    "S1-57": Break(
        f"{SRC}/window/render.py",
        "            for place in group.open:\n",
        "            for place in range(len(group.calls)):\n",
        "calls that have a result get another",
    ),
    "S2-1": Break(
        f"{SRC}/providers/http_provider.py",
        "        ask = self.wire.ask(\n            messages,",
        '        self._said = [*getattr(self, "_said", ()), *messages]\n'
        "        ask = self.wire.ask(\n"
        "            self._said,",
        "a provider remembers what it was asked",
    ),
    "S2-2": Break(
        f"{SRC}/providers/http_provider.py",
        "        response_schema: Mapping[str, Any] | None = None,",
        "        response_schema: Mapping[str, Any] | None,",
        "every call has to name a schema",
    ),
    "S2-3": Break(
        f"{SRC}/history.py",
        "            self._seen = tuple(self._messages)\n        return self._seen",
        "            pass\n        return self._messages  # type: ignore[return-value]",
        "a provider is given the list itself",
    ),
    "S2-4": Break(
        f"{SRC}/providers/base.py",
        "    async def count_tokens(",
        "    @abstractmethod\n    async def count_tokens(",
        "to complete is not all that has to be written",
    ),
    "S2-5": Break(
        f"{SRC}/providers/pipe.py",
        "            self._clients[loop] = client",
        "            pass",
        "every call opens a client of its own",
    ),
    "S2-11": Break(
        f"{SRC}/providers/base.py",
        "any((self.on_chunk, self.on_thinking, self.on_tool_call))",
        "any((self.on_thinking, self.on_tool_call))",
        "who wants the text waits for the end",
    ),
    "S2-12": Break(
        f"{SRC}/providers/answer.py",
        "            self._on_thinking(words)",
        '            self._on_thinking("".join(block.pieces))',
        "thinking is told from its beginning, again and again",
    ),
    "S2-14": Break(
        f"{SRC}/providers/base.py",
        "    async def verify(self)",
        "    async def verify_auth(self)",
        "verify has another name",
    ),
    "S2-15": Break(
        f"{SRC}/providers/models.py",
        "CONTEXT_WITHOUT_PROVIDER = 1_048_576",
        "CONTEXT_WITHOUT_PROVIDER = 128_000",
        "the limit is another",
    ),
    "S2-16": Break(
        f"{SRC}/history.py",
        "            return tuple(self._messages[start:stop])",
        "            return tuple(self._messages[start:])",
        "a slice goes on to the end",
    ),
    "S2-37": Break(
        f"{SRC}/providers/prepare.py",
        "is Shown else render(messages)",
        "is Shown else (Shown(messages), ())",
        "a provider sends what is stored as it is",
    ),
    "S2-38": Break(
        f"{SRC}/window/render.py",
        "                self._put(group, place, _unanswered(message, group.calls[place], place))",
        "                pass",
        "a call that was cut off stays without a result",
    ),
    "S2-40": Break(
        f"{SRC}/window/render.py",
        "Rendered(Shown(self._shown, made),",
        "Rendered(Shown([m for i, m in enumerate(self._shown) if i not in self._open], made),",
        "a half-answered message is dropped, and its results are not",
    ),
    "S2-70": Break(
        f"{SRC}/providers/prepare.py",
        '        if getattr(part, "blob", part) is None and self._rules.takes(part, role):',
        "        if False:",
        "no model is shown a picture",
    ),
    "S2-80": Break(
        f"{SRC}/providers/google.py",
        "contents(prepared.fragments, prepared.settled, prepared.made)",
        "contents(prepared.fragments[-1:], 0, {})",
        "only the last message is sent",
    ),
    "S2-81": Break(
        f"{SRC}/providers/google.py",
        '        "parametersJsonSchema": tool.parameters,',
        '        "parameters": tool.parameters,',
        "a schema stands in the field of another language",
    ),
    "S2-82": Break(
        f"{SRC}/providers/google_parts.py",
        '            named = b"" if _is_ours(call) else b\'"id":\'',
        "            named = b'\"id\":'",
        "Google is told ids that it did not give",
    ),
    "S2-83": Break(
        f"{SRC}/providers/google_parts.py",
        'refs.append({"$ref": label})',
        "refs.append(label)",
        "the response does not refer to its media",
    ),
    "S2-84": Break(
        f"{SRC}/providers/google_reader.py",
        "        if stop == Stop.STOP and self.answer.has_calls:",
        "        if False:",
        "a call does not make of stop tool_use",
    ),
    "S2-85": Break(
        f"{SRC}/providers/google_parts.py",
        "            signature = signature_of(call.signature) if is_own else None",
        "            signature = None",
        "the signature of a call is dropped",
    ),
    "S2-86": Break(
        f"{SRC}/providers/anthropic.py",
        "        if not self._cache:",
        "        if True:",
        "there are no breakpoints",
    ),
    "S2-88": Break(
        f"{SRC}/providers/anthropic_cache.py",
        "MARKS_MAX = 4",
        "MARKS_MAX = 6",
        "there are too many breakpoints",
    ),
    "S2-89": Break(
        f"{SRC}/providers/anthropic_fragments.py",
        "        if role == spoken:",
        "        if False:",
        "neighbours of one role are two messages",
    ),
    "S2-90": Break(
        f"{SRC}/providers/names.py",
        "        self.back = {sent: name for name, sent in self._sent.items() if sent != name}",
        "        self.back: dict[str, str] = {}",
        "names are not mapped back",
    ),
    "S2-91": Break(
        f"{SRC}/providers/anthropic_models.py",
        "TOKENS_MAX_THINKING = 16_000",
        "TOKENS_MAX_THINKING = 8_192",
        "thinking gets no more room",
    ),
    "S2-92": Break(
        f"{SRC}/providers/anthropic_reader.py",
        "fresh + (read or 0) + (written or 0)",
        "fresh",
        "what was cached is no part of the prompt",
    ),
    "S2-93": Break(
        f"{SRC}/providers/sentences.py",
        "\\breached your specified \\S+ usage limits|",
        "",
        "a limit on usage is taken for a wrong request",
    ),
    "S3-34": Break(
        f"{SRC}/providers/sentences.py",
        '        r"\\bwould need <found> tokens but limit is <max> tokens",',
        '        r"\\bwould need <found> tokens but limit is",',
        "one wording does not tell how much fits",
    ),
    "S3-35": Break(
        f"{SRC}/stores/document.py",
        '        "tools": document.tools,',
        '        "tools": (),',
        "tools are not read back",
    ),
    "S3-36": Break(
        f"{SRC}/providers/openai_chat.py",
        '[{"type": "function", "function": shared.function(t)} for t in tools]',
        '[{"type": "function", **shared.function(t)} for t in tools]',
        "a tool is flat, as in the other API",
    ),
    "S3-37": Break(
        f"{SRC}/providers/prepare.py",
        "            tuple(self._sent(tool) for tool in self._head.tools),",
        "            (),",
        "the tools that were passed are not offered",
    ),
    "B21": Break(
        f"{SRC}/window/render.py",
        '_made(message, Role.USER, content, "orphan", index)',
        '_made(message, Role.TOOL, content, "orphan", index)',
        "a result without its call stays one",
    ),
    "B22": Break(
        f"{SRC}/providers/prepare.py",
        "is Shown else render(messages)",
        "is Shown else (Shown(messages), ())",
        "only some providers would repair pairs",
    ),
    "B25": Break(
        f"{SRC}/providers/answer.py",
        '        block.signature = (block.signature or "") + text.mend(signature)[0]',
        "        text.mend(signature)",
        "signatures of thinking are dropped",
    ),
    "B35": Break(
        f"{SRC}/codec/lango.py",
        '        "content": "" if is_result else message.text or "",',
        '        "content": message.text or "",',
        "a result is stored twice",
    ),
    "B36": Break(
        f"{SRC}/providers/anthropic_cache.py",
        "places(fragments)[:count]",
        "places(fragments)[:0]",
        "no breakpoint is set in the history",
    ),
    "B37": Break(
        f"{SRC}/providers/anthropic_cache.py",
        "        out[at] = out[at].marked(number, mark)",
        "        if not at or out[at].role != out[at - 1].role:\n"
        "            out[at] = out[at].marked(number, mark)",
        "a breakpoint on what is put into a message is dropped",
    ),
    "B38": Break(
        f"{SRC}/providers/failures.py",
        "        if is_limit and seen.kind is ContextOverflow:\n            continue\n",
        "",
        "a rate limit that speaks of tokens is taken for an overflow",
    ),
    "B39": Break(
        f"{SRC}/providers/anthropic_reader.py",
        '        arguments = "".join(self._pieces.pop(index, ()))\n',
        '        arguments = "".join(self._pieces.pop(index, ()))\n'
        '        if not arguments.endswith("}"):\n'
        '            arguments = "{}"\n',
        "broken arguments become none",
    ),
    "B40": Break(
        f"{SRC}/providers/google_parts.py",
        'found["error" if is_error else "result"] = words',
        'found["result"] = words',
        "an error is sent as a result",
    ),
    "B44": Break(
        f"{SRC}/providers/names.py",
        "    def __init__(self, spelling: Spelling, offered: Iterable[str]) -> None:\n"
        "        self._spelling = spelling\n"
        "        self._sent: dict[str, str] = {}",
        "    _sent: dict[str, str] = {}  # noqa: RUF012\n"
        "\n"
        "    def __init__(self, spelling: Spelling, offered: Iterable[str]) -> None:\n"
        "        self._spelling = spelling",
        "all conversations share one map of names",
    ),
    "B49": Break(
        f"{SRC}/providers/http_provider.py",
        "        callbacks = Callbacks(on_chunk, on_usage_update, on_thinking, on_tool_call)",
        "        callbacks = Callbacks(on_chunk, on_usage_update, on_thinking, on_tool_call)\n"
        '        callbacks = self.__dict__.setdefault("_callbacks", callbacks)',
        "callbacks belong to the object",
    ),
    "S1-52": Break(
        f"{SRC}/window/recent.py",
        "        if budget < 0 and start < len(messages):",
        "        if budget < 0:",
        "a newest message that is too long is left out",
    ),
    "S1-53": Break(
        f"{SRC}/window/recent.py",
        "return (len(text) - cjk) // 4 + cjk // 2",
        "return len(text) // 4",
        "all characters count the same",
    ),
    "S2-66": Break(
        f"{SRC}/window/known.py",
        "            return self._input, 0  #",
        "            return whole, whole  #",
        "what was reported of a request is not used",
    ),
    "S2-67": Break(
        f"{SRC}/window/accounts.py",
        "turn.replace(prompt=prompt, output=output,",
        "turn.replace(prompt=self.prompt + prompt, output=output,",
        "prompts of a turn are added up",
    ),
    "S2-68": Break(
        f"{SRC}/window/accounts.py",
        "return max(0, self.context_limit - self.total_tokens)",
        "return self.context_limit - self.total_tokens",
        "less than nothing is left",
    ),
    "S2-69": Break(
        f"{SRC}/window/ledger.py",
        "            found = counts.get(key)",
        "            found = None",
        "a message is counted each time",
    ),
    "S3-13": Break(
        f"{SRC}/window/budget.py",
        "    half = context // 2",
        "    half = context",
        "an answer gets a share of the whole context",
    ),
    "S3-14": Break(
        f"{SRC}/window/budget.py",
        "    return _share(context)",
        "    return _share(context // 2)",
        "a result gets the share of half the context",
    ),
    "S3-15": Break(
        f"{SRC}/window/budget.py",
        "return max(0, min(room.context - used, room.reserve))",
        "return min(room.context - used, room.reserve)",
        "an answer may have less than no tokens",
    ),
    "S3-16": Break(
        f"{SRC}/window/budget.py",
        "return limit if configured is None or is_all else min(limit, configured)",
        "return limit",
        "the caller's own limit does not hold",
    ),
    "S3-17": Break(
        f"{SRC}/window/ledger.py",
        "        added = known.take(request, usage.input, changed)",
        "        added = None",
        "reports are not taken",
    ),
    "S3-18": Break(
        f"{SRC}/window/known.py",
        "return Answer(weighs, written, _FRAME_SHARE * written)",
        "return Answer(weighs, weighs, _FRAME_SHARE * written)",
        "an answer has what it is counted as",
    ),
    "S3-19": Break(
        f"{SRC}/window/ledger.py",
        "found = counts[key] = count(message)",
        "found = counts[key] = 1",
        "all messages have the same count",
    ),
    "S3-20": Break(
        f"{SRC}/window/ledger.py",
        "            known.forget()",
        "            pass",
        "reports outlive the conversation",
    ),
    "S3-21": Break(
        f"{SRC}/window/ledger.py",
        "        if not usage.input:\n            return",
        "        if usage.input is None:\n            return",
        "a report of zero tokens is believed",
    ),
    "S3-22": Break(
        f"{SRC}/window/ledger.py",
        "    return probe.input - 1",
        "    return probe.input",
        "the probe itself is part of the baseline",
    ),
    "S3-23": Break(
        f"{SRC}/window/known.py",
        "learned.tokens(text, tools)\n        return max",
        "learned.tokens(max(0, text), tools)\n        return max",
        "what is folded away is still counted",
    ),
    "S3-24": Break(
        f"{SRC}/window/ledger.py",
        "known = self._known.get(model) or Known(stated)",
        "known = next(iter(self._known.values()), None) or Known(stated)",
        "another model's report is used",
    ),
    "S2-41": Break(
        f"{SRC}/window/view.py",
        "        view._show_again()\n        return view",
        "        view._show_again()\n        self._items = view._items\n        return view",
        "planning changes what is shown",
    ),
    "S2-44": Break(
        f"{SRC}/window/budget.py",
        "    start: float = 0.80",
        "    start: float = 0.75",
        "the threshold is another",
    ),
    "S2-45": Break(
        f"{SRC}/window/triggers.py",
        '        return "turn_limit"',
        '        return "threshold"',
        "a limit of turns has no word of its own",
    ),
    "S2-49": Break(
        f"{SRC}/window/keep.py",
        "item.fold is None) or item.turn in pinned",
        "item.fold is None)",
        "pinned turns go like all others",
    ),
    "S2-50": Break(
        f"{SRC}/window/summarize.py",
        '            kind="summarize" if is_first else "drop",',
        '            kind="drop",',
        "what should be summed up is left out",
    ),
    "S2-51": Break(
        f"{SRC}/window/hybrid.py",
        "        start = view.turn - recent - self.middle",
        "        start = -1",
        "ancient turns are summed up too",
    ),
    "S2-52": Break(
        f"{SRC}/window/budget_policy.py",
        "        if is_pressed(situation):\n            yield",
        "        if situation:\n            yield",
        "the summaries of turns leave without pressure",
    ),
    "S2-53": Break(
        f"{SRC}/notes.py",
        'NOTIFIED = "[System: ',
        'NOTIFIED = "[',
        "a notice does not say that it is the system's",
    ),
    "S2-54": Break(
        f"{SRC}/window/plan.py",
        "        return max(0, self.tokens_before - self.tokens_after)",
        "        return self.tokens_before - self.tokens_after",
        "less than nothing is freed",
    ),
    "S2-55": Break(
        f"{SRC}/window/triggers.py",
        "    if policy is None:\n",
        "    if policy == 0:\n",
        "a compaction by hand goes on without a policy",
    ),
    "S2-59": Break(
        f"{SRC}/window/overflow.py",
        "    if attempt > ATTEMPTS_MAX:",
        "    if attempt > 99:",
        "there is no end of attempts",
    ),
    "S2-60": Break(
        f"{SRC}/window/shorten.py",
        "LINES_KEPT = 20",
        "LINES_KEPT = 21",
        "another number of lines is kept",
    ),
    "S2-61": Break(
        f"{SRC}/providers/sentences.py",
        r'        r"\bexceeds the context window\b",',
        r'        r"\bexceeds the context widow\b",',
        "one wording of an overflow is not known",
    ),
    "S3-25": Break(
        f"{SRC}/window/evict.py",
        "    for turn in _turns(view, items):",
        "    for turn in reversed(list(_turns(view, items))):",
        "the latest turns go first",
    ),
    "S3-26": Break(
        f"{SRC}/window/evict.py",
        "    return taken(items, waiting, situation, tokens_max, start, of)",
        "    return taken(items, waiting, situation, tokens_max // 2, start, of)",
        "more goes than has to",
    ),
    "S3-27": Break(
        f"{SRC}/window/evict.py",
        ".turn) < view.turn:",
        ".turn) <= view.turn:",
        "the current turn goes like all others",
    ),
    "S3-28": Break(
        f"{SRC}/window/evict.py",
        "        if free:",
        "        if len(free) > 1:",
        "a request without an answer never goes",
    ),
    "S3-29": Break(
        f"{SRC}/window/pairs.py",
        "                if other is not None and other not in found:",
        "                if False:",
        "calls and results are strangers",
    ),
    "S3-30": Break(
        f"{SRC}/window/keep.py",
        "for place in (last_request, last_answer) if",
        "for place in (last_request,) if",
        "the last answer goes",
    ),
    "S3-31": Break(
        f"{SRC}/window/outcome.py",
        "        if step.first <= end:",
        "        if step.first < 0:",
        "ranges may overlap",
    ),
    "S3-32": Break(
        f"{SRC}/window/outcome.py",
        "            break\n        plan = planned(chosen)",
        "            return plan.replace(steps=())\n        plan = planned(chosen)",
        "too little is nothing",
    ),
    "S3-33": Break(
        f"{SRC}/window/evict.py",
        "    return max(total + min(desired, context // 2) - context, reserve)",
        "    return total + min(desired, context // 2) - context",
        "after a refusal less than the reserve is freed",
    ),
    "B29": Break(
        f"{SRC}/window/budget_policy.py",
        "if not stays.has(p) and",
        "if p not in stays.locked and",
        "kept turns leave in some phase",
    ),
    "B31": Break(
        f"{SRC}/window/evict.py",
        "        if free:",
        "        if len(free) > 1:",
        "a request without an answer never goes",
    ),
    "S2-43": Break(
        f"{SRC}/window/render.py",
        "                self._put(group, place, _unanswered(message, group.calls[place], place))",
        "                pass",
        "calls whose results are folded away are sent without any",
    ),
    "S2-56": Break(
        f"{SRC}/window/view.py",
        "        if message is None or fold.is_open:",
        "        if message is not None:",
        "what stands in the place of something is not shown, nor the facts in it",
    ),
    "S2-58": Break(
        f"{SRC}/window/overflow.py",
        "        plan = _cut(view, real, wanted, is_known=reported is not None)",
        '        plan = nothing(_NAME, real, "no")',
        "results are never cut",
    ),
    "B32": Break(
        f"{SRC}/window/budget.py",
        "return max(0, min(room.context - used, room.reserve))",
        "return max(0, min(room.context - 2 * used, room.reserve))",
        "what is in the prompt is taken off twice",
    ),
}
