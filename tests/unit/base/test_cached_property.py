"""A value of one data set is worked out once, and holds no other data set up."""

import threading

from consortium.base.cached_property import cached_property


class Headers:
    def __init__(self, disk=None):
        self.disk, self.asked = disk, 0

    @cached_property
    def lengths(self):
        """Of all scans."""
        self.asked += 1
        if self.disk is not None:
            assert self.disk.wait(30)
        return (24, 25)


def test_it_is_worked_out_once():
    headers = Headers()
    assert headers.lengths == headers.lengths == (24, 25)
    assert headers.asked == 1
    assert Headers.__dict__["lengths"].__doc__ == "Of all scans."


def test_one_on_a_slow_disk_holds_no_other_up():
    disk = threading.Event()
    slow, quick = Headers(disk), Headers()
    thread = threading.Thread(target=lambda: slow.lengths)
    thread.start()
    try:
        done = threading.Thread(target=lambda: quick.lengths, daemon=True)
        done.start()
        done.join(30)
        assert quick.asked == 1
        assert not done.is_alive()
    finally:
        disk.set()
        thread.join()
    assert slow.lengths == (24, 25)
