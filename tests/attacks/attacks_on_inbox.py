"""Attacks on the site's inbox by other pages of its browser and other users of its machine."""

import contextlib
import os
import shutil
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from starlette.responses import PlainTextResponse

from consortium.errors import ConsortiumError
from consortium.membership.keys import load_identity
from consortium.membership.signed_study import read_signed
from site_agent.approval.approval import approvals
from site_agent.approval.folder import SiteFolder
from site_agent.approval.offers import read_offers
from site_agent.inbox import connections, server, study_pages
from site_agent.inbox.guard import Door, Guard
from site_agent.layout import NOTES
from tests.attacks.attack_kinds import Stage, attack, nothing
from tests.support.inbox_client import Visitor, receive_study
from tests.support.membership_files import PLAIN, give_scans, papers, publish
from tests.support.patience import PATIENCE

_SCRIPT = "<script>alert(1)</script>"


def _received(stage: Stage, text: str = PLAIN) -> Path:
    """Return the folder of a site that has received a study."""
    place, _ = papers(stage.root / "place", text)
    return receive_study(place)


def _sent(stage: Stage, visitor: Visitor, headers: dict[str, str], **fields: str) -> bool:
    """Send a note as a form, and return whether it was stored."""
    study = visitor.study()
    answer = visitor.client.post(
        f"{visitor.door.base}{study}/note", data={"note": "x", **fields}, headers=headers
    )
    stage.said.append(answer.text)
    return answer.status_code == 200


@attack(
    "web page",
    guard="site_agent.inbox.guard:_require_own_page",
    without="a page of another site decides on studies in the staff's name",
    stops="The form comes from another page",
    instead=nothing,
)
def form_of_another_page(stage: Stage) -> bool:
    """Sends a form in an old browser, which adds the cookie and does not say who asks."""
    visitor = Visitor(_received(stage)).enter()
    return _sent(stage, visitor, {"Origin": "https://evil.example"}, before="")


@attack(
    "web page",
    guard="site_agent.inbox.guard:_require_host",
    without="a page of another site reads the pages of the inbox as its own",
    stops="This address is not served here",
    instead=nothing,
)
def name_pointed_at_this_machine(stage: Stage) -> bool:
    """Points its own name at the loopback address, where the browser takes it for one site."""
    visitor = Visitor(_received(stage)).enter()
    answer = visitor.get(host=f"evil.example:{visitor.door.port}")
    stage.said.append(answer.text)
    return answer.status_code == 200


def _once(real: Callable[[Door], str]) -> Callable[[Door], str]:
    return lambda door: real(door) if not door._token else ""


@attack(
    "local user",
    guard="site_agent.inbox.guard:Door.renew",
    without="whoever reads a browser's history or a terminal's lines can decide",
    stops="Each address with a token works once",
    instead=_once,
)
def address_that_was_used(stage: Stage) -> bool:
    """Opens an address that the staff opened before, from a history or a terminal."""
    visitor = Visitor(_received(stage))
    address = visitor.addresses[0]
    visitor.enter()
    visitor.client.cookies.clear()
    answer = visitor.client.get(address)
    stage.said.append(answer.text)
    return visitor.get().status_code == 200


@attack(
    "local user",
    guard="site_agent.inbox.guard:_require_writable",
    without="a colleague who may only watch decides on studies",
    stops="This inbox is read-only",
    instead=nothing,
)
def form_of_a_watcher(stage: Stage) -> bool:
    """Sends a form to a read-only inbox, with the cookie and the token of an own session."""
    folder = _received(stage)
    visitor = Visitor(folder, read_only=True).enter()
    own = {"Origin": visitor.door.origin}
    _sent(stage, visitor, own, token=visitor.token, before="")
    return (folder / NOTES).exists()


@attack(
    "local user",
    guard="site_agent.inbox.connections:InboxConnection._make_room",
    without="the inbox has no file left for the staff's browser, and fills its log",
    stops="",
    instead=nothing,
)
def connections_without_a_request(stage: Stage) -> bool:
    """Opens more connections than a program may have open, and sends nothing."""
    listening = server._socket(0)
    port = int(listening.getsockname()[1])
    running = server._Server(
        server.server_settings(Guard(PlainTextResponse("here"), Door(port, stage.said.append)))
    )
    thread = threading.Thread(target=lambda: running.run(sockets=[listening]))
    thread.start()
    most = connections.MOST_CONNECTIONS
    with contextlib.ExitStack() as stack:
        for _ in range(most + 100):
            stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as mine:
            mine.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            stage.said.append(mine.recv(100).decode())
            still_open = len(running.server_state.connections)
    running.should_exit = True
    thread.join(PATIENCE)
    return still_open > most


def _bare(real: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *packages: real(*packages).overlay(autoescape=False)


@attack(
    "file giver",
    guard="site_agent.inbox.office:page_environment",
    without="the title of a study writes the page on which the staff decide",
    stops="",
    instead=_bare,
)
def title_that_is_a_script(stage: Stage) -> bool:
    """Sends a signed study whose title is a script."""
    visitor = Visitor(_received(stage, f"title: {_SCRIPT!r}\n{PLAIN}")).enter()
    return any(_SCRIPT in visitor.get(path).text for path in ("", visitor.study()))


@attack(
    "file giver",
    guard="site_agent.approval.offers:_require_printable",
    without="a command that the staff copy from the page runs another one in their terminal",
    stops="the name of a study's file or folder must have printable characters only",
    instead=nothing,
)
def name_that_acts_in_a_terminal(stage: Stage) -> bool:
    """Sends a signed study whose file name ends the line of a terminal and begins another."""
    folder = _received(stage)
    (given,) = read_offers(SiteFolder.open(folder))
    evil = given.path.with_name("a\x03touch x\r.yaml")
    shutil.move(given.path, evil)
    shutil.move(f"{given.path}.sig", f"{evil}.sig")
    (offer,) = read_offers(SiteFolder.open(folder))
    stage.said.append(offer.trouble)
    return offer.is_waiting and not offer.command(folder).isprintable()


def _whatever_is_there(_real: object) -> Callable[..., Any]:
    return lambda folder, offer, _shown, watch: study_pages.inspect(
        folder, offer.path, offer.roster, watch
    )


@attack(
    "file giver",
    guard="site_agent.inbox.study_pages:_inspect_shown",
    without="the staff approve another study than the one whose request they read",
    stops="The site or the study has changed since the page was shown",
    instead=_whatever_is_there,
)
def study_exchanged_during_its_check(stage: Stage) -> bool:
    """Exchanges a study in a shared folder while it is checked, and then exchanges it back."""
    place, known = papers(stage.root / "place")
    give_scans(place)
    folder = receive_study(place)
    place.files.study.write_text(PLAIN.replace("epsilon: 8", "epsilon: 9"))
    publish(place, known)
    inspect = study_pages.inspect
    visitor = Visitor(folder).enter()
    try:
        study_pages.inspect = lambda site, _, roster, watch: inspect(
            site, place.files.study, roster, watch
        )
        study = visitor.check()
    finally:
        study_pages.inspect = inspect
    page = visitor.get(study).text
    stage.said.append(page)
    if f"{study}/confirm" not in page:
        return False
    visitor.post(f"{study}/approve", runs="1", shown=visitor.shown(study))
    found = approvals(folder, load_identity(folder))
    return "ε ≤ 8 at" in page and [each.study.privacy.epsilon for each in found] == [9]


def _any_file(_real: object) -> Callable[[Path], Path]:
    return lambda path: path


@attack(
    "file giver",
    guard="consortium.membership.signed_study:regular",
    without="no page that lists the studies is ever answered",
    stops="is not a regular file",
    instead=_any_file,
)
def pipe_as_a_mask(stage: Stage) -> bool:
    """Sends a signed study whose mask is a pipe, which is opened for ever."""
    place, known = papers(stage.root / "place")
    mask = place.files.study.with_name("mask.nii.gz")
    mask.write_bytes(b"a mask")
    place.files.study.write_text(PLAIN.replace("data: {", f"data: {{mask: {mask.name}, "))
    publish(place, known)
    mask.unlink()
    os.mkfifo(mask)

    def read() -> None:
        try:
            read_signed(place.files.study, known)
        except ConsortiumError as error:
            stage.said.append(str(error))

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    reader.join(1)
    waits = reader.is_alive()
    if waits:
        mask.open("wb").close()
        reader.join(PATIENCE)
    return waits
