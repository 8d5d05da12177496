"""Arithmetic that comes out the same: BLAS on one thread, and what its last bits depend on."""

from functools import cache
from importlib.metadata import version
from platform import python_version

import numpy as np
import scipy
import scipy.linalg.blas
from threadpoolctl import threadpool_info, threadpool_limits


@cache
def one_thread() -> str:
    """Set BLAS to one thread, and return the versions on which the last bits of results depend.

    The split of a product between threads decides its rounding, and the noise of a site's message
    is bound to its bytes. Worker processes replace threads.

    Returns
    -------
    str
        Versions of the software, and the instructions that BLAS and NumPy were chosen for.
    """
    threadpool_limits(1, user_api="blas")
    known = f"NumPy {np.__version__}, SciPy {scipy.__version__}"  # whose BLAS are loaded by now
    others = ", ".join(f"{name} {version(name)}" for name in ("cape-consortium", "nibabel"))
    software = f"Python {python_version()}, {known}, {others}"
    return ", ".join([software, blas_libraries()])


def blas_libraries() -> str:
    """Return the loaded BLAS, and the instruction sets that they and NumPy were chosen for."""
    blas = {
        f"{each['internal_api']} {each.get('version')} for {each.get('architecture')}"
        for each in threadpool_info()
        if each["user_api"] == "blas"
    }
    vectors = np.show_config(mode="dicts").get("SIMD Extensions", {}).get("found", [])
    return ", ".join([*sorted(blas), f"NumPy for {' '.join(vectors) or 'no vectors'}"])
