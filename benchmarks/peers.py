"""Which peers are installed here, and in which version."""

from importlib.metadata import PackageNotFoundError, version

PEERS = {
    "NumPy": "numpy",
    "SciPy": "scipy",
    "scikit-learn": "scikit-learn",
    "MNE": "mne",
    "nilearn": "nilearn",
    "OpenDP": "opendp",
    "isal": "isal",
}
"""Names of distributions."""


def installed(peer: str) -> str | None:
    """Return the version of a peer, or nothing if it is not installed."""
    try:
        return version(PEERS[peer])
    except PackageNotFoundError:
        return None


def versions() -> str:
    """List all versions, for the page."""
    found = {peer: installed(peer) for peer in PEERS}
    return ", ".join(f"{peer} {number or 'not installed'}" for peer, number in found.items())
