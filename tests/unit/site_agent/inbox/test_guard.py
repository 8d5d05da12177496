"""Admission to the inbox: one host, one secret folder, one-time tokens, and own forms only."""

import asyncio
import hmac
import re
from typing import Any

import pytest

from consortium.coordinator.demo.prepare import DemoFolders
from site_agent.inbox import guard as guard_module
from site_agent.inbox import study_pages
from site_agent.inbox.application import _FORMS
from site_agent.inbox.guard import _FORM_TYPE, HEADERS, Door, Guard
from tests.support.inbox_client import PORT, Client, Visitor, receive_study
from tests.support.membership_files import papers


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> DemoFolders:
    found, _ = papers(tmp_path_factory.mktemp("town"))
    receive_study(found)
    return found


@pytest.fixture
def visitor(place: DemoFolders) -> Visitor:
    return Visitor(place.site("east")).enter()


def test_a_printed_address_opens_one_session_and_the_next_one_is_printed(
    place: DemoFolders,
) -> None:
    visitor = Visitor(place.site("east"))
    address = visitor.addresses[-1]
    assert visitor.get().status_code == 401
    first = visitor.client.get(address)
    (cookie,) = first.headers.get_list("set-cookie")
    assert f"Path={visitor.door.base}" in cookie
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert visitor.get().status_code == 200
    assert len(visitor.addresses) == 2
    other = Visitor(place.site("east"))
    other.door = visitor.door
    other.client = Client(visitor.client.app, visitor.door.origin)
    assert other.client.get(address).status_code == 403  # it is spent
    assert other.get().status_code == 401
    assert other.client.get(visitor.addresses[-1]).status_code == 200
    assert visitor.get().status_code == other.get().status_code == 200


def test_a_cookie_of_another_program_closes_no_session(visitor: Visitor) -> None:
    own = f"{visitor.door.cookie}={visitor.client.cookies[visitor.door.cookie]}"
    evil = f"{visitor.door.cookie}=evil"
    visitor.client.cookies.clear()
    for cookie in (own, f"{own}; {evil}", f"{evil}; {own}", f"a=b;{evil};{own};c"):
        assert visitor.get(cookie=cookie).status_code == 200, cookie
    for cookie in ("", evil, f"x{own}", own[:-1], own.replace("=", "==")):
        assert visitor.get(cookie=cookie).status_code == 401, cookie


def test_tokens_are_long_and_compared_in_constant_time(
    place: DemoFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    visitor = Visitor(place.site("east"))
    token = visitor.addresses[-1].split("token=")[1]
    assert len(token) == 43  # 256 bits
    assert len(visitor.door.base.strip("/")) == 32  # 128 bits
    compared: list[tuple[bytes, bytes]] = []
    in_constant_time = hmac.compare_digest

    def compare(left: bytes, right: bytes) -> bool:
        compared.append((left, right))
        return in_constant_time(left, right)

    monkeypatch.setattr(guard_module.hmac, "compare_digest", compare)
    for guess in (token[:-1], token[:-1] + "!", "", "é", f"{token}&token={token}"):
        assert visitor.get(f"?token={guess}").status_code == 403, guess
    assert (token[:-1].encode(), token.encode()) in compared
    assert len({Visitor(place.site("east")).addresses[-1] for _ in range(20)}) == 20
    assert visitor.client.get(visitor.addresses[-1]).status_code == 200  # guesses spend nothing


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        f"evil.example:{PORT}",
        "127.0.0.1",
        f"localhost:{PORT}",
        f"127.0.0.1:{PORT + 1}",
        f"127.0.0.1.evil.example:{PORT}",
        f"127.0.0.1.:{PORT}",
        f"127.0.0.1:0{PORT}",
        f"127.1:{PORT}",
        f"2130706433:{PORT}",
        f"0.0.0.0:{PORT}",
        f"[::1]:{PORT}",
        f"[::ffff:127.0.0.1]:{PORT}",
        f"user@127.0.0.1:{PORT}",
        "",
    ],
)
def test_a_name_that_was_pointed_at_this_machine_is_not_served(visitor: Visitor, host: str) -> None:
    assert visitor.get(host=host).status_code == 421
    address = visitor.addresses[-1]
    assert visitor.client.get(address, headers={"host": host}).status_code == 421
    assert visitor.client.get(address).status_code == 200  # the token was not spent


def test_nothing_is_there_without_the_secret_folder(visitor: Visitor) -> None:
    base = visitor.door.base
    for path in ("/", "/style.css", f"/{'0' * 32}/", base[:-1], f"/x{base}", f"{base}budget/"):
        answer = visitor.client.get(path)
        assert (answer.status_code, answer.history) == (404, []), path
    assert visitor.get("nothing").status_code == 404
    assert visitor.get("study/../../../etc/passwd").status_code == 404


ORIGINS = {
    "missing": {},
    "null": {"Origin": "null"},
    "foreign": {"Origin": "https://evil.example"},
    "other port": {"Origin": f"http://127.0.0.1:{PORT + 1}"},
    "longer": {"Origin": f"http://127.0.0.1:{PORT}.evil.example"},
    "other scheme": {"Origin": f"https://127.0.0.1:{PORT}"},
    "cross-site": {"Origin": f"http://127.0.0.1:{PORT}", "Sec-Fetch-Site": "cross-site"},
    "same-site": {"Origin": f"http://127.0.0.1:{PORT}", "Sec-Fetch-Site": "same-site"},
}


@pytest.mark.parametrize("headers", ORIGINS.values(), ids=ORIGINS)
def test_a_form_of_another_page_changes_nothing(
    visitor: Visitor, place: DemoFolders, headers: dict[str, str]
) -> None:
    path = f"{visitor.door.base}{visitor.study()}/note"
    fields = {"token": visitor.token, "note": "of another page"}
    assert visitor.client.post(path, data=fields, headers=headers).status_code == 403
    assert not (place.site("east") / "notes.json").exists()


@pytest.mark.parametrize("path", _FORMS)
def test_every_form_requires_the_token_of_its_session(
    visitor: Visitor, place: DemoFolders, path: str
) -> None:
    address = visitor.door.base + path.format(ident=visitor.study()[6:], study="small")
    own = {"Origin": visitor.door.origin}
    other = Visitor(place.site("east")).enter()
    for fields in (
        {"x": "1"},
        {"token": ""},
        {"token": visitor.token[:-1]},
        {"token": other.token},
    ):
        assert visitor.client.post(address, data=fields, headers=own).status_code == 403, fields
    twice = f"token={visitor.token}&token={visitor.token}"
    plain = {**own, "Content-Type": "application/x-www-form-urlencoded"}
    assert visitor.client.post(address, content=twice, headers=plain).status_code == 403
    visitor.client.cookies.clear()
    assert visitor.client.post(address, data={}, headers=own).status_code == 401


def test_only_short_forms_are_read(visitor: Visitor) -> None:
    address = f"{visitor.door.base}{visitor.study()}/note"
    own = {"Origin": visitor.door.origin}
    form = {**own, "Content-Type": "application/x-www-form-urlencoded"}
    json = {**own, "Content-Type": "text/plain"}
    post = visitor.client.post
    assert post(address, content=b"{}", headers=json).status_code == 415
    assert post(address, content=b"a=" + b"b" * (1 << 16), headers=form).status_code == 413
    assert post(address, content=b"\xff=1", headers=form).status_code == 400
    assert post(address, content=b"a=1&" * 100, headers=form).status_code == 400
    assert visitor.client.request("PUT", address, headers=own).status_code == 405
    assert visitor.client.request("OPTIONS", address, headers=own).status_code == 405


ASKED = "withdraw/small", "decline"
"""Ends of the addresses of forms that also show the question."""


def test_a_form_whose_sender_leaves_is_refused_without_a_fault(visitor: Visitor) -> None:
    sent: list[Any] = []
    cookie = f"{visitor.door.cookie}={visitor.client.cookies[visitor.door.cookie]}"
    headers = {"host": f"127.0.0.1:{PORT}", "cookie": cookie, "content-type": _FORM_TYPE}
    scope = {
        "type": "http",
        "method": "POST",
        "path": f"{visitor.door.base}names/set",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(visitor.client.app(scope, receive, send))
    assert sent[0]["status"] == 400


def test_no_page_changes_anything_when_it_is_asked_for(visitor: Visitor) -> None:
    forms = visitor.forms(ident=visitor.study()[6:], study="small")
    assert len(forms) == len(_FORMS)
    for path in forms:
        if not path.endswith(ASKED):
            assert visitor.get(path).status_code == 405, path
            assert visitor.client.request("HEAD", visitor.door.base + path).status_code == 405


def test_a_link_of_another_page_shows_nothing(visitor: Visitor) -> None:
    assert visitor.get(**{"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert visitor.get(**{"Sec-Fetch-Site": "same-site"}).status_code == 403
    assert visitor.get(**{"Sec-Fetch-Site": "none"}).status_code == 200


def test_every_answer_forbids_scripts_frames_and_copies(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> Any:
        raise ZeroDivisionError("sub-secret")

    answers = [visitor.get(path) for path in ("", "budget", "style.css", "nothing", "study/x")]
    answers += [visitor.get(host="evil.example"), visitor.client.get(visitor.addresses[-1])]
    monkeypatch.setattr(study_pages, "find_offer", fail)
    answers.append(visitor.get("study/x"))
    assert [each.status_code for each in answers] == [200, 200, 200, 404, 409, 421, 200, 500]
    for answer in answers:
        assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS
        assert "sub-secret" not in answer.text
    policy = HEADERS["Content-Security-Policy"]
    assert "script" not in policy  # none is allowed by default-src
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy


def test_old_sessions_end_when_there_are_many(visitor: Visitor) -> None:
    cookie = visitor.client.cookies[visitor.door.cookie]
    for _ in range(20):
        assert visitor.door.session(cookie) is not None
        address = visitor.addresses[-1]
        assert visitor.door.exchange(address.split("token=")[1])
    assert visitor.door.session(cookie) is None


def test_a_websocket_is_not_answered() -> None:
    sent: list[Any] = []

    async def act(*arguments: object) -> None:
        sent.append(arguments)

    guarded = Guard(act, Door(PORT, print))
    asyncio.run(guarded({"type": "websocket"}, act, act))  # type: ignore[arg-type]
    assert sent == []


def test_no_page_has_a_script_a_style_of_its_own_or_a_foreign_address(visitor: Visitor) -> None:
    for path in ("", visitor.study(), "left-out", "names", "budget", "ledger", "agent"):
        text = visitor.get(path).text
        assert not re.search(r"<script|<style| style=| on[a-z]+=|javascript:", text), path
        for target in re.findall(r'(?:href|src|action)="([^"]*)"', text):
            assert target.startswith(("#", "data:", visitor.door.base)), target
