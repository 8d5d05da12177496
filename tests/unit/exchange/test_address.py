"""What a user may write for a place, and what a credentials file may hold."""

import sys
from pathlib import Path

import pytest
from pydantic import BaseModel

from consortium.base.frozen_model import field_texts
from consortium.errors import ConfigurationError
from consortium.exchange import DirectoryExchange, open_exchange
from consortium.exchange.credentials import S3Credentials, SftpCredentials, load_credentials
from tests.support.exchange_servers import private

SECRET = "open-sesame"
PLACES = {
    "http://host/path": "got 'http:'",
    "s3a://bucket/x": "got 's3a:'",
    "s3://bucket/x?versionId=1": "address must be",
    "s3://": "s3://bucket/prefix",
    "s3://Bucket_/x": "s3://bucket/prefix",
    "s3://bucket/../other": "s3://bucket/prefix",
    "s3://bucket/.hidden": "s3://bucket/prefix",
    "s3://bucket//x": "s3://bucket/prefix",
    "sftp://host/path": "sftp://user@host",
    "sftp://user@host": "sftp://user@host",
    "sftp://user@host/": "sftp://user@host",
    "sftp://user@host/a/../b": "sftp://user@host",
    "sftp://user@host:99999/a": "has another form",
    "sftp://user@host:port/a": "has another form",
    "sftp://[user@host/a": "has another form",
    "sftp://user@host/path": "requires a credentials file",
    "file://host/path": "file:///path",
    "file://": "file:///path",
    f"s3://key:{SECRET}@bucket/x": "must not contain a password",
    f"sftp://user:{SECRET}@host/x": "must not contain a password",
}


@pytest.mark.parametrize("place", PLACES)
def test_a_wrong_address_is_told(place: str) -> None:
    with pytest.raises(ConfigurationError, match=PLACES[place]) as caught:
        open_exchange(place)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("form", [str, Path, lambda path: f"file://{path}", lambda p: p.as_uri()])
def test_a_directory_has_many_names(form, tmp_path: Path) -> None:
    (tmp_path / "a place").mkdir()
    exchange = open_exchange(form(tmp_path / "a place"))
    assert isinstance(exchange, DirectoryExchange)
    exchange.put("a", b"1")
    assert (tmp_path / "a place" / "a").read_bytes() == b"1"


@pytest.mark.parametrize(
    ("place", "package", "extra"),
    [
        ("s3://bucket/x", "aiobotocore", "s3"),
        ("sftp://user@host/x", "paramiko", "sftp"),
    ],
)
def test_what_is_not_installed_is_told(
    place: str, package: str, extra: str, monkeypatch, tmp_path: Path
) -> None:
    for name in [name for name in sys.modules if name.startswith("consortium.exchange.")]:
        monkeypatch.delitem(sys.modules, name, raising=False)
    for name in [package, *(name for name in sys.modules if name.startswith(f"{package}."))]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(
        ConfigurationError, match=rf"requirements-all.txt.*pip install .*\[{extra}\]"
    ):
        open_exchange(place, private(tmp_path / "entry", "{}"))


def test_a_directory_needs_neither_package() -> None:
    import subprocess

    code = "import sys, consortium.exchange; print({'aiobotocore', 'paramiko'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"


@pytest.mark.parametrize("model", [S3Credentials, SftpCredentials])
def test_every_field_is_described(model: type[BaseModel]) -> None:
    assert all(field_texts(model).values())


S3_FILES = {
    f"secret: {SECRET}": "belong together",
    f"{{key: k, secret: {SECRET}, sekret: x}}": "field 'sekret'",
    f"{{key: k, secret: [{SECRET}]}}": "secret must be text",
    "endpoint: ftp://host": "endpoint must be text",
    f"endpoint: https://key:{SECRET}@host": "endpoint must be text",
    "region: here & there": "region must be text",
    "ca_bundle: no/such.pem": "no/such.pem is not a file",
    f"just {SECRET}": "The fields are",
    f"{{key: {SECRET}": "is not YAML",
    "": "The fields are",
}


@pytest.mark.parametrize("text", S3_FILES)
def test_a_wrong_credentials_file_is_told_but_not_quoted(text: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=S3_FILES[text]) as caught:
        load_credentials(private(tmp_path / "entry.yaml", text), S3Credentials)
    assert SECRET not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{key_file: k, password: p, known_hosts: h}", "either 'key_file' or 'password'"),
        ("{known_hosts: h}", "either 'key_file' or 'password'"),
        ("{password: p, passphrase: q, known_hosts: h}", "'passphrase' belongs to a 'key_file'"),
        ("{key_file: k}", "field 'known_hosts'"),
        ("{key_file: nowhere, known_hosts: h}", "nowhere is not a file"),
    ],
)
def test_an_sftp_login_has_one_way_in(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "h").touch()
    (tmp_path / "k").touch()
    with pytest.raises(ConfigurationError, match=said):
        load_credentials(private(tmp_path / "entry.yaml", text), SftpCredentials)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o610])
def test_a_file_that_others_may_touch_is_refused(mode: int, tmp_path: Path) -> None:
    path = private(tmp_path / "entry.yaml", "region: here")
    assert load_credentials(path, S3Credentials).region == "here"
    path.chmod(mode)
    with pytest.raises(ConfigurationError, match="chmod 600"):
        load_credentials(path, S3Credentials)


def test_paths_are_meant_from_the_file_s_folder(tmp_path: Path) -> None:
    (tmp_path / "hosts").touch()
    text = f"{{known_hosts: hosts, password: {SECRET}}}"
    entry = load_credentials(private(tmp_path / "entry.yaml", text), SftpCredentials)
    assert entry.known_hosts == tmp_path / "hosts"
    assert SECRET not in repr(entry) + str(entry)
    assert entry.password is not None
    assert entry.password.get_secret_value() == SECRET


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="can't be read"):
        load_credentials(tmp_path / "none.yaml", S3Credentials)
