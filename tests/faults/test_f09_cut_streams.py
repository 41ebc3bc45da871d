"""F09: a stream without its end is an error that keeps what had come, wherever it breaks off.

Every recorded stream is cut: at every byte if it is short, else behind each event and in its last
two kilobytes. `python -m holdfast.testing.replay FOLDER --cuts 1` does it without a sample.
"""

import os
from pathlib import Path

import pytest

from faults.tier import need, pick, some
from holdfast.errors import ProviderError
from holdfast.messages import Stop
from holdfast.testing.replay.check import Report, check_folder, check_recording, table
from holdfast.testing.replay.ours import Ours, adapters
from holdfast.testing.replay.recordings import BUILT, Recording, read_folder

ROOT = Path(__file__).parents[2]
CORPUS = Path(os.environ.get("HOLDFAST_CORPUS") or ROOT.parent / "shared" / "corpus")
TRAFFIC = CORPUS / "traffic"
STEP = pick(211, 13)
SIZE_MAX = pick(100_000, 2**40)  # cut at each event, a stream costs as much as its length squared


@pytest.mark.parametrize("folder", BUILT)
def test_a_stream_that_breaks_off_is_never_an_answer(folder):
    need(None if TRAFFIC.is_dir() else f"there is no corpus at {CORPUS}")

    streams = [
        recording
        for recording in read_folder(TRAFFIC / folder)
        if isinstance(recording, Recording) and "stream" in recording.tags
        if max(len(each.data) for each in recording.exchanges) <= SIZE_MAX
    ]
    report = Report()
    for recording in some(streams, 12):
        report.verdicts += check_recording(recording, adapters(), cut_step=STEP)

    passed, count = report.share("cut")
    assert count >= 5  # streams
    assert passed == count, [line for line in table(report) if "(cut)" in line][:3]


class Trusting(Ours):
    """Takes what had come for the answer."""

    def read(self, exchange):
        try:
            return super().read(exchange)
        except ProviderError as error:
            if error.partial is None:
                raise
            message = error.partial.message.replace(stop=Stop.STOP)
            return error.partial.replace(message=message)


def test_control_a_reader_that_trusts_the_end_is_found():
    need(None if TRAFFIC.is_dir() else f"there is no corpus at {CORPUS}")
    trusting = {wire: Trusting(ours._wire_of) for wire, ours in adapters().items()}

    report = check_folder(TRAFFIC / "anthropic", trusting, cut_step=997)

    passed, count = report.share("cut")
    assert passed < count / 2
