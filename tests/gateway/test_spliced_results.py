"""Our members in a server's result: found quickly where servers in wide use write theirs, and
nowhere else than in the result itself."""

import json
from uuid import UUID

import pytest

from gateway.protocol import replies

CALL = UUID(int=7)
CONTENT = '"content":[{"type":"text","text":"3.0"}],"isError":false'
# As servers on the Python SDK write it.
PYTHON = (
    f'{{{CONTENT},"resultType":"complete","structuredContent":{{"result":3.0}},'
    '"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"calculator"}}}'
)
QUICK = [
    PYTHON,
    f'{{{CONTENT},"resultType":"complete"}}',
    f'{{{CONTENT}, "resultType" : "complete", "_meta" : {{ }} }}',
    '{"content":[{"type":"text","text":"\\"resultType\\" }{"}],"resultType":"complete"}',
]
CAREFUL = [
    f'{{{CONTENT},"structuredContent":{{"resultType":"complete"}}}}',
    f'{{{CONTENT},"structuredContent":{{"a":[],"resultType":"complete","_meta":{{}}}}}}',
    '{"content":[{"type":"text","text":"resultType","_meta":{}}],"isError":false}',
    '{"content":[{"type":"text","text":"x","_meta":{}}],"resultType":"complete"}',
    f'{{{CONTENT},"resultType":"complete","structuredContent":{{"_meta":{{}}}}}}',
    f'{{{CONTENT},"resultType":"complete","_meta":null}}',
    f'{{{CONTENT},"result\\u0054ype":"complete"}}',
    f'{{"structuredContent":{{"resultType":"x"}},{CONTENT},"resultType":"complete"}}',
]


@pytest.mark.parametrize(("bodies", "is_quick"), [(QUICK, True), (CAREFUL, False)])
def test_our_members_are_the_results_own(bodies: list[str], is_quick: bool) -> None:
    for body in bodies:
        added = replies.spliced(body.encode(), CALL, modern=True)
        quickly = replies._spliced_at_end(body.encode(), b'"countersign/call":"x"')

        expected = json.loads(body)
        expected.setdefault("resultType", "complete")
        meta = expected.get("_meta", {})
        if meta is not None:
            expected["_meta"] = {**meta, "countersign/call": str(CALL)}
        assert json.loads(added) == expected, body
        assert bool(quickly) == is_quick, body
