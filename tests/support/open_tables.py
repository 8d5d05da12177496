"""Tables of open cohorts: a usual one, and those of a hostile coordinator."""

import numpy as np

from consortium.algorithms.open_cohort import OpenTable

PERSONS = 60


def make_table(columns, levels=(), *, seed=8):
    """Make a table with these columns, which follow the last one.

    Columns of ``levels`` have the cells 'no' and 'yes'.
    """
    generator = np.random.default_rng(seed)
    values = generator.uniform(-0.5, 0.5, (PERSONS, len(columns)))
    values += 0.3 * values[:, -1:]
    return _table(columns, levels, values)


def hostile_tables(columns, outcomes, levels=()):
    """Return six tables by name; the first columns are outcomes."""
    generator = np.random.default_rng(9)
    usual = generator.uniform(-1, 1, (PERSONS, len(columns)))
    steep, huge, beyond, flat, same = (usual.copy() for _ in range(5))
    steep[:, :outcomes] += 1e9 * usual[:, outcomes:].sum(axis=1, keepdims=True)
    huge *= 10.0 ** generator.uniform(-11, 11, len(columns))
    beyond *= 10.0 ** generator.choice([-100.0, 100.0], len(columns))
    flat[:, outcomes:] = 0.25
    same[:, :outcomes] = usual[:, :1]
    same[:, outcomes:] = usual[:, -1:]
    found = {
        "steep": steep,
        "huge": huge,
        "beyond": beyond,
        "constant": flat,
        "duplicated": same,
    }
    tables = {name: _table(columns, levels, values) for name, values in found.items()}
    gaps = np.where(generator.random(usual.shape) < 0.05, np.nan, usual)
    return tables | {"missing": _table(columns, levels, gaps)}


def _table(columns, levels, values):
    cells = [
        tuple(
            ("yes" if value > 0 else "no") if name in levels else repr(value)
            for name, value in zip(columns, row, strict=True)
        )
        for row in values.tolist()
    ]
    return OpenTable(tuple(columns), tuple(cells), "0" * 64)
