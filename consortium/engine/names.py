"""Names, kinds and limits of the messages on the exchange, in one place for centre and sites."""

from dataclasses import dataclass

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

ANNOUNCEMENT = "announcement"
LOADING = "loading"
PRESENT = "present"
START = "start"
QUERY = "query"
REFUSAL = "refusal"
END = "end"
CLOSING = "closing"
ATTESTATION = "attestation"
PUBLISHED = "published"
MOST_ANNOUNCEMENT = 2 << 20
MOST_NOTICE = 64 << 10


@dataclass(frozen=True)
class Names:
    """Names of a run's messages on the exchange."""

    run: str

    def study(self) -> str:
        """Return the name of the centre's announcement."""
        return f"runs/{self.run}/study"

    def loading(self, site: str | None = None) -> str:
        """Return the name of a site's notice that it loads its data, or of their folder."""
        return f"runs/{self.run}/loading" + (f"/{site}" if site else "")

    def present(self, site: str | None = None) -> str:
        """Return the name of a site's notice that its data are loaded, or of their folder."""
        return f"runs/{self.run}/present" + (f"/{site}" if site else "")

    def start(self) -> str:
        """Return the name of the centre's list of the sites with which the run starts."""
        return f"runs/{self.run}/start"

    def setup(self, kind: str, site: str | None = None) -> str:
        """Return the name of a set-up message of a site, or of a bundle of the centre."""
        return f"runs/{self.run}/{kind}" + (f"/{site}" if site else "")

    def round(self, number: int, kind: str, site: str | None = None) -> str:
        """Return the name of a message of a round."""
        return f"runs/{self.run}/{number:05d}/{kind}" + (f"/{site}" if site else "")

    def array(self, digest: str) -> str:
        """Return the name of a public array."""
        return f"runs/{self.run}/public/{digest}"

    def refusals(self) -> str:
        """Return the folder of refusals."""
        return f"runs/{self.run}/refusal"

    def refusal(self, site: str) -> str:
        """Return the name of a site's refusal."""
        return f"runs/{self.run}/refusal/{site}"

    def closing(self) -> str:
        """Return the name of the centre's list of its releases."""
        return f"runs/{self.run}/closing"

    def attestation(self, site: str) -> str:
        """Return the name of a site's attestation."""
        return f"runs/{self.run}/attestation/{site}"

    def end(self) -> str:
        """Return the name of the centre's final message."""
        return f"runs/{self.run}/end"


def run_secret(root: bytes, run: str, purpose: str) -> bytes:
    """Return 32 secret bytes of a run from a party's long-term secret (HKDF-SHA256, RFC 5869)."""
    info = f"consortium {purpose} 1|{run}".encode()
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=info).derive(root)
