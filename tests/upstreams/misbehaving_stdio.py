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

from tests.faults.paper import Paper, arguments_in, count_receipts
from tests.upstreams.misbehaving import BUSY, TOOLS, answer
from tests.upstreams.raw import DISCOVERED

paper = Paper(Path(sys.argv[1]))


def write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def say(id_: Any, **message: Any) -> None:
    write(json.dumps({"jsonrpc": "2.0", "id": id_, **message}) + "\n")


def call(id_: int, do: str, nonce: str, receipt: int) -> None:
    done = json.loads(answer(nonce, receipt))
    match do:
        case "answer":
            say(id_, result=done)
        case "twice":
            say(id_, result=done)
            say(id_, result=json.loads(answer(nonce, receipt, " differently")))
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
                # One process a caller: all of them write on this paper.
                receipt = count_receipts(paper.path)[arguments["nonce"]] + 1
                said = {"tool": message["params"]["name"], "receipt": receipt, "way": "pipe"}
                sent, acted = arguments_in(line.encode()), arguments.get("acts", True)
                paper.write(nonce=arguments["nonce"], arguments=sent, acted=acted, **said)
                call(message["id"], arguments["do"], arguments["nonce"], receipt)


if __name__ == "__main__":
    main()
