"""What holds for every test."""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Iterator
from functools import lru_cache, partial
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import settings

from tests.slow_tests import slow_cases, slow_tests

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from xdist.remote import Producer
    from xdist.scheduler import LoadScopeScheduling

# A machine that does something else at the same time is no counterexample.
# A dozen examples a property, others at every run, keep the whole suite within minutes;
# HYPOTHESIS_PROFILE=thorough, with which `make long` repeats all properties, has 200.
settings.register_profile("any-machine", deadline=None, max_examples=12)
settings.register_profile("thorough", deadline=None, max_examples=200)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "any-machine"))

GROUPS = {
    "prefect": r"tests/unit/flows/test_"
    r"(deployment|flow_run|guides|hostile_prefect|no_telemetry|orders|prepare|public|server|stopping)\.py",
    "s3": r"tests/contract/test_exchanges.*(\[s3|bucket|hostile_store)",
    "sftp": r"tests/contract/test_exchanges.*(\[sftp|_sftp_|private_key|silence_at_the_door)",
}
"""Tests that share a server which takes long to start: one worker has them all."""
LONGEST = re.compile(
    r"tests/(?:unit/flows/|contract/test_(?:analyses|exchanges|honesty|sensitivity)"
    r"|end_to_end/test_(?:atlas|lean|mega|site_posterior|surface)"
    r"|unit/algorithms/test_(?:glm|group_ica|levels|pca|template_networks|without_noise)"
    r"|unit/algorithms/template_networks/)"
)
"""Files that begin first, so that no worker has one of them alone at the end."""

ONLY_LONG = re.compile(
    r"tests/(?:"
    # Its parts are tests of the same file, each on its own.
    r"unit/flows/test_hostile_prefect\.py::test_(?:sites_do_their_study|prefects_own_runner)"
    r"|unit/flows/test_hostile_prefect\.py::test_the_coordinators_service.*planted in its flow"
    r"|unit/flows/test_stopping\.py::.*\[2\]"
    r"|unit/site_agent/engines/test_remote\.py::test_work_that_kills_every_worker"
    r"|contract/test_exchanges_operator\.py::test_(?:a_stopped_run|delay_only|no_false_message)"
    r"|contract/test_exchanges_races\.py::test_of_two_writing.*\[s3\]"
    r"|protocol/test_faults\.py::.*(?:paused 30 s|duplicated)"  # `tests.long.faults` has them all
    r"|protocol/test_wrong_input\.py::test_command.*(?:centre, study|agent, approval)"
    r"|end_to_end/test_bids_validator\.py::.*\[group_ica\]"
    r"|contract/test_data_files\.py::test_what_is_no_regular.*-(?:folder|device)\]"
    r"|contract/test_exchanges_trouble\.py::test_a_server_that_dies.*\[s3\]"
    r"|protocol/test_(?:drawn_graph\.py::test_death_at_every|neighbours\.py::test_sites_that_start)"
    r"|unit/secagg/test_graph\.py::test_machines_that_crash"
    r"|unit/study/test_masking\.py::test_a_graph_gives_the_very_release"
    r"|unit/membership/test_consent\.py::test_a_million_names"
    r"|end_to_end/test_python_guide\.py|end_to_end/test_fusion_study\.py::test_private_maps"
    r"|end_to_end/test_feature_study\.py::test_everybody_in_a_private"
    # Group ICA stays; the contract's cases on a mesh are those of the others, too.
    r"|end_to_end/test_surface_series\.py::(?:test_(?:a_hospitals_own|directions|the_files_on_a|networks_of_single)"
    r"|.*\[(?:pca|template_networks)\])"
    # The short form of the benchmark on honesty holds intervals and findings of every analysis.
    r"|unit/algorithms/test_summarize\.py::test_(?:intervals_hold|the_floor_is_passed)"
    r"|unit/algorithms/test_(?:pca\.py::test_captured|coordinate\.py::test_the_noise_of_every)"
    r"|unit/algorithms/test_glm_surface\.py::test_(?:unkind|maps_are_as_far)"
    r"|unit/algorithms/test_template_networks\.py::test_noise_alone"
    r"|unit/algorithms/test_group_ica\.py::test_standard_errors"
    r"|unit/algorithms/test_admm\.py::test_(?:what_the_sites_differ|.*\[path\])"
    r"|unit/algorithms/test_forecasts\.py::test_(?:the_chance_of_a_link|a_classifier_tells)"
    r"|unit/algorithms/test_network\.py::test_(?:the_accuracy|what_no_line_can_tell.*\[cape-1\])"
    r"|unit/algorithms/test_cca\.py::test_(?:an_invertible_map|intervals_hold)"
    # Further draws, processors and processes of the same.
    r"|protocol/test_verify_rounding\.py::.*\[(?:back-(?:group_)?ica|threads(?:-(?:group_)?ica)?)\]"
    r"|unit/flows/test_no_telemetry\.py::.*\[(?:run|deploy)\]"
    r"|unit/flows/test_hostile_prefect\.py::test_the_run_of_an_agent.*\[15\]"
    r"|unit/algorithms/test_levels\.py::test_a_classifier.*\[5\]"
    r"|unit/algorithms/template_networks/kernels/test_template_shrinkage\.py::(?:"
    r"test_intervals_hold_where.*\[0\.0(?:4|5)\]"
    # Each size, noise and agreement stays, in half of their combinations.
    r"|test_it_is_never_worse.*\[(?:250-0\.005|60-0\.04)-)"
    r"|unit/site_agent/engines/test_remote\.py::test_sums_are_equal.*\[timepoint\]"
    r"|protocol/test_faults\.py::test_vectors_sent_openly\[vanished\]"
    r"|unit/algorithms/test_glm_pooled\.py::.*nilearns_second_level\[[2-9]\]"
    r"|unit/coordinator/test_design\.py::test_every_analysis_can_be_designed\[cca-[2-9]\]"
    r")"
)
"""What `make test` leaves to `make long`: it takes seconds, and another test holds most of it."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what only `make ci` or `make long` runs, before tests are chosen by their marks."""
    for item in items:
        if ONLY_LONG.match(item.nodeid):
            item.add_marker(pytest.mark.long)
    tests = (item.nodeid for item in items if not item.get_closest_marker("long"))
    slow = slow_cases(tests, slow_tests())
    for item in items:
        if item.nodeid in slow:
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: LONGEST.match(item.nodeid) is None)


def pytest_collection(session: pytest.Session) -> None:
    """Look for no garbage among what is collected, which stays to the end."""
    gc.disable()


def pytest_collection_finish(session: pytest.Session) -> None:
    # What tests make lives shortly: a search at every 700 objects is a tenth of their time.
    gc.set_threshold(100_000, 20, 100)
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def bulks_are_found_once() -> Iterator[None]:
    """Find the bulk of a spectrum once: hundreds of tests play a run of the same few studies.

    The replays with which it is found begin at a fixed seed, so that what they tell is a function
    of the spectrum.
    """
    from consortium.algorithms.pca import result
    from consortium.algorithms.pca.kernels.bulk import Bulk

    known: dict[tuple[bytes, float, int], Bulk] = {}
    find = result.find_bulk

    def find_once(
        values: NDArray[np.float64], deviation: float, samples: int, generator: np.random.Generator
    ) -> Bulk:
        key = values.tobytes(), deviation, samples
        if key not in known:
            known[key] = find(values, deviation, samples, generator)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(result, "find_bulk", find_once)
        yield


@pytest.fixture(scope="session", autouse=True)
def good_signatures_are_found_good_once() -> Iterator[None]:
    """Check a good signature once: in one process every party checks what all others have signed.

    Whether it is good is a function of key, signature and message; a bad one is checked each time.
    """
    from consortium.secagg import envelope

    true = envelope.Ed25519PublicKey

    @lru_cache(maxsize=1 << 16)
    def check(key: bytes, signature: bytes, message: bytes) -> None:
        true.from_public_bytes(key).verify(signature, message)

    class Key:
        @staticmethod
        def from_public_bytes(key: bytes) -> SimpleNamespace:
            return SimpleNamespace(verify=partial(check, key))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(envelope, "Ed25519PublicKey", Key)
        yield


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """Deal files out whole, since most share what they make, in the order they are collected in.

    The marker ``xdist_group`` would do; pytest 9.2 has no place for what pytest-xdist 3.8 makes of
    it.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            groups = (group for group, ids in GROUPS.items() if re.match(ids, nodeid))
            return next(groups, nodeid.partition("::")[0])

    config.option.loadscopereorder = False
    return ByFile(config, log)
