"""Search mode finds what questions ask for (benchmarks/questions/)."""

import pytest

from benchmarks import tool_search
from gateway.tool_search.index import ToolIndex

RECALL, BLIND = 0.95, 0.94


@pytest.mark.long
def test_a_right_tool_is_among_the_first_five() -> None:
    toolset = tool_search.published(2_000)
    index = ToolIndex(toolset, toolset.by_exposed)
    asked = tool_search.questions()
    chinese = [one for one in asked if tool_search.is_chinese(one)]
    blind = [one for one in asked if one.get("blind")]

    assert (len(asked), len(chinese), len(blind)) == (300, 100, 150)
    assert tool_search.recall(index, asked) >= RECALL
    assert tool_search.recall(index, chinese) >= RECALL
    assert tool_search.recall(index, blind) >= BLIND
