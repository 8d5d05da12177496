"""Two results compared in Python."""

import pandas as pd
import pytest

import consortium as cc
from consortium.errors import OutputError
from tests.support.finished_run import finished


def test_two_folders_and_two_results_are_compared_alike() -> None:
    out = finished().out
    result = cc.open_result(out)
    of_folders, of_results = cc.compare(out, str(out)), cc.compare(result, result)
    assert len(of_folders.components) == sum(result.found_)
    assert of_folders.components["correlation"].to_numpy() == pytest.approx(1.0)
    pd.testing.assert_frame_equal(of_folders.components, of_results.components, rtol=1e-5)
    assert repr(of_folders) == " ".join(of_folders.sentences)
    with pytest.raises(OutputError):
        cc.compare("nowhere", out)
