"""A checker adds a round modulo what the plan says, whatever the centre says of its release."""

from consortium.secagg.release import release_message
from tests.attacks.attack_kinds import Stage
from tests.attacks.attacks_on_results import _played


def _cut(total, context, released, bits, *, shown):
    lower = released & released.dtype.type((1 << (bits - 4)) - 1)
    return release_message(total, context, lower, bits - 4, shown=shown)


def test_no_site_attests_a_release_of_fewer_bits_than_the_plan_has(tmp_path):
    stage = Stage(tmp_path)
    shown = _played(
        stage, lambda patch: patch.setattr("consortium.engine.releases.release_message", _cut)
    )
    assert not shown  # a reader finds out
    assert "does not match the sites' signed messages" in "\n".join(
        stage.said
    )  # and so should the sites
