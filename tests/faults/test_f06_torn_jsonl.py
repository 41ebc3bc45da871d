"""F06 for nanobot's files: cut at every byte, torn in the middle, and what else crashes leave.

Three things hold of every state that a crash in the middle of an append can leave: our reader finds
everything acknowledged and all or nothing of the rest; nanobot loads the file with all its history;
and the next append lands on a line of its own. Of a file that was nanobot's alone every intact
message is found, what is lost is counted, and the original is set aside.
"""

import asyncio
import json
import shutil

import pytest

from faults.tier import FULL, pick, some
from holdfast.entries import Mark
from holdfast.messages import Message
from holdfast.stores import open_store
from holdfast.stores.values import Record
from nanobot_rules import load, load_early

KEY = "cli:direct"
FILE = "cli_direct.jsonl"
TIME = 26


async def _write(folder, upto):
    """A session of three turns; then `upto` more."""
    async with open_store(f"jsonl:{folder}", durability="fast") as store:
        tenant = store.tenant()
        try:
            record = await tenant.load(KEY)
        except Exception:
            record = await tenant.create(Record(key=KEY))
            for turn in range(3):
                await tenant.append(record.id, turn_of(turn))
        for turn in range(3, upto):
            await tenant.append(record.id, turn_of(turn))


def turn_of(turn):
    asked, said = f"asked {turn} é", f"said {turn} 北京 🐘"
    return [Message.user(asked), Mark(what="x"), Message.assistant(said)]


def texts_of(turns):
    return [each.text for n in range(turns) for each in turn_of(n) if isinstance(each, Message)]


@pytest.fixture
def states(fast_path):
    """The folder before the last append, and after it."""
    folder = fast_path / "s"
    asyncio.run(_write(folder, 3))
    shutil.copytree(folder, fast_path / "before")
    asyncio.run(_write(folder, 4))
    folder.rename(fast_path / "after")
    return fast_path


def sidecar(folder):
    return next((folder / ".holdfast" / "logs").iterdir())


def arranged(states, main, log):
    """A folder as a crash may leave it. The inode is that of neither: nothing can lean on it."""
    place = states / "place"
    if place.exists():
        shutil.rmtree(place)
    shutil.copytree(states / "after", place)
    (place / FILE).write_bytes(main)
    sidecar(place).write_bytes(log)
    return place


async def _look(place):
    async with open_store(f"jsonl:{place}", durability="fast") as store:
        tenant = store.tenant()
        record = await tenant.load(KEY)
        rows = await tenant.read(record.id, record.branch)
        problems = (await tenant.verify()).problems
        await tenant.append(record.id, [Message.user("next")], branch=record.branch)
        return record, rows, problems


def look(place):
    """What our reader finds, and whether what it appends lands on its own line."""
    record, rows, problems = asyncio.run(_look(place))
    texts = [row.entry.text for row in rows if isinstance(row.entry, Message)]
    after = load_early(place / FILE)
    assert after is not None, "even February loads what we leave"
    assert [each["content"] for each in after] == [*texts, "next"]
    assert record.branch == "main"
    return texts, rows, problems


def nanobot_sees(place, at_least):
    """Nanobot loads the file, with all of its history."""
    found = load(place / FILE)
    assert found is not None
    assert [each["content"] for each in found[1]][: len(at_least)] == at_least


def parts(states):
    before, after = (states / name for name in ("before", "after"))
    return (
        (before / FILE).read_bytes(),
        (after / FILE).read_bytes(),
        sidecar(before).read_bytes(),
        sidecar(after).read_bytes(),
    )


def test_a_sidecar_cut_at_every_byte(states):
    """The sidecar is written first: what is not whole in there has not happened."""
    old, _, log_before, log = parts(states)

    for cut in some(range(len(log_before), len(log) + 1), 80):
        place = arranged(states, old, log[:cut])
        nanobot_sees(place, texts_of(3))
        texts, _, problems = look(place)
        assert texts == texts_of(4 if cut == len(log) else 3), cut
        assert problems == (), cut


def test_nanobot_s_file_cut_at_every_byte_of_the_last_append(states):
    """S4-52, B2: the sidecar has it: it is there for us, and nanobot loses nothing that it had."""
    old, new, _, log = parts(states)
    lines = new[len(old) :]

    for cut in some(range(len(lines) + 1), 80):
        place = arranged(states, old + lines[:cut], log)
        nanobot_sees(place, texts_of(3))
        texts, rows, problems = look(place)
        assert texts == texts_of(4), cut
        assert problems == (), cut
        assert [row.entry.what for row in rows if isinstance(row.entry, Mark)] == ["x"] * 4


def test_a_time_torn_at_every_byte_with_the_lines_cut_anywhere(states):
    """Half of the old time and half of the new one, whatever of the lines is there."""
    old, new, _, log = parts(states)
    at = old.index(b'"updated_at": "') + 15
    cuts = some(range(len(old), len(new) + 1), pick(4, 16))
    times = [new[at : at + TIME], b"2026-02-01T00:00:00.000000"]

    for time in times:
        for torn in range(TIME + 1):
            for cut in cuts:
                mixed = time[:torn] + b"2026-01-31T23:59:59.999999"[torn:]
                place = arranged(states, new[:at] + mixed + new[at + TIME : cut], log)
                nanobot_sees(place, texts_of(3))
                if cut in (cuts[0], cuts[-1]) or FULL:
                    assert look(place)[0] == texts_of(4), (torn, cut)


def test_the_last_three_records_cut_at_every_byte(states):
    """Whoever did it, and however much is gone: we have all of it."""
    _, new, _, log = parts(states)
    start = len(b"\n".join(new.split(b"\n")[:-4])) + 1

    for cut in some(range(start, len(new)), 60):
        texts, _, _ = look(arranged(states, new[:cut], log))
        assert texts == texts_of(4), cut


def test_a_file_cut_at_every_byte_of_line_1(states):
    """Nothing is left of it that nanobot could read: it is written anew, with everything."""
    _, new, _, log = parts(states)

    for cut in some(range(new.index(b"\n") + 1), 20):
        texts, _, _ = look(arranged(states, new[:cut], log))
        assert texts == texts_of(4), cut


@pytest.mark.parametrize("is_ascii", [True, False], ids=["escaped", "Python's bytes"])
def test_a_file_of_nanobot_s_alone_cut_at_every_byte(fast_path, is_ascii):
    """S4-26, B52: every intact message is found, the loss is counted exactly, the original is kept
    aside."""
    lines = nanobot_lines(is_ascii)
    whole = b"".join(lines)
    start = len(b"".join(lines[:-3]))

    for cut in some(range(start, len(whole) + 1), 60):
        place = fast_path / "n"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        (place / FILE).write_bytes(whole[:cut])
        intact = [json.loads(each)["content"] for each in _intact(whole[:cut])[1:]]
        lost = int(_torn(whole[:cut]))
        texts, rows, problems = look(place)
        assert texts == intact, cut
        (told,) = [row.entry.data["lines"] for row in rows if row.kind == "mark"] or [0]
        assert (told, bool(problems)) == (lost, bool(lost)), cut
        kept = list((place / ".holdfast" / "aside").iterdir())
        assert [each.read_bytes() for each in kept] == ([whole[:cut]] if lost else [])


def nanobot_lines(is_ascii=False):
    metadata = {
        "_type": "metadata",
        "key": KEY,
        "created_at": "2026-02-01T10:00:00",
        "updated_at": "2026-02-01T10:00:01.5",
        "metadata": {},
        "last_consolidated": 0,
    }
    messages = [
        {"role": "user", "content": f"nano {n} é 🐘", "timestamp": f"2026-02-01T10:00:0{n}"}
        for n in range(5)
    ]
    return [
        json.dumps(each, ensure_ascii=is_ascii).encode() + b"\n" for each in [metadata, *messages]
    ]


def _intact(data):
    """The lines that can be read, whether or not a newline follows."""
    found = []
    for line in data.split(b"\n"):
        try:
            found.append(json.dumps(json.loads(line)))
        except ValueError:
            continue
    return found


def _torn(data):
    """Whether there is an end that cannot be read."""
    tail = data.rpartition(b"\n")[2]
    try:
        return bool(tail) and not json.loads(tail)
    except ValueError:
        return True


def _damages():
    lines = nanobot_lines()
    whole, half = b"".join(lines), lines[2][: len(lines[2]) // 2]
    return {
        "a block of zeros at the end": (whole + b"\0" * 4096, 5, 0),
        "a block of zeros in the middle": (
            b"".join(lines[:3]) + b"\0" * 512 + b"".join(lines[3:]),
            5,
            0,
        ),
        "half a line, then a whole one": (b"".join(lines[:2]) + half + b"".join(lines[3:]), 4, 1),
        "a newline that is missing": (
            b"".join(lines[:2]) + lines[2].rstrip() + b"".join(lines[3:]),
            5,
            1,
        ),
        "carriage returns": (whole.replace(b"\n", b"\r\n"), 5, 0),
        "a byte-order mark": (b"\xef\xbb\xbf" + whole, 5, 0),
        "no newline at the end": (whole.rstrip(), 5, 0),
        "blank lines": (whole.replace(b"\n", b"\n\n"), 5, 0),
        "a line of something else": (whole + b"[1, 2]\n", 5, 1),
        "a line that is not UTF-8": (whole + b'{"role": "user", "content": "\xff"}\n', 6, 0),
    }


@pytest.mark.parametrize("case", _damages())
def test_what_crashes_leave_in_a_file(fast_path, case):
    """S4-26, B1: every intact message is found, what is lost is counted, the original is kept
    aside."""
    data, count, lost = _damages()[case]
    (fast_path / "n").mkdir()
    (fast_path / "n" / FILE).write_bytes(data)

    texts, rows, problems = look(fast_path / "n")

    assert len(texts) == count
    told = [row.entry.data["lines"] for row in rows if getattr(row.entry, "what", "") == "damaged"]
    assert told == ([lost] if lost else [])
    assert bool(problems) == bool(lost)
    kept = [each.read_bytes() for each in (fast_path / "n" / ".holdfast" / "aside").iterdir()]
    assert kept == ([data] if lost else [])


def _torn_in_the_middle(lines):
    """What may become of a file, which original is set aside, and how many lines are told lost."""
    whole, half = b"".join(lines), lines[2][: len(lines[2]) // 2]
    zeros = b"\0" * len(lines[2])
    return {
        "a line is zeros": (b"".join([*lines[:2], zeros, *lines[3:]]), 0),
        "two lines are zeros": (b"".join([*lines[:2], zeros, zeros, *lines[4:]]), 0),
        "half a line is zeros": (b"".join([*lines[:2], half, zeros, *lines[3:]]), 1),
        "half a line, then a whole one": (b"".join([*lines[:2], half, *lines[3:]]), 1),
        "half a line": (b"".join([*lines[:2], half + b"\n", *lines[3:]]), 1),
        "a newline that is missing": (b"".join([*lines[:2], lines[2][:-1], *lines[3:]]), 1),
        "all messages are zeros": (lines[0] + bytes(len(whole) - len(lines[0])), 0),
        "all of it is zeros": (bytes(len(whole)), 0),
        "carriage returns": (whole.replace(b"\n", b"\r\n"), 0),
        "a byte-order mark": (b"\xef\xbb\xbf" + whole, 0),
        "blank lines": (whole.replace(b"\n", b"\n\n"), 0),
        "half a line of another": (whole + b'{"role": "user", "content": "hal', 1),
    }


@pytest.mark.parametrize("case", _torn_in_the_middle([b"1234\n"] * 9))
@pytest.mark.parametrize("is_theirs", [False, True], ids=["our lines", "nanobot's lines"])
def test_a_file_that_we_know_is_whole_again(fast_path, is_theirs, case):
    """B52: the sidecar has what cannot be read in nanobot's file. It is there again, where it was,
    on the branch that it was on; how much could not be read is told, and the original is kept."""
    folder = fast_path / "n"
    if is_theirs:
        folder.mkdir()
        (folder / FILE).write_bytes(b"".join(nanobot_lines()))
        asyncio.run(_take_in(folder))
        wanted = [f"nano {n} é 🐘" for n in range(5)]
    else:
        asyncio.run(_write(folder, 3))
        wanted = texts_of(3)
    data, lost = _torn_in_the_middle((folder / FILE).read_bytes().splitlines(keepends=True))[case]
    (folder / FILE).write_bytes(data)

    texts, rows, problems = look(folder)

    assert texts == wanted
    told = [row.entry.data["lines"] for row in rows if getattr(row.entry, "what", "") == "damaged"]
    assert told == ([lost] if lost else [])
    assert bool(problems) == bool(lost)
    kept = [each.read_bytes() for each in (folder / ".holdfast" / "aside").iterdir()]
    assert kept == ([data] if lost else [])


async def _take_in(folder):
    async with open_store(f"jsonl:{folder}", durability="fast") as store:
        await store.tenant().load(KEY)


def test_a_tail_that_is_there_twice_is_taken_as_it_is(states):
    """Lines of ours a second time are lines that another program added."""
    _, new, _, log = parts(states)
    lines = new.splitlines(keepends=True)

    texts, _, _ = look(arranged(states, new + b"".join(lines[-2:]), log))

    assert texts == texts_of(4) + texts_of(4)[-2:]


def test_nanobot_would_lose_a_file_whose_last_character_is_cut(fast_path):
    """Control: not escaped, a cut may fall inside a character, and the whole file is gone."""
    path = fast_path / FILE
    whole = b"".join(nanobot_lines())
    outcomes = []
    for cut in range(len(whole) - 40, len(whole)):
        path.write_bytes(whole[:cut])
        outcomes.append(load(path) is None)

    assert any(outcomes)
    assert not all(outcomes)
