"""Names, kinds and limits of the messages on the exchange, in one place for centre and sites."""

from dataclasses import dataclass

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

ANNOUNCEMENT, LOADING, PRESENT, START = "announcement", "loading", "present", "start"
QUERY, REFUSAL, END = "query", "refusal", "end"
CLOSING, ATTESTATION, PUBLISHED = "closing", "attestation", "published"
MOST_ANNOUNCEMENT = 2 << 20
MOST_NOTICE = 64 << 10


@dataclass(frozen=True)
class Names:
    """Where a run's messages lie on the exchange."""

    run: str

    def study(self) -> str:
        """The centre's announcement."""
        return f"runs/{self.run}/study"

    def loading(self, site: str | None = None) -> str:
        """A site's word that it is loading its data, or where such words lie."""
        return f"runs/{self.run}/loading" + (f"/{site}" if site else "")

    def present(self, site: str) -> str:
        """A site's word that it is there, with its data loaded."""
        return f"runs/{self.run}/present/{site}"

    def start(self) -> str:
        """The centre's word which sites the run starts with."""
        return f"runs/{self.run}/start"

    def setup(self, kind: str, site: str | None = None) -> str:
        """A set-up message: of a site, or a bundle of the centre."""
        return f"runs/{self.run}/{kind}" + (f"/{site}" if site else "")

    def round(self, number: int, kind: str, site: str | None = None) -> str:
        """A message of a round."""
        return f"runs/{self.run}/{number:05d}/{kind}" + (f"/{site}" if site else "")

    def array(self, digest: str) -> str:
        """A public array."""
        return f"runs/{self.run}/public/{digest}"

    def refusals(self) -> str:
        """Where refusals lie."""
        return f"runs/{self.run}/refusal"

    def refusal(self, site: str) -> str:
        """Why a site takes no further part."""
        return f"runs/{self.run}/refusal/{site}"

    def closing(self) -> str:
        """The centre's list of all that it released."""
        return f"runs/{self.run}/closing"

    def attestation(self, site: str) -> str:
        """What a site found when it checked the rounds."""
        return f"runs/{self.run}/attestation/{site}"

    def end(self) -> str:
        """The centre's last word."""
        return f"runs/{self.run}/end"


def run_secret(root: bytes, run: str, purpose: str) -> bytes:
    """32 secret bytes of a run, from a party's long-term secret (HKDF-SHA256, RFC 5869)."""
    info = f"consortium {purpose} 1|{run}".encode()
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=info).derive(root)
