"""When a hub may believe what it remembers."""

from __future__ import annotations

from tasks_app.wakeup.message import Message, hints, unpack
from tasks_app.wakeup.trust import SILENCE_SECONDS, Trust, Turn


def beat(epoch, sequence):
    return Message(epoch, sequence, True, "")


def hint(epoch, sequence):
    return Message(epoch, sequence, False, "")


def trusted(epoch=1, sequence=1, now=0.0):
    trust = Trust()
    trust.observe(beat(epoch, sequence), now)
    return trust


def test_trust_begins_with_a_beat_and_not_with_a_hint():
    """A hint says nothing about the commits before it."""
    trust = Trust()
    assert trust.observe(hint(1, 1), 0.0) == Turn.NEW_EPOCH
    assert not trust.active
    assert trust.observe(beat(1, 2), 0.1) == Turn.BEGAN
    assert trust.active


def test_a_gap_in_the_sequence_ends_trust():
    """What was published under the missing number was not heard."""
    trust = trusted()
    assert trust.observe(hint(1, 3), 0.1) == Turn.ENDED
    assert not trust.active


def test_a_beat_behind_a_gap_ends_trust_and_begins_it_anew():
    """It certifies what came before it, so one re-read of everything is enough."""
    trust = trusted()
    assert trust.observe(beat(1, 3), 0.1) == Turn.ENDED | Turn.BEGAN


def test_a_newer_epoch_ends_trust():
    """Between two bridges, commits may have gone unheard."""
    trust = trusted()
    assert trust.observe(hint(2, 1), 0.1) == Turn.NEW_EPOCH | Turn.ENDED
    assert (trust.active, trust.epoch) == (False, 2)


def test_a_lower_epoch_is_ignored_while_trust_lasts():
    """A leader that was succeeded may not know it yet."""
    trust = trusted(epoch=5)
    assert trust.observe(beat(4, 90), 0.1) == Turn.NONE
    assert (trust.active, trust.epoch, trust.sequence) == (True, 5, 1)


def test_a_lower_epoch_is_believed_once_trust_has_ended():
    """After a restore the database's sequence may have gone back; ignoring it for ever would be deafness."""
    trust = trusted(epoch=5)
    trust.check(10.0)
    assert trust.observe(beat(4, 1), 10.1) == Turn.NEW_EPOCH | Turn.BEGAN


def test_a_number_seen_before_changes_nothing():
    """A publication that timed out may still arrive, after its gap was noticed."""
    trust = trusted(sequence=7)
    assert trust.observe(beat(1, 6), 0.1) == Turn.NONE
    assert trust.heard_at == 0.0


def test_silence_ends_trust():
    """Two seconds without a beat: nobody vouches for what was not heard."""
    trust = trusted(now=10.0)
    assert trust.check(10.0 + SILENCE_SECONDS - 0.01) == Turn.NONE
    assert trust.check(10.0 + SILENCE_SECONDS) == Turn.ENDED
    assert not trust.active


def test_hints_do_not_prolong_trust():
    """Only an echo of the bridge's own NOTIFY certifies the commits before it."""
    trust = trusted(now=0.0)
    trust.observe(hint(1, 2), 1.9)
    assert trust.check(2.0) == Turn.ENDED


def test_malformed_hints_are_passed_over():
    """Anybody can NOTIFY; nothing that arrives may kill the receiver."""
    good = "01a22caa8b3c746395d2cdd668f18a5c"
    found = list(hints(f"junk,{good}:3,{good},:::,{good}:x,,{good}:4"))
    assert [version for _, version in found] == [3, 4]
    assert list(hints("," * 100_000)) == []


def test_what_is_not_a_message_of_ours_is_none():
    """The layer may be shared with somebody who sends to our group by mistake."""
    message = beat(3, 4)
    assert unpack(message.pack()) == message
    assert unpack({"type": "chat.message"}) is None
    assert unpack({**message.pack(), "epoch": "x"}) is None
    assert unpack({}) is None
