"""The centre's mailbox: its messages on the exchange, and its waits for the sites."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from consortium.engine.clock import Clock, EarlierWaits, WaitFile
from consortium.engine.names import LOADING, MOST_ANNOUNCEMENT, MOST_NOTICE, REFUSAL, Names
from consortium.engine.queries import read_announcement
from consortium.engine.run_context import RunContext
from consortium.errors import ExchangeError, ProtocolError, TakenError, printable
from consortium.exchange.base import DatedExchange, Exchange, get_each
from consortium.secagg import CENTRE, OVERHEAD, seal, unseal

_LISTED_FROM = 8  # messages; a store's bill for a list is that of a dozen reads
_UNLISTED_EVERY = 16  # looks; a list may be older than the messages
_FLOOD = 64  # names more than there can be, after which a folder is not listed again
_T = TypeVar("_T")
NOT_APPROVED = "whose approval does not cover this run"
"""Word for an awaited site of which the exchange has no approval of one more run."""


@dataclass(frozen=True)
class AwaitedMessages:
    """Messages of one kind for which the centre waits."""

    step: str
    """For people."""
    places: Mapping[str, str]
    """Name on the exchange of each site's message."""
    limit: int
    """Bytes of the largest."""
    patience: Mapping[str, float]
    """Seconds that each site is given."""
    receive: Callable[[bytes], str]
    """Takes a message and returns its sender; raises if it is unsound."""
    enough: int
    """Messages with which the wait is over."""
    loading: float = 0.0
    """Seconds that a site is given which says that it is loading its data; 0 if that changes
    nothing."""

    @classmethod
    def within(
        cls,
        seconds: float,
        step: str,
        places: Mapping[str, str],
        limit: int,
        receive: Callable[[bytes], str],
        *,
        enough: int | None = None,
        late: Mapping[str, float] | None = None,
        loading: float = 0.0,
    ) -> AwaitedMessages:
        """Await every site, or as many as are enough, for so long; those that were late, less."""
        patience = dict.fromkeys(places, seconds) | dict(late or {})
        count = len(places) if enough is None else enough
        return cls(
            step=step,
            places=places,
            limit=limit,
            patience=patience,
            receive=receive,
            enough=count,
            loading=loading,
        )


@dataclass
class Mailbox:
    """The centre's messages on the exchange in one run."""

    context: RunContext
    identity: Ed25519PrivateKey
    exchange: Exchange
    clock: Clock
    wait_file: WaitFile
    log: Callable[[str], None]
    """Receives a line of progress now and then."""

    def __post_init__(self) -> None:
        self._logged: set[str] = set()
        self.notices = Notices(self.context, self.exchange, self.clock.now, self.log_once)
        self._looks = 0
        self._waits = EarlierWaits()
        self._flooded: set[str] = set()  # folders

    def post(self, name: str, kind: str, number: int, body: bytes) -> None:
        """Sign a message and put it on the exchange.

        Raises TakenError if this centre or another party has posted another message there.
        """
        message = seal(
            key=self.identity,
            run=self.context.run,
            sender=CENTRE,
            kind=kind,
            round=number,
            body=body,
        )
        self.put_own(name, message, kind, number)

    def put_own(self, name: str, message: bytes, kind: str, number: int) -> None:
        """Put a signed message on the exchange; raises as `post`."""
        try:
            self.put(name, message)
        except TakenError:
            stored = self.get(name, len(message))
            self.own(name, stored or b"", kind, number)
            raise

    def put(self, name: str, message: bytes) -> None:
        """Put a message on the exchange, repeatedly while that fails.

        Raises ExchangeError if the name has another message, or it fails until the time of one
        answer has passed.
        """
        self._patiently(lambda: self.exchange.put(name, message))

    def get(self, name: str, limit: int) -> bytes | None:
        """Fetch a message, as patiently as `put`."""
        return self._patiently(lambda: self.exchange.get(name, limit))

    def _patiently(self, act: Callable[[], _T]) -> _T:
        """Try until it works: an exchange that is away for a while must not end a run."""
        for _ in self.clock.polls(self.context.study.timing.answer, self.exchange.pace):
            try:
                return act()
            except TakenError:
                raise
            except ExchangeError as error:
                self.log_once(str(error))
        return act()

    def in_time(self, question: str, answer: str, seconds: float) -> bool:
        """Return whether an answer was stored within some seconds of its question.

        Only the exchange's clock is read. A clock that lies gains a site nothing but the patience
        that it has anyway.
        """
        if not isinstance(self.exchange, DatedExchange):
            return False
        try:
            asked, answered = (self.exchange.stored_at(name) for name in (question, answer))
        except ExchangeError as error:
            self.log_once(str(error))
            return False
        return asked is not None and answered is not None and answered - asked <= seconds

    def own(self, name: str, data: bytes, kind: str, number: int) -> bytes:
        """Open a message that the centre posted before a crash.

        Raises TakenError if another party wrote it.
        """
        try:
            return unseal(
                data,
                self.context.keys,
                run=self.context.run,
                kind=kind,
                limit=len(data),
                sender=CENTRE,
                round=number,
            ).body
        except ProtocolError as error:
            raise foreign_message(name, error) from error

    def notice(self, data: bytes, kind: str) -> str:
        """Check a site's signed notice of one kind and return its sender."""
        return unseal(
            data, self.context.keys, run=self.context.run, kind=kind, limit=MOST_NOTICE
        ).sender

    def collect(self, wanted: AwaitedMessages) -> Sequence[str]:
        """Collect messages until enough came, or all deadlines passed; returns missing sites."""
        missing = dict(wanted.places)
        self.notices.rest()  # a round without delay reads none of them
        self._wait(wanted, missing)
        short = len(wanted.places) - len(missing) < wanted.enough
        if short and self._was_away():  # sites could not answer either
            grace = dict.fromkeys(missing, self._grace)
            self._wait(replace(wanted, patience=grace, loading=0.0), missing)
        if short:  # this centre may have been slow, or lists may have hidden messages
            self._read(list(missing.values()), missing, wanted)
        self.wait_file.clear()
        return list(missing)

    def _wait(self, wanted: AwaitedMessages, missing: dict[str, str]) -> None:
        """Take messages out of ``missing`` until enough came, or all deadlines passed."""
        longest = max((*wanted.patience.values(), wanted.loading), default=0.0)
        pace = self.exchange.pace
        first = self._waits.first_rest(self.exchange.pace)
        for left in self.clock.polls(longest, pace, first=first):
            self._read(self._there(missing), missing, wanted)
            if len(wanted.places) - len(missing) >= wanted.enough:
                self._waits.note(longest - left)
                break
            self.notices.look(loading=bool(wanted.loading))
            waited = longest - left
            patience = {site: self._patience(site, wanted) for site in missing}
            lefts = {site: seconds - waited for site, seconds in patience.items()}
            awaited = [s for s in missing if s not in self.notices.refused and lefts[s] > 0]
            if not awaited:
                break
            self._show(wanted, waited, {site: lefts[site] for site in awaited})

    def _was_away(self) -> bool:
        """Return whether the exchange can't be read just now; if so, wait until it can.

        Raises ExchangeError if it can't be read until the time of one answer has passed: then the
        sites are not lost, and the same command resumes the run.
        """
        own = Names(self.context.run).study()
        most = MOST_ANNOUNCEMENT + OVERHEAD
        try:
            self.exchange.get(own, most)
        except ExchangeError:
            self.get(own, most)
            return True
        return False

    @property
    def _grace(self) -> float:
        timing = self.context.study.timing
        return min(timing.late, timing.answer)

    def _patience(self, site: str, wanted: AwaitedMessages) -> float:
        given = wanted.patience[site]
        return max(given, wanted.loading) if site in self.notices.loading else given

    def _show(self, wanted: AwaitedMessages, waited: float, lefts: Mapping[str, float]) -> None:
        loading = self.notices.loading if wanted.loading else set()
        unapproved = self.notices.unapproved if wanted.loading else {}
        words = {
            **dict.fromkeys(lefts, ""),
            **{site: NOT_APPROVED for site in unapproved if site in lefts},
            **{site: "loading its data" for site in loading if site in lefts},
        }
        self.wait_file.show(wanted.step, waited, max(lefts.values()), words, lefts)

    def _read(
        self, places: Sequence[str], missing: dict[str, str], wanted: AwaitedMessages
    ) -> None:
        for place, found in get_each(self.exchange, places, wanted.limit):
            try:
                if isinstance(found, ExchangeError):
                    raise found
                if found is not None:
                    missing.pop(wanted.receive(found), None)
            except (ProtocolError, ExchangeError) as error:  # wait for a good one
                self.log_once(f"{place}: {error}")

    def _there(self, missing: Mapping[str, str]) -> list[str]:
        """Return places to read: if they are many, those in a list of their folder.

        If a list fails, is outdated, or is very long, they are read one by one, and also those
        still missing at the deadline. So no party can hide a message or delay the centre by more
        than one list of these.
        """
        places = list(missing.values())
        folder = places[0].rpartition("/")[0] if places else ""
        self._looks += 1
        unlisted = self._looks % _UNLISTED_EVERY == 0 or folder in self._flooded
        if len(places) < _LISTED_FROM or unlisted:
            return places
        try:
            names = self.exchange.children(folder)
        except ExchangeError as error:
            self._flooded.add(folder)
            self.log_once(str(error))
            return places
        if len(names) > len(self.context.study.sites) + _FLOOD:  # and it took long
            self._flooded.add(folder)
            return places
        present = {f"{folder}/{name}" for name in names}
        return [place for place in places if place in present]

    def log_once(self, line: str) -> None:
        """Log a line unless it was logged before."""
        if line not in self._logged:
            self._logged.add(line)
            self.log(line)


def foreign_message(name: str, error: ProtocolError) -> TakenError:
    """Return the error for a name of the centre's on the exchange with another party's message.

    It does not end the run: otherwise any party that can write to the exchange could end it.
    """
    return TakenError(
        f"{name} has a message that this centre did not post. {error} Have the exchange's owner "
        "remove it, and run the study again."
    )


_EVERY = 0.2  # s between two looks
_PACES = 25  # the same, as a factor of the exchange's pace
_MOST = 300  # characters of a site's text


@dataclass(eq=False)
class Notices:
    """Notices from the sites that the centre has read in one run."""

    context: RunContext
    exchange: Exchange
    now: Callable[[], float]
    """The time in seconds."""
    log_once: Callable[[str], None]
    """Receives a line of progress now and then."""
    refused: dict[str, str] = field(default_factory=dict, init=False)
    """Sites that take no further part, with the reason they gave."""
    loading: set[str] = field(default_factory=set, init=False)
    """Sites that have said that they are loading their data."""
    unapproved: Mapping[str, str] = field(default_factory=dict, init=False)
    """Sites whose approval does not cover this run, with a sentence for the coordinator."""
    read_approvals: Callable[[], Mapping[str, str]] = field(default=dict, init=False)
    """Reads ``unapproved`` from the exchange."""

    def __post_init__(self) -> None:
        self._names = Names(self.context.run)
        self._asked = 0.0

    def rest(self) -> None:
        """Pause reading for a moment."""
        self._asked = self.now()

    def look(self, *, loading: bool) -> None:
        """Note which sites have said that they take no further part, or load their data."""
        now = self.now()
        if now - self._asked < max(_EVERY, _PACES * self.exchange.pace):
            return
        self._asked = now
        for site in self._said(self._names.refusals()):
            if site not in self.refused:
                self._hear_refusal(site)
        for site in self._said(self._names.loading()) if loading else ():
            if site not in self.loading:
                self._hear_loading(site)
        if loading:
            self.look_for_approvals()

    def look_for_approvals(self) -> None:
        """Read which sites' approvals don't cover this run."""
        try:
            self.unapproved = self.read_approvals()
        except ExchangeError as error:
            self.log_once(str(error))

    def _said(self, place: str) -> list[str]:
        """Return the sites of the study with a message in a place."""
        try:
            names = self.exchange.children(place)
        except ExchangeError as error:
            self.log_once(str(error))
            return []
        return [site for site in self.context.study.sites if site in names]

    def _hear_loading(self, site: str) -> None:
        try:
            data = self.exchange.get(self._names.loading(site), MOST_NOTICE)
            self._unseal(data or b"", LOADING, site)
        except (ProtocolError, ExchangeError) as error:  # another party wrote that
            self.log_once(f"loading of {site}: {error}")
            return
        self.loading.add(site)
        self.log_once(f"{site} is loading its data")

    def _hear_refusal(self, site: str) -> None:
        try:
            data = self.exchange.get(self._names.refusal(site), MOST_NOTICE)
            body = self._unseal(data or b"", REFUSAL, site)
            notice = read_announcement(body)
        except (ProtocolError, ExchangeError) as error:  # another party wrote that
            self.log_once(f"refusal of {site}: {error}")
            return
        code, reason = (printable(notice.get(key), _MOST) for key in ("code", "reason"))
        self.refused[site] = f"{site} takes no further part ({code}): {reason}"
        self.log_once(self.refused[site])

    def _unseal(self, data: bytes, kind: str, site: str) -> bytes:
        context = self.context
        return unseal(
            data, context.keys, run=context.run, kind=kind, limit=MOST_NOTICE, sender=site, round=0
        ).body
