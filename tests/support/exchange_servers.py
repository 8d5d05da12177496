"""Real servers on loopback for the tests of exchanges: moto's S3 and Debian's OpenSSH.

Both can be stopped, frozen and thawed like a server that fails in the middle of a study.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from getpass import getuser
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

SSHD = Path("/usr/sbin/sshd")
SSHD_CONFIG = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/user_key.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
Subsystem sftp internal-sftp
"""


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def private(path: Path, text: str) -> Path:
    """Write a file that only its owner may read."""
    path.touch(mode=0o600)
    path.write_text(text)
    return path


class Server:
    """A process that listens on a port of loopback."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def command(self) -> list[str]:
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        return dict(os.environ)

    def start(self) -> None:
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self.command(), stdout=log, stderr=log, env=self.environment()
            )
        deadline = time.monotonic() + 30
        while self._process.poll() is None and time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                time.sleep(0.02)
            else:
                return
        self.stop()
        pytest.skip(f"{self.command()[0]} does not start: {(self.folder / 'log').read_text()}")

    def pids(self) -> list[int]:
        """Return the process and all below it."""
        assert self._process is not None
        found = [self._process.pid]
        for pid in found:
            for task in Path(f"/proc/{pid}/task").glob("*/children"):
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread's end
                    found += map(int, task.read_text().split())
        return found

    def signal(self, number: int) -> None:
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def freeze(self) -> None:
        self.signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.signal(signal.SIGCONT)

    def stop(self) -> None:
        if self._process is not None:
            if self._process.poll() is None:
                self.signal(signal.SIGKILL)
            self._process.wait()
            self._process = None


class BucketServer(Server):
    """moto's S3 with one user, one bucket, and signatures that are checked."""

    bucket = "consortium"

    def __init__(self, folder: Path, people: tuple[str, ...] = ("site",)) -> None:
        super().__init__(folder)
        self.people = people
        self.keys: dict[str, tuple[str, str]] = {}

    def command(self) -> list[str]:
        return [sys.executable, str(Path(__file__).with_name("bucket_server.py")), str(self.port)]

    def environment(self) -> dict[str, str]:
        return {**os.environ, "INITIAL_NO_AUTH_ACTION_COUNT": str(1 + 3 * len(self.people))}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        import boto3

        super().start()
        # The same keys after every start let a party outlive the server.
        urlopen(Request(f"{self.url}/moto-api/seed?a=1", method="POST")).close()
        known = {
            "endpoint_url": self.url,
            "region_name": "us-east-1",
            "aws_access_key_id": "first",
            "aws_secret_access_key": "first",
        }
        statement = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        people = boto3.client("iam", **known)
        for name in self.people:
            people.create_user(UserName=name)
            people.put_user_policy(UserName=name, PolicyName="all", PolicyDocument=policy)
            made = people.create_access_key(UserName=name)["AccessKey"]
            self.keys[name] = made["AccessKeyId"], made["SecretAccessKey"]
        self.key, self.secret = self.keys[self.people[0]]
        boto3.client("s3", **known).create_bucket(Bucket=self.bucket)

    def credentials(self, folder: Path, **changes: str) -> Path:
        fields = {
            "endpoint": self.url,
            "region": "us-east-1",
            "key": self.key,
            "secret": self.secret,
            **changes,
        }
        return private(folder / "s3.yaml", json.dumps(fields))


class FileServer(Server):
    """OpenSSH's server as the current user, with keys of its own."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        host, _ = self.make_key("host_key"), self.make_key("user_key")
        (folder / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {host}\n")
        (folder / "config").write_text(SSHD_CONFIG.format(port=self.port, folder=folder))
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # as Debian's service does

    def make_key(self, name: str) -> str:
        key, ssh = Ed25519PrivateKey.generate(), serialization
        text = key.private_bytes(
            ssh.Encoding.PEM, ssh.PrivateFormat.OpenSSH, ssh.NoEncryption()
        ).decode()
        private(self.folder / name, text)
        public = key.public_key().public_bytes(ssh.Encoding.OpenSSH, ssh.PublicFormat.OpenSSH)
        (self.folder / f"{name}.pub").write_bytes(public + b"\n")
        return public.decode()

    def command(self) -> list[str]:
        return [str(SSHD), "-D", "-e", "-f", str(self.folder / "config")]

    def place(self, path: Path) -> str:
        return f"sftp://{getuser()}@127.0.0.1:{self.port}{path}"

    def credentials(self, folder: Path, **changes: str) -> Path:
        fields = {
            "known_hosts": str(self.folder / "known_hosts"),
            "key_file": str(self.folder / "user_key"),
            **changes,
        }
        return private(folder / "sftp.yaml", json.dumps(fields))
