"""BLAS on one thread, in every library that has one."""

from __future__ import annotations

from threadpoolctl import threadpool_info

from consortium.kernels.one_thread import one_thread


def test_every_blas_has_one_thread_from_then_on() -> None:
    said = one_thread()
    blas = [each for each in threadpool_info() if each["user_api"] == "blas"]
    assert {each["num_threads"] for each in blas} == {1}
    assert all(str(each["version"]) in said for each in blas)
