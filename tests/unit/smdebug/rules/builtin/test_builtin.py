from __future__ import annotations

import pytest

from smdebug.exceptions import SMDebugValueError
from smdebug.rules.builtin import find_built_in_rule, list_names


def test_every_file_is_a_rule_with_a_documented_source() -> None:
    assert {"ExplodingTensor", "LossNotDecreasing", "VanishingGradient"} <= set(list_names())
    for name in list_names():
        rule = find_built_in_rule(name)
        assert rule.__name__ == name
        assert "Source:" in str(rule.__doc__)


@pytest.mark.parametrize("name", ["Vanishing", "vanishinggradient", "../x", ""])
def test_unknown_rule_lists_the_known(name: str) -> None:
    with pytest.raises(SMDebugValueError, match=r"ExplodingTensor, .*LossNotDecreasing, .*VanishingGradient"):
        find_built_in_rule(name)
