"""The parts of the page. Each is a function of the finished study, and None where it has none."""

from collections.abc import Callable

from consortium.report.finished import Finished
from consortium.report.sections import (
    course,
    files,
    glance,
    images,
    maps,
    methods,
    privacy,
    reading,
    tables,
    verdict,
    views,
)
from consortium.report.sections.base import PageSection

Make = Callable[[Finished], PageSection | None]
SUMMARY: tuple[Make, ...] = (verdict.section,)
FINDINGS: tuple[Make, ...] = (
    glance.section,
    maps.section,
    images.section,
    tables.section,
    views.section,
    files.section,
)
EXPLANATIONS: tuple[Make, ...] = (
    reading.section,
    privacy.section,
    methods.section,
    course.section,
)
