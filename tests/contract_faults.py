"""Stores with one fault each, and the promise of the contract that each of them breaks.

A fault is a small change to the naive store, of the kind that a real store has had: a comparison
that is off by one, a filter that was forgotten, a check that comes after the deed.
"""

import asyncio
import copy
import json
import time
import unicodedata
from datetime import timedelta
from types import SimpleNamespace

from msgspec.structs import replace

import naive_store
from holdfast import codec, ids
from holdfast.entries import Fold
from holdfast.errors import Busy, InvalidInput, SessionNotFound, StoreUnavailable
from holdfast.frozen import FrozenDict
from holdfast.messages import Message
from holdfast.stores.values import MAIN, Appended, Expired, Page, Record, Stored
from naive_store import Line, NaiveStore, NaiveTenant, read_token, token

FAULTS = {}  # the name of the test that must fail -> the faulty classes


def breaks(*tests):
    """These tests of the contract catch it."""

    def decorate(kind):
        for test in tests:
            FAULTS.setdefault(test, []).append(kind)
        return kind

    return decorate


# Appends


@breaks("test_a_long_batch_is_whole", "test_what_an_append_did_is_returned")
class LosesTheLastOfABatch(NaiveTenant):
    def add(self, session, branch, entries):
        super().add(session, branch, entries[:-1] if len(entries) > 2 else entries)


@breaks("test_after_a_head_that_moved_on_is_a_conflict")
class IgnoresAfter(NaiveTenant):
    def is_stale(self, session, branch, after):
        return False


@breaks("test_after_a_head_from_the_future_is_a_conflict")
class TakesAFutureHead(NaiveTenant):
    def is_stale(self, session, branch, after):
        return after is not None and after < self.head(session, branch)


@breaks("test_after_is_about_the_branch_alone")
class ComparesAfterWithTheSession(NaiveTenant):
    def is_stale(self, session, branch, after):
        return after is not None and after != session.seq


@breaks("test_all_or_none")
class WritesHalfOfABatch(NaiveTenant):
    def check_entries(self, entries):
        return tuple(entries)

    def add(self, session, branch, entries):
        for entry in entries:
            if isinstance(entry, str):
                raise InvalidInput("an entry", "is not text")
            super().add(session, branch, [entry])


@breaks("test_chunks_of_many_turns_are_kept_each_for_itself")
class LosesAllChunksWithOne(NaiveTenant):
    async def journal_all(self, pieces):
        for lease, chunk in pieces:
            await self.journal(lease, chunk)
        return [None] * len(pieces)


@breaks("test_times_do_not_order_entries")
class OrdersByTimestamp(NaiveTenant):
    def path(self, session, name):
        return sorted(super().path(session, name), key=lambda row: row.entry.timestamp)


@breaks("test_a_stale_writer_never_writes_into_a_session_made_anew")
class FindsSessionsByTheirKey(NaiveTenant):
    async def create(self, record, *rest, **others):
        made = await super().create(record, *rest, **others)
        self._store.__dict__.setdefault("keys", {})[made.id] = made.key
        return made

    def session(self, id):
        key = self._store.keys.get(id)
        same = [each for each in self.all_sessions() if each.record.key == key]
        return same[0] if same else super().session(id)


@breaks("test_an_expired_session_takes_no_entries")
class AppendsToExpiredSessions(NaiveTenant):
    def check_living(self, session):
        pass


@breaks("test_an_entry_of_an_unknown_kind_is_kept_byte_for_byte")
class WritesUnknownEntriesAnew(NaiveTenant):
    def add(self, session, branch, entries):
        entries = [
            e.replace(raw=json.dumps(json.loads(e.raw)).encode()) if hasattr(e, "raw") else e
            for e in entries
        ]
        super().add(session, branch, entries)


# Once


@breaks("test_a_repeat_returns_the_first_result_and_writes_nothing")
class IgnoresOnce(NaiveTenant):
    async def append(self, id, entries, *, once=None, **rest):
        return await super().append(id, entries, **rest)


@breaks("test_a_repeat_returns_the_first_result_and_writes_nothing")
class ComparesIdsInOnce(NaiveTenant):
    def content(self, entries):
        return [codec.record(entry) for entry in entries]


@breaks("test_other_content_is_a_mismatch")
class ComparesOnlyTextsInOnce(NaiveTenant):
    def content(self, entries):
        return [getattr(entry, "text", None) for entry in entries]


@breaks("test_a_name_holds_across_branches")
class ForgetsOnceOnAnotherBranch(NaiveTenant):
    async def append(self, id, entries, *, branch=MAIN, once=None, **rest):
        if once is not None and branch != MAIN:
            once = f"{branch}: {once}"
        return await super().append(id, entries, branch=branch, once=once, **rest)


@breaks("test_it_is_looked_at_before_everything_else")
class LooksAtAfterFirst(NaiveTenant):
    async def append(self, id, entries, *, branch=MAIN, after=None, **rest):
        session = self.session(id)
        if self.is_stale(session, branch, after):
            rest.pop("once", None)
        return await super().append(id, entries, branch=branch, after=after, **rest)


@breaks("test_a_repeat_finishes_too")
class DoesNotFinishARepeat(NaiveTenant):
    async def append(self, id, entries, *, once=None, finish=False, **rest):
        finish = finish and once not in self.session(id).once
        return await super().append(id, entries, once=once, finish=finish, **rest)


@breaks("test_after_clear_a_name_is_free_again")
class KeepsOnceAcrossClear(NaiveTenant):
    async def clear(self, id, *, seen=None):
        names = self.session(id).once
        record = await super().clear(id, seen=seen)
        self.session(id).once = names
        return record


# Leases


@breaks("test_what_is_written_under_a_lost_lease_is_refused")
class NeverLosesALease(NaiveTenant):
    def is_lost(self, session, lease):
        return False


@breaks("test_a_lease_whose_time_is_over_works_until_another_takes_it")
class LosesALeaseByTime(NaiveTenant):
    def is_lost(self, session, lease):
        return super().is_lost(session, lease) or not self.is_running(session)


@breaks("test_a_second_begin_is_busy_and_names_the_owner")
class LetsTheOwnerInTwice(NaiveTenant):
    async def begin(self, id, owner, ttl, draft, **seen):
        session = self.session(id)
        if session.lease is not None and session.lease[0].owner == owner:
            session.lease = None
        return await super().begin(id, owner, ttl, draft, **seen)


@breaks("test_the_time_of_a_lease_is_not_that_of_the_clock_on_the_wall")
class TimesLeasesByTheWall(NaiveTenant):
    def is_running(self, session):
        if not super().is_running(session):
            return False
        lease, _, _ = session.lease
        began = session.__dict__.setdefault("began", {}).setdefault(lease.token, ids.now())
        return ids.now() - began < lease.ttl

    async def begin(self, id, owner, ttl, draft, **seen):
        lease = await super().begin(id, owner, ttl, draft, **seen)
        self.is_running(self.session(id))
        return lease


@breaks("test_tokens_grow_across_clear", "test_tokens_grow_with_every_lease")
class ReusesTokens(NaiveTenant):
    async def begin(self, id, owner, ttl, draft, **seen):
        session = self.session(id)
        if session.draft is None:
            session.token = 0
        return await super().begin(id, owner, ttl, draft, **seen)


@breaks("test_who_has_waited_longest_is_first")
class ServesWhoComesFirst(NaiveTenant):
    async def line_up(self, id, owner, place, *, waited, patience):
        return await super().line_up(id, owner, place, waited=timedelta(0), patience=patience)


@breaks("test_where_nobody_has_the_lease_the_first_may_have_it")
class LetsAnybodyBegin(NaiveTenant):
    async def begin(self, id, owner, ttl, draft, *, place="", **seen):
        session = self.session(id)
        waiting, session.waiting = session.waiting, []
        try:
            return await super().begin(id, owner, ttl, draft, **seen)
        finally:
            session.waiting = [each for each in waiting if each.place != place]


@breaks("test_who_steps_out_is_waited_for_no_longer")
class KeepsThePlacesOfAll(NaiveTenant):
    async def step_out(self, id, place):
        self.check_place(place)


@breaks("test_who_does_not_take_its_turn_is_passed_over")
class WaitsForTheFirstForEver(NaiveTenant):
    def first(self, session):
        first = super().first(session)
        for each in session.waiting:
            each.limit = None
        return first


@breaks("test_the_line_is_one_for_all_stores")
class WaitsForThoseWhoAreGone(NaiveTenant):
    async def line_up(self, id, *rest, **more):
        done = await super().line_up(id, *rest, **more)
        for each in self.session(id).waiting:
            each.store = SimpleNamespace(is_open=True)
        return done


@breaks("test_finish_appends_drops_the_draft_and_releases")
class FinishKeepsTheDraft(NaiveTenant):
    async def append(self, id, entries, *, finish=False, **rest):
        draft = self.session(id).draft
        done = await super().append(id, entries, finish=finish, **rest)
        self.session(id).draft = draft
        return done


@breaks("test_no_draft_is_replaced_that_the_caller_has_not_seen")
class ReplacesWhateverIsLeft(NaiveTenant):
    async def begin(self, id, owner, ttl, draft, **_):
        return await super().begin(id, owner, ttl, draft)


@breaks("test_what_is_left_of_a_turn_that_was_cut_off")
class ForgetsWhatIsLeft(NaiveTenant):
    async def begin(self, id, owner, ttl, draft, **seen):
        return (await super().begin(id, owner, ttl, draft, **seen))._replace(left=None)


@breaks("test_what_is_written_under_a_lost_lease_is_refused")
class ALateReleaseDropsTheDraftOfAnother(NaiveTenant):
    async def release(self, lease, *, drop=False):
        if drop and lease.session_id in self.data.sessions:
            self.session(lease.session_id).draft = None
        await super().release(lease, drop=drop)


@breaks(
    "test_a_store_that_is_closed_frees_its_leases_at_once",
    "test_who_stops_waiting_for_a_close_does_not_end_it",
)
class KeepsTheLeasesOfAClosedStore(NaiveTenant):
    def is_running(self, session):
        return session.lease is not None and time.monotonic() < session.lease[1]


@breaks("test_a_draft_that_is_changed_later_is_not")
class KeepsTheCallersDraft(NaiveTenant):
    async def begin(self, id, owner, ttl, draft, **seen):
        lease = await super().begin(id, owner, ttl, draft, **seen)
        session = self.session(id)
        session.draft = session.draft.replace(input=draft)
        return lease


# Branches, reads and folds


@breaks("test_what_a_parent_gets_later_is_not_on_its_branch")
class SharesTheParentsList(NaiveTenant):
    def path(self, session, name):
        line = session.lines[name]
        before = [] if line.parent is None else self.path(session, line.parent)
        return sorted([*before, *line.rows], key=lambda row: row.seq)


@breaks("test_an_entry_that_is_not_on_the_parent")
class ForksAnywhereInTheSession(NaiveTenant):
    async def branch(self, id, name, *, parent, at, use=True):
        session = self.session(id)
        if name not in session.lines and 0 < at <= session.seq and parent in session.lines:
            session.lines[name] = Line(parent, at)
            return self.record(session)
        return await super().branch(id, name, parent=parent, at=at, use=use)


@breaks("test_what_is_not_a_message_stands_with_the_one_before_it")
class CountsEveryEntryAsAPosition(NaiveTenant):
    def stored(self, session, branch):
        for place, row in enumerate(self.path(session, branch)):
            yield Stored(row.seq, place, row.branch, row.kind, row.entry)


@breaks("test_kind_leaves_out_entries_of_other_kinds")
class CountsPositionsBehindTheFilter(NaiveTenant):
    async def read(self, id, branch=MAIN, start=0, stop=None, *, kind=None):
        rows = await super().read(id, branch, start, stop, kind=kind)
        return tuple(replace(row, position=start + at) for at, row in enumerate(rows))


@breaks("test_reading_is_not_writing")
class LivesLongerWhenRead(NaiveTenant):
    async def read(self, id, *rest, **others):
        self.wrote(self.session(id))
        return await super().read(id, *rest, **others)


@breaks("test_reading_finds_a_damaged_row")
class ReadsDamageAsIfItWereWell(NaiveTenant):
    async def read(self, id, *rest, **others):
        session = self.session(id)
        damage, session.damage = session.damage, set()
        try:
            return await super().read(id, *rest, **others)
        finally:
            session.damage = damage


@breaks("test_a_later_fold_that_covers_an_earlier_one_whole_hides_it")
class ShowsEveryFold(NaiveTenant):
    def folds_in_force(self, folds):
        return tuple(folds)


@breaks("test_a_later_fold_that_covers_an_earlier_one_whole_hides_it")
class HidesFoldsThatOverlap(NaiveTenant):
    def folds_in_force(self, folds):
        return tuple(
            f
            for f in folds
            if not any(
                g.seq > f.seq and g.entry.first <= f.entry.last and g.entry.last >= f.entry.first
                for g in folds
            )
        )


@breaks("test_a_branch_that_leaves_before_the_covering_fold_sees_the_earlier_one")
class FoldsOfTheWholeSession(NaiveTenant):
    def record(self, session):
        rows = [row for name in session.lines for row in self.stored(session, name)]
        by_seq = {row.seq: row for row in rows if isinstance(row.entry, Fold)}
        folds = [by_seq[seq] for seq in sorted(by_seq)]
        return super().record(session).replace(folds=self.folds_in_force(folds))


# Records and updates


@breaks("test_a_session_expires_when_more_than_its_ttl_has_passed")
class ExpiresWhenExactlyTheTtlHasPassed(NaiveTenant):
    def is_expired(self, record, now):
        return record.ttl is not None and now - record.updated_at >= record.ttl


@breaks("test_a_session_expires_when_more_than_its_ttl_has_passed")
class LoadDeletesWhatHasExpired(NaiveTenant):
    def check_living(self, session):
        try:
            super().check_living(session)
        except Exception:
            del self.data.sessions[session.record.id]
            raise


@breaks("test_an_expired_session_still_has_its_key")
class ReplacesWhatHasExpired(NaiveTenant):
    async def create(self, record, *rest, **others):
        for each in self.all_sessions():
            if each.record.key == record.key and self.is_expired(each.record, ids.now()):
                del self.data.sessions[each.record.id]
        return await super().create(record, *rest, **others)


@breaks("test_a_living_session_is_not_replaced", "test_of_many_who_replace_at_once_one_wins")
class ReplacesWhatLives(NaiveTenant):
    def is_replaceable(self, session):
        return True


@breaks("test_an_expired_session_with_a_running_turn_is_not_replaced")
class ReplacesUnderARunningTurn(NaiveTenant):
    def is_replaceable(self, session):
        return self.is_expired(session.record, ids.now())


@breaks("test_what_cannot_be_created_replaces_nothing")
class DeletesBeforeItCreates(NaiveTenant):
    async def create(self, record, *rest, replace_expired=False, **others):
        for each in self.all_sessions():
            if replace_expired and each.record.key == record.key and self.is_replaceable(each):
                await self.delete(each.record.id)
        return await super().create(record, *rest, **others)


@breaks("test_of_many_who_create_one_key_at_once_one_wins")
class LooksBeforeItCreates(NaiveTenant):
    async def create(self, record, *rest, **others):
        try:
            await self.load(record.key)
        except SessionNotFound:
            await asyncio.sleep(0)
            kept = self.data.sessions
            self._store.data[self.name] = copy.copy(self.data)
            self.data.sessions = {}
            try:
                return await super().create(record, *rest, **others)
            finally:
                self.data.sessions.update(kept)
        return await super().create(record, *rest, **others)


@breaks("test_the_rest_is_the_store_s")
class TakesTheStoresPartOfARecord(NaiveTenant):
    async def create(self, record, *rest, **others):
        made = await super().create(record, *rest, **others)
        return made.replace(seq=record.seq) if isinstance(record, Record) and record.seq else made


@breaks("test_a_name_that_is_not_mentioned_stays_as_it_is")
class UpdateReplacesTheWholeField(NaiveTenant):
    def merged(self, old, new):
        return {name: value for name, value in new.items() if value is not None}


@breaks("test_none_takes_a_name_away")
class UpdateStoresNone(NaiveTenant):
    def merged(self, old, new):
        return old | new


@breaks("test_writers_of_different_names_do_not_undo_each_other")
class UpdateReadsThenWrites(NaiveTenant):
    async def update(self, id, changes, expect=None):
        metadata = dict(self.session(id).record.metadata)
        await asyncio.sleep(0)
        await super().update(id, changes, expect)
        session = self.session(id)
        metadata |= changes.get("metadata", {})
        session.record = session.record.replace(metadata=metadata)
        return self.record(session)


@breaks("test_expect_is_a_conflict_when_a_value_is_another", "test_by_metadata")
class TakesTrueForOne(NaiveTenant):
    def same(self, one, two):
        return one == two


@breaks("test_values_are_kept_exactly", "test_what_a_caller_may_give_is_taken")
class KeepsNumbersAsFloats(NaiveTenant):
    def record(self, session):
        record = super().record(session)
        plain = json.loads(json.dumps(record.metadata), parse_int=float)
        return record.replace(metadata=FrozenDict(plain))


@breaks("test_an_expired_session_may_be_updated")
class UpdateLeavesTheTimeAlone(NaiveTenant):
    async def update(self, id, changes, expect=None):
        then = self.session(id).record.updated_at
        done = await super().update(id, changes, expect)
        self.session(id).record = self.session(id).record.replace(updated_at=then)
        return done.replace(updated_at=then)


@breaks("test_such_a_conflict_tells_no_values")
class ConflictTellsValues(NaiveTenant):
    async def update(self, id, changes, expect=None):
        try:
            return await super().update(id, changes, expect)
        except naive_store.Conflict as error:
            raise naive_store.Conflict(error.key, expect, changes, error.field) from None


# Erase and clear


@breaks("test_the_place_of_what_was_erased_stays", "test_its_bytes_are_in_no_file")
class EraseKeepsThePayload(NaiveTenant):
    async def erase(self, id, seqs):
        return len(seqs)

    def add(self, session, branch, entries):
        super().add(session, branch, entries)
        self._store.note(str(entries))


@breaks("test_the_place_of_what_was_erased_stays")
class EraseTakesTheRowAway(NaiveTenant):
    async def erase(self, id, seqs):
        count = await super().erase(id, seqs)
        for line in self.session(id).lines.values():
            line.rows = [row for row in line.rows if row.entry is not None]
        return count


@breaks("test_a_seq_that_is_not_there_and_nothing_is_erased")
class ErasesBeforeItLooks(NaiveTenant):
    async def erase(self, id, seqs):
        known = {row.seq for line in self.session(id).lines.values() for row in line.rows}
        await super().erase(id, [seq for seq in seqs if seq in known])
        return await super().erase(id, seqs)


@breaks("test_search_no_longer_finds_it")
class SearchRemembersWhatWasErased(NaiveTenant):
    async def erase(self, id, seqs):
        self._store.remembered = copy.deepcopy(self.data.sessions)
        return await super().erase(id, seqs)

    async def search(self, query, **rest):
        if (remembered := getattr(self._store, "remembered", None)) is not None:
            self.data.sessions = remembered
        return await super().search(query, **rest)


@breaks("test_no_seq_is_used_again")
class ClearBeginsAtOne(NaiveTenant):
    async def clear(self, id, *, seen=None):
        await super().clear(id, seen=seen)
        session = self.session(id)
        session.seq = session.lines[MAIN].fork = 0
        return self.record(session)


@breaks("test_an_append_that_was_prepared_before_is_a_conflict")
class ClearLeavesTheHead(NaiveTenant):
    async def clear(self, id, *, seen=None):
        await super().clear(id, seen=seen)
        session = self.session(id)
        session.seq -= 1
        session.lines[MAIN].fork = session.seq
        return self.record(session)


@breaks("test_an_append_that_was_prepared_before_is_a_conflict")
class ClearPutsTheHeadToZero(NaiveTenant):
    async def clear(self, id, *, seen=None):
        await super().clear(id, seen=seen)
        self.session(id).lines[MAIN].fork = 0
        return self.record(self.session(id))


@breaks(
    "test_what_was_written_to_meanwhile_is_not_cleared",
    "test_what_a_turn_runs_on_is_not_cleared_if_it_was_only_seen_idle",
)
class ClearsUnseen(NaiveTenant):
    async def clear(self, id, *, seen=None):
        return await super().clear(id)


@breaks("test_a_running_turn_loses_its_lease")
class ClearKeepsTheLease(NaiveTenant):
    async def clear(self, id, *, seen=None):
        lease = self.session(id).lease
        record = await super().clear(id, seen=seen)
        self.session(id).lease = lease
        return record


# Lists, expiry and search


@breaks("test_no_key_of_another_tenant_is_there", "test_one_id_in_two_tenants_is_two_sessions")
class ListsEveryTenant(NaiveTenant):
    def all_sessions(self):
        return [s for data in self._store.data.values() for s in data.sessions.values()]


@breaks("test_those_written_to_last_come_first")
class ListsByTheTimeOfCreation(NaiveTenant):
    def order(self, session):
        return session.record.created_at, session.record.id


@breaks("test_paging_while_others_write")
class PagesByNumber(NaiveTenant):
    async def list(self, *, limit=50, page=None, **rest):
        start = int(page or 0)
        found = (await super().list(limit=1_000, **rest)).items
        more = str(start + limit) if len(found) > start + limit else None
        return Page(found[start : start + limit], more)


@breaks("test_sessions_of_the_same_moment_are_paged_too")
class PagesByTimeAlone(NaiveTenant):
    async def list(self, *, limit=50, page=None, until=None, **rest):
        found = await super().list(limit=limit, page=page, until=until, **rest)
        if found.next is None:
            return found
        last = found.items[-1].updated_at.isoformat("T", "microseconds")
        return Page(found.items, token([last, ""]))


@breaks("test_a_damaged_record_is_corrupt")
class ListRaisesForDamage(NaiveTenant):
    def summary(self, session):
        self.record(session)
        return super().summary(session)


@breaks("test_a_session_is_marked_first_and_deleted_when_its_grace_is_over")
class DeletesAtOnce(NaiveTenant):
    async def expire(self, now=None, **rest):
        done = await super().expire(now, **rest)
        if done.marked:
            self.data.sessions.clear()
        return done


@breaks("test_a_clock_that_jumped_ahead_stops_it", "test_a_clock_that_went_back_stops_it")
class TrustsTheClock(NaiveTenant):
    async def expire(self, now=None, **rest):
        self.data.run = None
        return await super().expire(now, **rest)


@breaks("test_a_clock_that_jumped_ahead_stops_it")
class NeverTrustsTheClockAgain(NaiveTenant):
    async def expire(self, now=None, **rest):
        last = self.data.run
        done = await super().expire(now, **rest)
        if done.stopped:
            self.data.run = last
        return done


@breaks("test_a_session_with_a_running_turn_is_not_deleted")
class DeletesUnderARunningTurn(NaiveTenant):
    async def expire(self, now=None, **rest):
        for session in self.all_sessions():
            session.lease = None
        return await super().expire(now, **rest)


@breaks("test_a_mark_is_gone_when_the_session_is_written_to")
class KeepsTheMark(NaiveTenant):
    def wrote(self, session):
        mark = session.marked
        super().wrote(session)
        session.marked = mark


@breaks("test_tenants_expire_by_themselves")
class ExpiresForEveryTenant(NaiveTenant):
    async def expire(self, now=None, **rest):
        done = Expired(0, 0)
        for name in list(self._store.data):
            each = await NaiveTenant(self._store, name).expire(now, **rest)
            done = each if name == self.name else done
        return done


@breaks("test_every_word_must_be_there")
class FindsAnyWord(NaiveTenant):
    async def search(self, query, **rest):
        found = {}
        for word in query.split():
            for hit in (await super().search(word, **rest)).items:
                found[hit.stored.seq] = hit
        return Page(tuple(found[seq] for seq in sorted(found, reverse=True)))


@breaks("test_case_width_and_accents_do_not_count")
class CaresForCase(NaiveTenant):
    async def search(self, query, **rest):
        page = await super().search(query, **rest)
        return Page(tuple(h for h in page.items if query in str(h.stored.entry)), page.next)


@breaks("test_a_damaged_message_hides_no_other")
class SearchGivesDamage(NaiveTenant):
    """What is damaged is given as if it were sound."""

    async def search(self, query, **rest):
        page = await super().search(query, **rest)
        return page._replace(items=tuple(hit._replace(damage="") for hit in page.items))


@breaks("test_everything_that_a_message_says_is_searched")
class SearchesTextAlone(NaiveTenant):
    def said(self, entry):
        return entry.text or ""


@breaks("test_pages_of_hits_while_others_write_and_delete")
class PagesByTheNumberOfHits(NaiveTenant):
    """The page behind the first four is what is behind four then."""

    async def search(self, query, *, session=None, limit=20, page=None):
        start = 0 if page is None else read_token(page, 1)[0]
        found = (await super().search(query, session=session, limit=1_000)).items
        is_more = start + limit < len(found)
        return Page(found[start : start + limit], token([start + limit]) if is_more else None)


@breaks("test_no_sign_in_a_query_is_an_operator")
class SearchKnowsStars(NaiveTenant):
    async def search(self, query, **rest):
        page = await super().search(query.replace("*", ""), **rest)
        if query.endswith("*"):
            return await super().search("apple", **rest)
        return page


@breaks("test_a_size_is_that_of_what_is_stored")
class SizeCountsBranchesTwice(NaiveTenant):
    async def size(self, id):
        return await super().size(id) * len(self.session(id).lines)


# Delete


@breaks("test_what_was_written_to_meanwhile_is_not_deleted")
class DeletesUnseen(NaiveTenant):
    def check_untouched(self, id, seen):
        if self.is_running(self.data.sessions[id]):
            raise Busy(seen.key)


@breaks("test_what_a_turn_runs_on_is_not_deleted_if_it_was_only_seen_idle")
class DeletesUnderATurn(NaiveTenant):
    def is_running(self, session):
        return False


@breaks("test_an_expired_session_is_given_to_who_asks_for_it")
class ExpiredIsGone(NaiveTenant):
    async def load(self, key, *, even_expired=False):
        return await super().load(key)


# Watch


@breaks("test_from_now_on_unless_told")
class WatchesFromTheBeginning(NaiveTenant):
    def watch(self, id, after=None):
        return super().watch(id, after or 0)


@breaks("test_entries_of_all_branches_in_the_order_of_their_seq")
class WatchesMainAlone(NaiveTenant):
    async def watch(self, id, after=None):
        async for each in super().watch(id, after):
            if getattr(each, "branch", MAIN) == MAIN:
                yield each


@breaks("test_attaching_again_gives_no_gap_and_no_double", "test_behind_a_seq")
class WatchGivesTheLastOneAgain(NaiveTenant):
    def watch(self, id, after=None):
        return super().watch(id, max(after - 1, 0) if after else after)


@breaks("test_the_running_turn_is_given_from_its_beginning")
class WatchGivesLaterChunksOnly(NaiveTenant):
    async def watch(self, id, after=None):
        draft = self.session(id).draft if id in self.data.sessions else None
        seen = len(draft.chunks) if draft else 0
        async for each in super().watch(id, after):
            if not hasattr(each, "number") or each.number > seen:
                yield each


@breaks("test_it_ends_when_the_session_is_deleted")
class WatchesADeletedSession(NaiveTenant):
    async def watch(self, id, after=None):
        try:
            async for each in super().watch(id, after):
                yield each
        except SessionNotFound:
            return


@breaks("test_whoever_stops_watching_leaves_nothing_behind")
class WatchLeavesATask(NaiveTenant):
    def watch(self, id, after=None):
        self._store.task = asyncio.ensure_future(asyncio.sleep(5))
        return super().watch(id, after)


# Arguments, tenants and values


@breaks("test_append_checks_its_arguments")
class LetsTypeErrorsOut(NaiveTenant):
    def check_entries(self, entries):
        return super().check_entries(list(entries))


@breaks("test_an_entry_that_is_too_large", "test_too_many_entries")
class HasNoLimits(NaiveTenant):
    def check_entries(self, entries):
        super().check_entries(entries[:0] if isinstance(entries, list) else entries)
        return tuple(entries)


@breaks("test_a_branch_name_that_is_too_long", "test_a_once_name_that_is_too_long")
class CountsCharactersNotBytes(NaiveTenant):
    def check_name(self, value, what):
        super().check_name(value.encode("ascii", "replace").decode(), what)


@breaks("test_a_restored_session_is_the_same_session")
class RestoreNumbersAnew(NaiveTenant):
    def put(self, session, stored):
        seq = session.seq + 1 if session.lines[MAIN].rows else 1
        super().put(session, replace(stored, seq=max(seq, stored.seq - 1)))


@breaks("test_a_restored_session_is_the_same_session")
class RestoreDropsMarks(NaiveTenant):
    def put(self, session, stored):
        if stored.kind != "mark":
            super().put(session, stored)


@breaks("test_it_goes_on_as_it_would_have", "test_a_restored_session_is_the_same_session")
class RestoreForgetsNames(NaiveTenant):
    async def restore(self, part, **rest):
        return await super().restore(replace(part, named=()), **rest)


@breaks("test_nobody_else_s_writing_is_lost")
class RestoreWritesOver(NaiveTenant):
    def is_touched(self, session):
        return session.origin is None


@breaks("test_an_expired_session_can_be_moved")
class ExportsTheLivingOnly(NaiveTenant):
    async def export(self, id, *rest, **others):
        self.check_living(self.session(id))
        return await super().export(id, *rest, **others)


@breaks("test_a_limit_is_from_one_to_what_the_store_takes")
class CutsALimitDown(NaiveTenant):
    def check_limit(self, limit):
        if isinstance(limit, int):
            limit = min(limit, self.limits.page)
        super().check_limit(limit)


@breaks("test_another_tenant_s_session_answers_like_one_that_is_not_there")
class FindsIdsOfEveryTenant(NaiveTenant):
    def session(self, id):
        for data in self._store.data.values():
            if id in data.sessions:
                return data.sessions[id]
        return super().session(id)


@breaks("test_another_tenant_s_session_answers_like_one_that_is_not_there")
class TellsThatAnIdIsAnothers(NaiveTenant):
    def session(self, id):
        try:
            return super().session(id)
        except SessionNotFound:
            if any(id in data.sessions for data in self._store.data.values()):
                raise InvalidInput("id", "is not yours") from None
            raise


@breaks("test_nothing_in_a_key_is_special")
class NormalisesKeys(NaiveTenant):
    async def create(self, record, *rest, **others):
        key = unicodedata.normalize("NFC", record.key)
        return await super().create(record.replace(key=key), *rest, **others)

    async def load(self, key):
        return await super().load(unicodedata.normalize("NFC", key))


@breaks("test_text_comes_back_exactly")
class CutsTextAtNul(NaiveTenant):
    def add(self, session, branch, entries):
        entries = [
            e.replace(content=e.content.partition("\0")[0])
            if type(e) is Message and isinstance(e.content, str)
            else e
            for e in entries
        ]
        super().add(session, branch, entries)


# Races


@breaks("test_a_cancelled_append_is_there_whole_or_not_at_all")
class AppendsAfterItWasCancelled(NaiveTenant):
    async def append(self, id, entries, **rest):
        async def later():
            await asyncio.sleep(0.001)
            return await super(AppendsAfterItWasCancelled, self).append(id, entries, **rest)

        return await asyncio.shield(asyncio.ensure_future(later()))


@breaks("test_batches_of_several_writers_are_not_mixed")
class AppendsOneByOne(NaiveTenant):
    async def append(self, id, entries, **rest):
        done = []
        for entry in entries:
            done.append(await super().append(id, [entry], **rest))
            await asyncio.sleep(0)
        return Appended(done[0].first, *done[-1][1:])


@breaks("test_of_many_who_append_after_the_same_head_one_wins")
class LooksBeforeItAppends(NaiveTenant):
    async def append(self, id, entries, *, branch=MAIN, after=None, **rest):
        session = self.session(id)
        if self.is_stale(session, branch, after):
            return await super().append(id, entries, branch=branch, after=after, **rest)
        await asyncio.sleep(0)
        return await super().append(id, entries, branch=branch, **rest)


@breaks("test_many_writers_one_order")
class ReadsAnOldState(NaiveTenant):
    async def read(self, id, *rest, **others):
        old = await super().read(id, *rest, **others)
        return old[:-1] if len(old) % 7 == 3 else old


@breaks("test_a_long_run_of_random_operations_is_as_the_model_says")
class DropsASeqNowAndThen(NaiveTenant):
    def add(self, session, branch, entries):
        if session.seq % 50 == 49:
            session.seq += 1
        super().add(session, branch, entries)


# The store as a whole


class DropsWhatWaitsTenant(NaiveTenant):
    async def append(self, id, entries, **rest):
        await asyncio.sleep(0)
        if not self._store.is_open:
            raise StoreUnavailable("naive", "it is closed")
        return await super().append(id, entries, **rest)


@breaks("test_close_finishes_what_was_asked_for")
class DropsWhatWaits(NaiveStore):
    tenant_type = DropsWhatWaitsTenant


class StaysOpenTenant(NaiveTenant):
    @property
    def data(self):
        return self._store.data.setdefault(self.name, naive_store.Data())


@breaks("test_after_close_every_call_is_refused")
class StaysOpen(NaiveStore):
    tenant_type = StaysOpenTenant


@breaks("test_any_text_is_a_name_and_no_two_are_the_same")
class FoldsTheCaseOfTenants(NaiveStore):
    class tenant_type(NaiveTenant):  # noqa: N801 - as it is named there
        @property
        def data(self):
            return self._store.data.setdefault(self.name.lower(), naive_store.Data())


@breaks("test_a_backup_replaces_nothing")
class BackupReplacesFiles(NaiveStore):
    async def backup(self, path, **more):
        (path.parent / "old").unlink(missing_ok=True)
        if path.exists():
            path.unlink()
        await super().backup(path, **more)


@breaks("test_a_backup_tells_how_far_it_is")
class BackupIsSilent(NaiveStore):
    async def backup(self, path, *, on_progress=None):
        await super().backup(path)


@breaks("test_a_backup_while_others_write_is_of_one_moment")
class BackupLosesTheLastEntry(NaiveStore):
    async def backup(self, path, **more):
        kept, self.data = self.data, copy.deepcopy(self.data, {id(self): self})
        for data in self.data.values():
            for session in data.sessions.values():
                session.lines[MAIN].rows = session.lines[MAIN].rows[:-1]
        await super().backup(path, **more)
        self.data = kept


@breaks("test_closing_twice_is_harmless")
class ClosesOnce(NaiveStore):
    async def close(self):
        assert self.is_open, "closed twice"
        await super().close()


@breaks("test_verify_reports_what_is_not_what_was_written")
class VerifiesNothingTenantStore(NaiveStore):
    class tenant_type(NaiveTenant):  # noqa: N801 - as it is named there
        async def verify(self, id=None):
            return (await super().verify(id))._replace(problems=())


def store_of(fault):
    """A maker of stores with this fault."""
    if issubclass(fault, NaiveStore):
        return fault

    class Faulty(NaiveStore):
        tenant_type = fault

        def note(self, text):
            with open(f"{self.path}/log", "a", encoding="utf-8") as file:
                file.write(text)

    return Faulty
