"""Files for nobody but us: the old ones or the new ones, and nothing in between."""

import errno
import os
import stat

import pytest

from holdfast import private_files


def test_a_file_is_replaced_whole(tmp_path):
    path = tmp_path / "a"

    assert private_files.write(path, [b"one", b"two"]) == 6
    assert private_files.write(path, [b"three"]) == 5

    assert path.read_bytes() == b"three"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["a"]


def test_pieces_that_break_off_change_nothing(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def pieces():
        yield b"half of"
        raise RuntimeError("the rest")

    for is_new in (False, True):
        with pytest.raises(RuntimeError):
            private_files.write(path, pieces(), is_new=is_new)

    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("has_links", [True, False])
def test_a_file_that_somebody_made_meanwhile_is_not_replaced(tmp_path, monkeypatch, has_links):
    """It is looked for at the last moment; without that, the rename would go over it."""
    path = tmp_path / "a"
    if not has_links:

        def link(*_):
            raise OSError(errno.EPERM, "no links here")

        monkeypatch.setattr(os, "link", link)

    def pieces():
        yield b"ours"
        path.write_bytes(b"theirs")

    with pytest.raises(FileExistsError):
        private_files.write(path, pieces(), is_new=True)
    assert path.read_bytes() == b"theirs"
    assert os.listdir(tmp_path) == ["a"]

    path.unlink()
    private_files.write(path, [b"ours"], is_new=True)
    assert path.read_bytes() == b"ours"
    assert path.stat().st_nlink == 1
