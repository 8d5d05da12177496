"""``python -m benchmarks.secure_peers PYTHON``: our secure sum and others', in turn.

PYTHON belongs to an environment with the peers: ``uv venv PEERS; uv pip install --python
PEERS/bin/python flwr==1.42.0 tenseal==0.3.18 numpy``. A million numbers of four sites, one thread;
all sites and the centre one after another. Our time is of the whole round, with keys' shares and
messages; Flower's is only of the masking of its SecAgg+, by its own functions; TenSEAL's is CKKS as
NVIDIA FLARE sets it (8192; 60, 40, 40; 2⁴⁰): encrypted, added, decrypted.
"""

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

SITES, ENTRIES, TURNS = 4, 1_000_000, 3


def ours() -> Callable[[], object]:
    """Run a whole round of 16 bits."""
    from benchmarks.secagg import Meeting

    meeting, vector = Meeting(SITES, 1), np.arange(ENTRIES).astype(np.uint16)
    meeting.set_up()
    return lambda: meeting.round(1, vector)


def flower() -> Callable[[], object]:
    """Mask every site's vector with Flower's SecAgg+, and take the self-masks off the sum."""
    from flwr.common.secure_aggregation import ndarrays_arithmetic as arithmetic
    from flwr.common.secure_aggregation.secaggplus_utils import pseudo_rand_gen

    vector = np.arange(ENTRIES, dtype=np.int64)

    def stream(name: str) -> list[np.ndarray]:
        secret = hashlib.sha256(name.encode()).digest()
        return pseudo_rand_gen(secret, 1 << 32, [vector.shape])

    def masks() -> None:
        total = [np.zeros(ENTRIES, dtype=np.int64)]
        for site in range(SITES):
            masked = arithmetic.parameters_addition([vector], stream(f"{site}"))
            for peer in set(range(SITES)) - {site}:
                pair = stream(f"{min(site, peer)} {max(site, peer)}")
                adds = site < peer
                act = arithmetic.parameters_addition if adds else arithmetic.parameters_subtraction
                masked = act(masked, pair)
            masked = arithmetic.parameters_mod(masked, 1 << 32)
            total = arithmetic.parameters_addition(total, masked)
        for site in range(SITES):
            total = arithmetic.parameters_subtraction(total, stream(f"{site}"))
        arithmetic.parameters_mod(total, 1 << 32)

    return masks


def tenseal() -> Callable[[], object]:
    """Encrypt every site's vector, add them, and decrypt the sum."""
    import tenseal as ts

    context = ts.context(ts.SCHEME_TYPE.CKKS, 8192, coeff_mod_bit_sizes=[60, 40, 40], n_threads=1)
    context.global_scale = 2**40
    vector, room = np.arange(ENTRIES) / ENTRIES, 4096

    def summed() -> None:
        for start in range(0, ENTRIES, room):
            part = vector[start : start + room]
            total = ts.ckks_vector(context, part)
            for _ in range(SITES - 1):
                total += ts.ckks_vector(context, part)
            total.decrypt()

    return summed


PARTIES = {"ours": ours, "flower": flower, "tenseal": tenseal}


def main(peers: str) -> None:
    """Print the least processor time of each."""
    least = dict.fromkeys(PARTIES, float("inf"))
    for _ in range(TURNS):
        for name in PARTIES:
            python = sys.executable if name == "ours" else peers
            told = subprocess.run(
                [python, __file__, "--one", name],
                env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path.cwd())},
                check=True,
                capture_output=True,
                text=True,
            )
            least[name] = min(least[name], float(told.stdout))
    for name, seconds in least.items():
        print(f"{name:8} {1e3 * seconds:8.0f} ms  {seconds / least['ours']:6.1f}")


if __name__ == "__main__":
    if sys.argv[1] == "--one":
        act = PARTIES[sys.argv[2]]()
        start = time.process_time()
        act()
        print(time.process_time() - start)
    else:
        main(sys.argv[1])
