"""BLAS on one thread, in every library that has one."""

from threadpoolctl import threadpool_info, threadpool_limits

from consortium.base.one_thread import one_thread


def _threads() -> set[int]:
    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}


def test_every_blas_has_one_thread_from_then_on_whatever_it_had() -> None:
    one_thread()  # which is asked once a process
    with threadpool_limits(2, user_api="blas"):
        assert _threads() == {2}
        said = one_thread.__wrapped__()
        assert _threads() == {1}
    blas = [each for each in threadpool_info() if each["user_api"] == "blas"]
    assert all(str(each["version"]) in said for each in blas)
