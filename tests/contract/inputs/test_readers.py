"""Every function that opens a hospital's file has a row of kinds, and each kind a test."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
HERE = Path(__file__).parent
ROOMS = ("site_agent/data", "site_agent/images", "site_agent/eeg", "consortium/space")
OPENERS = {
    *("open_table", "text_of", "open_image", "load_nifti", "load_gifti", "regular"),
    *("memmap", "scandir", "opened_raw", "read_bytes", "read_text"),
}
"""Calls that read from a disk; so does the method ``open``."""
KINDS = {
    "table": ("test_tables.py", "rows of another width, quotes, encodings, header cells"),
    "label": ("test_labels.py", "spellings of a participant's label"),
    "recording": ("test_eeg.py", "breaks, two sources of one fact, units, near misses"),
    "image": ("test_images.py", "choice among files, times, orientation, near misses, damage"),
    "coverage": ("test_coverage.py", "absent values"),
    "advice": ("test_advice.py", "remedies of messages"),
    "public": ("test_images.py", "masks, atlases and templates of a study, which all compare"),
    "cache": ("../../unit/site_agent/data/test_cache.py", "the site's own prepared blocks"),
}
"""File of tests and contents, by kind of input."""
READERS: dict[str, tuple[str, ...]] = {
    "consortium/space/atlas:read_image": ("public",),
    "consortium/space/atlas:read_names": ("table",),
    "consortium/space/atlas:read_parcellation": ("public",),
    "consortium/space/grid:_brain": ("public",),
    "consortium/space/grid:mask_grid": ("public",),
    "consortium/space/grid:template_grid": ("public",),
    "consortium/space/mesh:_cortex": ("public",),
    "consortium/space/mesh:open_gifti": ("public", "image"),
    "consortium/space/mesh:read_sides": ("public",),
    "consortium/space/nifti:load_nifti": ("image", "public"),
    "consortium/space/nifti:open_image": ("image", "public"),
    "consortium/space/open_cohort:_content": ("public", "table"),
    "consortium/space/templates:_of_gifti": ("public",),
    "consortium/space/templates:read_dense": ("public",),
    "site_agent/data/cache:_read": ("cache",),
    "site_agent/data/cache:_stored_digest": ("cache",),
    "site_agent/data/cache:_stored_header": ("cache",),
    "site_agent/data/doubts:_description_of": ("table",),
    "site_agent/data/folders:_list": ("image", "recording"),
    "site_agent/data/folders:_top": ("image", "label"),
    "site_agent/data/personal:_lines": ("table",),
    "site_agent/data/personal:_parcels": ("image",),
    "site_agent/data/table_summary:_row_names_clause": ("table",),
    "site_agent/data/table_summary:table_problems": ("table",),
    "site_agent/data/tsv:_sessions": ("table", "label"),
    "site_agent/data/tsv:column_names": ("table",),
    "site_agent/data/tsv:given_in": ("table", "label"),
    "site_agent/data/tsv:read_lines": ("table",),
    "site_agent/data/tsv:rows_or_errors": ("table", "label", "advice"),
    "site_agent/eeg/edf_clock:_texts": ("recording",),
    "site_agent/eeg/edf_clock:edf_layout": ("recording",),
    "site_agent/eeg/native_checks:_brainvision_size": ("recording",),
    "site_agent/eeg/native_checks:check_matlab": ("recording",),
    "site_agent/eeg/native_checks:check_parts": ("recording",),
    "site_agent/eeg/sidecar:_complete": ("recording",),
    "site_agent/eeg/sidecar:read_sidecar": ("recording",),
    "site_agent/images/copies:_head": ("image",),
    "site_agent/images/copies:_whole": ("image",),
    "site_agent/images/nifti:_mapped": ("image", "coverage"),
    "site_agent/images/nifti:_open": ("image",),
    "site_agent/images/nifti:open_nifti": ("image", "coverage"),
    "site_agent/images/preprocess:scratch_space": ("cache",),
    "site_agent/images/repetition:read_metadata": ("image",),
    "site_agent/images/surfaces:_gifti_count": ("image",),
    "site_agent/images/surfaces:_gifti_maps": ("image",),
    "site_agent/images/surfaces:_open_courses": ("image",),
    "site_agent/images/surfaces:_overlay": ("image",),
    "site_agent/images/surfaces:_read_cifti": ("image",),
    "site_agent/images/surfaces:_read_side": ("image",),
}
"""Kinds of each reader."""


def openers(path: Path) -> Iterator[str]:
    """Names of a module's functions that open a file themselves."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.FunctionDef):
            continue
        calls = [n.func for n in ast.walk(node) if isinstance(n, ast.Call)]
        names = {getattr(call, "attr", getattr(call, "id", "")) for call in calls}
        opens = any(isinstance(call, ast.Attribute) and call.attr == "open" for call in calls)
        if names & OPENERS or opens:
            yield node.name


def readers() -> list[str]:
    """Every such function, as ``module:function``."""
    return sorted(
        f"{path.relative_to(ROOT).with_suffix('').as_posix()}:{name}"
        for room in ROOMS
        for path in (ROOT / room).rglob("*.py")
        for name in openers(path)
    )


@pytest.mark.parametrize("reader", readers())
def test_every_reader_has_a_row_of_kinds(reader: str) -> None:
    """A new function that opens a file has to state which kinds of unkind input it meets."""
    assert READERS.get(reader), f"{reader}: name its kinds in READERS, and test them"


def test_the_table_has_no_reader_that_is_gone() -> None:
    assert sorted(READERS) == readers()
    assert {kind for kinds in READERS.values() for kind in kinds} == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_tests(kind: str) -> None:
    file, _ = KINDS[kind]
    assert len(re.findall(r"(?m)^def test_", (HERE / file).read_text())) > 3
