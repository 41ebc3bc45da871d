"""The other commands that read: ls, search, context, usage, tree, diff."""

import asyncio
import json
from datetime import timedelta
from decimal import Decimal

import pytest

import holdfast
from cli_conversations import CUT_OFF, FORK, HOSTILE, KEY, MODEL
from holdfast import Message, Usage, sync
from holdfast.bills import Bill, Fill
from holdfast.cli import amounts
from holdfast.cli.passages import passage
from holdfast.cli.plot import plot
from holdfast.cli.screen import Screen
from holdfast.entries import Call
from holdfast.steps import drafts
from holdfast.stores.values import Record


def told(ran):
    """The JSON that a command printed."""
    status, out, err = ran
    assert status == 0, err
    return json.loads(out)


# ls


def test_conversations_are_listed_with_their_state(run):
    """The latest first; one that was cut off says so, and so does one that has expired."""
    rows = told(run("ls", "--json"))
    status, out, _ = run("ls")

    assert [row["key"] for row in rows] == [HOSTILE, CUT_OFF, FORK, KEY]
    assert [row["state"] for row in rows] == ["", "cut off", "", ""]
    assert (rows[3]["messages"], rows[3]["title"], rows[3]["agent"]) == (
        9,
        "Hello, I am Ada.",
        "clerk",
    )
    assert status == 0
    assert out.splitlines()[0].split() == ["KEY", "WHEN", "MESSAGES", "BEGAN", "WITH"]
    assert any("[cut off]" in line for line in out.splitlines())


def test_an_expired_conversation_is_listed_and_shown_as_such(run, tmp_path):
    url = f"sqlite:{tmp_path / 'old.db'}"
    asyncio.run(_expired(url))

    rows = told(run("ls", "--json", "--store", url))
    status, out, _ = run("show", "old", "--store", url)

    assert [(row["state"], row["title"]) for row in rows] == [("expired", "Hello.")]
    assert (status, "expired" in out.splitlines()[0], "  Hello." in out) == (0, True, True)
    assert run("context", "old", "-m", MODEL, "--store", url)[0] == 3


async def _expired(url):
    async with holdfast.open(url) as sessions:
        record = Record(key="old", ttl=timedelta(microseconds=1))
        await sessions._tenant.create(record, [Message.user("Hello.")])


def test_a_turn_that_runs_is_shown_as_running_with_what_it_has_said(run, tmp_path):
    """From another process, while its owner holds the lease."""
    url = f"sqlite:{tmp_path / 'running.db'}"
    draft = drafts.written(Message.user("Tell me a story."), "main")
    with sync.open_store(url) as store:
        tenant = store.tenant()
        record = tenant.create(Record(key="busy"))
        lease = tenant.begin(record.id, "the clerk", timedelta(seconds=60), draft)
        tenant.journal(lease, '[["at", 0], ["t", "Once upon"]]')

        (row,) = told(run("ls", "--json", "--store", url))
        _, out, _ = run("show", "busy", "--store", url)

    assert (row["state"], row["messages"]) == ("running", 0)
    assert "assistant  so far" in out
    assert "  Once upon" in out
    assert "[the turn runs now, by the clerk]" in out


def test_a_list_can_be_narrowed_and_tell_more(run):
    """By words, agent and time; with -l what each has cost, and never a number nobody knows."""
    assert [row["key"] for row in told(run("ls", "--json", "-q", "invoice"))] == [KEY]
    assert [row["key"] for row in told(run("ls", "--json", "--agent", "clerk"))] == [FORK, KEY]
    assert told(run("ls", "--json", "--since", "2999-01-01")) == []
    assert len(told(run("ls", "--json", "-n", "2"))) == 2
    long = {row["key"]: row["spent"] for row in told(run("ls", "--json", "-l"))}
    assert long[KEY]["calls"] == 5
    assert long[CUT_OFF] is None
    _, out, _ = run("ls", "-l")
    assert "+" not in next(line for line in out.splitlines() if line.startswith(KEY))


def test_no_store_yet_is_an_empty_list_but_a_wrong_one_an_error(run, tmp_path, monkeypatch):
    """Whoever begins has no conversations; whoever names a store means one that is there."""
    status, out, err = run("ls", "--store", f"sqlite:{tmp_path / 'typo.db'}")
    assert (status, out) == (3, "")
    assert "typo.db" in err

    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path))
    assert run("ls")[:2] == (0, "")
    assert run("ls")[2].endswith("holdfast chat begins one\n")
    assert told(run("ls", "--json")) == []
    assert told(run("usage", "--json"))["rows"] == []
    assert run("search", "anything")[0] == 1
    assert list(tmp_path.iterdir()) == []


# search


def test_what_is_found_is_told_with_its_place_and_the_words_in_it(run):
    """Newest first; key, turn, role, time and the passage, with where in it the words are."""
    found = told(run("search", "INVOICE", "--json"))

    first, second = found["hits"]
    assert (first["key"], first["role"], first["turn"]) == (KEY, "assistant", 3)
    assert (second["role"], second["turn"], second["position"]) == ("user", 3, 7)
    assert [first["passage"][a:b] for a, b in first["places"]] == ["invoice"]
    assert (found["query"], found["next"]) == ("INVOICE", None)
    status, out, _ = run("search", "invoice", "--color", "always")
    assert status == 0
    assert "the \x1b[1;31minvoice\x1b[0m paid?" in out


def test_nothing_found_is_status_1_as_of_grep(run):
    assert run("search", "unheard")[:2] == (1, "")
    assert run("search", "invoice", "walrus")[0] == 1  # every word, in one message
    assert run("search", "?!")[0] == 2
    assert run("search")[0] == 2
    assert run("search", "cafe", "paid")[0] == 0  # accents do not count


def test_a_search_in_one_conversation_goes_page_by_page(run):
    """A page tells how to ask for the next one; together they are what one large one is."""
    whole = told(run("search", "walrus", "--json", "-s", HOSTILE))["hits"]
    pages, token = [], None
    while True:
        more = ["--page", token] if token else []
        page = told(run("search", "walrus", "--json", "-n", "1", "-s", HOSTILE, *more))
        pages += page["hits"]
        if (token := page["next"]) is None:
            break

    assert len(whole) == 3
    assert pages == whole
    assert run("search", "walrus", "-s", KEY)[0] == 1
    assert "--page" in run("search", "walrus", "-n", "1")[2]


@pytest.mark.parametrize(
    ("text", "wanted", "found"),
    [
        ("The Café is open", "cafe", ["Café"]),
        ("paid, repaid, PAID", "paid", ["paid", "PAID"]),
        ("我在北京塔下", "北京", ["北京"]),
        ("ｆｕｌｌ width", "full", ["ｆｕｌｌ"]),
        ("nothing here", "walrus", []),
        ("", "x", []),
        ("x" * 5000 + " needle " + "y" * 5000, "needle", ["needle"]),
    ],
)
def test_the_passage_holds_the_words_that_were_looked_for(text, wanted, found):
    around = passage(text, wanted, 60)

    assert [around.text[a:b] for a, b in around.places] == found
    assert len(around.text) <= 60 + 2 + len("".join(found))


# context


def test_the_next_request_is_told_part_by_part(run):
    """System, tools and each message, with tokens that are measured or said to be estimated."""
    context = told(run("context", KEY, "--json"))
    _, out, _ = run("context", KEY)

    assert context["model"] == MODEL
    assert context["system"]["text"] == "You are a helpful clerk."
    assert [(each["role"], each["is_measured"]) for each in context["messages"]] == [
        ("user", False),  # what stands for the first two
        ("user", False),
        ("assistant", True),
        ("tool", False),
        ("tool", False),
        ("assistant", True),
        ("user", False),
        ("assistant", True),
    ]
    assert context["messages"][0]["is_fold"]
    assert (context["messages"][0]["first"], context["messages"][0]["last"]) == (1, 2)
    assert [fold["why"] for fold in context["folds"]] == ["it is old"]
    assert 0 < context["measured"] <= context["used"] <= context["limit"] < context["context"]
    assert "entries 1 to 2 folded by hand" in out
    assert "  it is old" in out.splitlines()


def test_what_is_told_is_the_window(run, home_of_conversations):
    """The digest is that of `session.window()`, which is what a turn sends."""
    context = told(run("context", KEY, "--json"))

    assert context["digest"] == asyncio.run(_digest(home_of_conversations))


async def _digest(home):
    async with holdfast.open(f"sqlite:{home / 'data' / 'holdfast.db'}") as sessions:
        return (await sessions.get(KEY)).window(MODEL).digest


def test_the_request_is_shown_without_a_network_or_a_key(run):
    """As the vendor of any model would be sent it."""
    anthropic = told(run("context", KEY, "--request"))
    openai = told(run("context", KEY, "--request", "-m", "openai:gpt-5"))

    assert anthropic["model"] == "claude-sonnet-4-5"
    assert anthropic["messages"][0]["content"][0]["text"] == "Ada said hello."
    assert openai["model"] == "gpt-5"
    assert "Ada said hello." in json.dumps(openai)


def test_without_a_model_there_is_no_next_request(run):
    """The way out is named; the conversation can still be shown."""
    status, out, err = run("context", CUT_OFF)

    assert (status, out) == (2, "")
    assert err.endswith("name one with -m vendor:model\n")
    assert run("context", CUT_OFF, "-m", "nobody:x")[0] == 2
    assert told(run("context", CUT_OFF, "-m", MODEL, "--json"))["messages"] == []


# usage


def test_a_conversation_is_accounted_for_turn_by_turn(run):
    """Calls, tokens, cost and how full the window was; the total is of all branches."""
    account = told(run("usage", KEY, "--json"))
    _, out, _ = run("usage", KEY)

    assert [turn["calls"] for turn in account["turns"]] == [1, 2, 1]
    assert account["total"]["calls"] == 5  # one on the other branch
    assert account["total"]["cache_share"] is None  # the model said nothing of a cache
    assert [turn["fill"]["folds"] for turn in account["turns"]] == [0, 0, 1]
    assert all(turn["fill"]["is_reported"] for turn in account["turns"])
    assert Decimal(account["total"]["cost"]) > 0
    assert "?" in out.splitlines()[1]
    assert "limit 192,000, far above" in out
    assert "█" in out


@pytest.mark.parametrize("by", ["model", "day", "session"])
def test_all_conversations_are_added_up(run, by):
    """However they are grouped, the sum is the same."""
    sums = told(run("usage", "--by", by, "--json"))

    assert sums["by"] == by
    assert sums["total"]["calls"] == sum(row["calls"] for row in sums["rows"]) == 5
    assert sums["total"]["input"] == sum(row["input"] for row in sums["rows"])
    names = {row[by] for row in sums["rows"]}
    assert by != "model" or names == {MODEL}
    assert by != "session" or names == {KEY}  # what it was forked with is not paid twice


def test_only_what_was_used_since_is_added_up(run):
    assert told(run("usage", "--json", "--since", "2999-01-01"))["rows"] == []
    assert told(run("usage", "--json", "--since", "1d"))["total"]["calls"] == 5
    assert told(run("usage", KEY, "--by", "model", "--json"))["total"]["calls"] == 5


def test_a_bill_invents_no_number():
    """What nobody said is not 0: a sum says of how many calls it is."""
    silent = Call(model="m", usage=Usage())
    cached = Call(model="m", usage=Usage(100, 10, cache_read=80), cost=Decimal("0.5"))
    fresh = Call(model="m", usage=Usage(100, 10, cache_read=0))

    assert Bill().cache_share is Bill().cost is None
    one = Bill().plus(silent)
    assert (one.usage.input, one.told, one.cost, one.cache_share) == (None, 0, None, None)
    three = one.plus(cached).plus(fresh)
    assert (three.usage.input, three.told, three.calls) == (200, 2, 3)
    assert (three.cost, three.priced, three.cache_share) == (Decimal("0.5"), 1, 0.4)
    assert amounts.money(three.cost, three.priced, three.calls) == "0.5000+"
    assert (amounts.money(None), amounts.tokens(None), amounts.share(None)) == ("?", "?", "?")


def test_the_plot_has_a_line_at_the_limit_and_marks_folds():
    """Absolute tokens; what nobody knows is a ?, and many turns share a column."""
    screen = Screen("never")
    full = Fill(90, True, 100, 0)
    folded = Fill(40, True, 100, 2)

    lines = list(plot(screen, [(1, full), (2, folded), (3, Fill(None, False, None, 0))], 40))

    assert lines[0].startswith(" 100 │") and "╌" in lines[0]
    assert "?" in lines[9]
    assert any("▾" in line for line in lines)
    assert "limit 100" in lines[-1]
    many = list(plot(screen, [(number, full) for number in range(1, 1_001)], 60))
    assert max(map(len, many)) <= 60
    assert "turns a column" in many[-1]
    assert list(plot(screen, [(1, Fill(None, False, None, 0))], 40)) == []
    far = list(plot(screen, [(1, Fill(5, False, 1_000_000, 0))], 100))
    assert "far above" in far[-2] + far[-1] and "estimated" in far[-1]


# tree and diff


def test_branches_are_drawn_with_where_they_left(run):
    """Parent, fork point, length, which is in use; and what was made from the conversation."""
    tree = told(run("tree", KEY, "--json", "--all"))
    _, out, _ = run("tree", KEY, "--all")

    main, other = tree["branches"]
    assert (main["name"], main["parent"], main["is_in_use"], main["own_messages"]) == (
        "main",
        None,
        True,
        9,
    )
    assert (other["parent"], other["fork_turn"], other["shared_messages"]) == ("main", 2, 7)
    assert (other["own_messages"], other["messages"], other["is_in_use"]) == (2, 9, False)
    assert [(each["key"], each["kind"]) for each in tree["made_from_it"]] == [(FORK, "fork")]
    assert told(run("tree", FORK, "--json", "--all"))["parent_key"] == KEY
    lines = out.splitlines()
    assert lines[0] == KEY
    assert lines[1].startswith("└─ main  *")
    assert lines[2].startswith("   └─ other  from turn 2 · 2 messages of its own")
    assert lines[3] == f"fork: {FORK} (clerk)"


def test_children_are_told_of_without_looking_through_everything(run, tmp_path):
    url = f"sqlite:{tmp_path / 'children.db'}"
    asyncio.run(_with_child(url))

    tree = told(run("tree", "parent", "--json", "--store", url))

    assert [(each["kind"], each["agent"]) for each in tree["made_from_it"]] == [("child", "reader")]


async def _with_child(url):
    async with holdfast.open(url) as sessions:
        parent = await sessions.get_or_create("parent")
        await parent.append(Message.user("Hello."))
        await parent.child("reader")


def test_two_branches_are_compared(run):
    """What both begin with is counted, and what only one has is shown, with what it cost."""
    diff = told(run("diff", KEY, "other", "--json"))
    status, out, _ = run("diff", KEY, "other", "main", "--full")

    assert (diff["a"], diff["b"], diff["common"]) == ("other", "main", 7)
    assert [each["content"] for each in diff["only_a"]["messages"]] == [
        "Count again.",
        "Four, I think.",
    ]
    assert len(diff["only_b"]["messages"]) == 2
    assert Decimal(diff["only_a"]["cost"]) > 0
    assert status == 0
    assert out.splitlines()[0] == "7 messages in both"
    assert "- user:" in out.splitlines()
    assert "+   Was the invoice paid?" in out.splitlines()
    assert run("diff", KEY, "nowhere")[0] == 3
