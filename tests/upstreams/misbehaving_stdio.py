"""A server on stdio (2026-07-28) that does with each call what its arguments say, good or bad.

    python -m tests.upstreams.misbehaving_stdio PAPER

What it receives it writes down before anything else is done about it.
"""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from tests.faults.paper import Paper
from tests.upstreams.misbehaving import BUSY, TOOLS
from tests.upstreams.raw import DISCOVERED

paper = Paper(Path(sys.argv[1]))


def write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def say(id_: Any, **message: Any) -> None:
    write(json.dumps({"jsonrpc": "2.0", "id": id_, **message}) + "\n")


def done(words: str = "done") -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}]}


def call(id_: int, do: str) -> None:
    match do:
        case "answer":
            say(id_, result=done())
        case "twice":
            say(id_, result=done())
            say(id_, result=done("done differently"))
        case "error":
            say(id_, error={"code": -32050, "message": BUSY})
        case "another":
            say(987654, result=done())
        case "garbage":
            write(f'{{"jsonrpc":"2.0","id":{id_},"result":{{"content":[\n')
        case "half":
            write(f'{{"jsonrpc":"2.0","id":{id_},"result":')
            os._exit(1)
        case "exit":
            os._exit(0)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        match message["method"]:
            case "server/discover":
                say(message["id"], result=json.loads(DISCOVERED))
            case "tools/list":
                say(message["id"], result=json.loads(TOOLS))
            case "tools/call":
                arguments = message["params"]["arguments"]
                written = line.partition('"arguments":')[2].partition(',"_meta"')[0]
                paper.write(nonce=arguments["nonce"], arguments=written)
                call(message["id"], arguments["do"])


if __name__ == "__main__":
    main()
