"""An MCP server on stdio that does what the name of the called tool says, good or bad.

python on_stdio.py ERA, where ERA is how it begins: modern, legacy, mute, touchy, dead, stubborn,
slow
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

era = sys.argv[1]
written = threading.Lock()
asked: list[str] = []
cancelled: dict[int, threading.Event] = {}


def write(text: str) -> None:
    with written:
        sys.stdout.write(text)
        sys.stdout.flush()


def say(**message: Any) -> None:
    write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")


def text(words: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}]}


def call(id_: int, name: str, params: dict[str, Any], line: str) -> None:
    token = params.get("_meta", {}).get("progressToken")
    stop = cancelled[id_] = threading.Event()
    match name:
        case "echo":
            say(id=id_, result=text(line))
        case "pid":
            say(id=id_, result=text(str(os.getpid())))
        case "environment":
            say(id=id_, result=text(json.dumps(dict(os.environ))))
        case "progress":
            for n in range(3):
                say(method="notifications/progress", params={"progressToken": token, "progress": n})
            say(method="notifications/message", params={"data": "said"})
            say(id=id_, result=text("done"))
        case "nap":
            time.sleep(params["arguments"]["seconds"])
            say(id=id_, result=text("rested"))
        case "until_cancelled":
            stop.wait()
            say(id=id_, error={"code": 0, "message": "Request cancelled"})
        case "ends_well_when_cancelled":
            stop.wait()
            say(id=id_, result=text("too late to stop"))
        case "never":
            stop.wait()
            sys.stderr.write("heard the cancellation\n")
        case "die":
            sys.stderr.write("last words\n")
            sys.stderr.flush()
            os._exit(3)
        case "answer_and_die":
            say(id=id_, result=text("goodbye"))
            os._exit(0)
        case "noise":
            write('listening on port 80\n{"level":"info"}\n\n')
            say(id=999_999, result=text("for nobody"))
            say(id=id_, result=text("after noise"))
            say(id=id_, result=text("again"))
        case "spoilt":
            write(f'{{"jsonrpc":"2.0","id":{id_},"result":{{oops}}}}\n')
        case "huge":
            say(id=id_, result=text("x" * 20_000_000))
        case "huge_and_backwards":
            result = json.dumps(text("x" * 20_000_000))
            write(f'{{"result":{result},"jsonrpc":"2.0","id":{id_}}}\n')
        case "large":
            say(id=id_, result=text("x" * 200_000))
        case "endless":
            with contextlib.suppress(BrokenPipeError):
                while True:
                    write("x" * 1_000_000)
        case "ask":
            say(id="q", method="ping")
            say(id=7, method="roots/list")
            answers.wait_for(2)
            say(id=id_, result=text(json.dumps(answers.got)))
        case "gate":
            gated = {"elicitations": [{"mode": "url", "elicitationId": "e1", "url": "https://a/"}]}
            say(id=id_, error={"code": -32042, "message": "Sign in.", "data": gated})
        case "opened":
            for page in ("e2", "e1", "e1", 7):
                params = {"elicitationId": page}
                say(method="notifications/elicitation/complete", params=params)
            say(id=id_, result=text("seen"))
        case "grandchild":
            child = subprocess.Popen(["sleep", "1000"])
            say(id=id_, result=text(str(child.pid)))
        case "close_output":
            sys.stdout.flush()
            os.close(1)
            time.sleep(1000)
        case "shout":
            sys.stderr.write("a" * 200_000 + "the end")
            sys.stderr.flush()
            say(id=id_, result=text("shouted"))


class Answers:
    def __init__(self) -> None:
        self.got: list[Any] = []
        self._changed = threading.Condition()

    def add(self, message: Any) -> None:
        with self._changed:
            self.got.append(message)
            self._changed.notify_all()

    def wait_for(self, count: int) -> None:
        with self._changed:
            self._changed.wait_for(lambda: len(self.got) >= count)


answers = Answers()


def unknown(id_: int, method: str) -> None:
    if era == "mute":
        return
    if era == "touchy" and method == "server/discover":
        sys.exit(f"unexpected {method}")
    say(id=id_, error={"code": -32602, "message": "Received request before initialization"})


def take(line: str) -> None:
    message = json.loads(line)
    id_, method, params = message.get("id"), message.get("method"), message.get("params", {})
    match method:
        case None:
            answers.add(message)
        case "server/discover" if era == "slow" and not asked:
            # As under load: whoever asked has given up by the time of an answer.
            asked.append(line)
        case "initialize" if era == "slow":
            data = {"supported": ["2026-07-28"], "requested": params["protocolVersion"]}
            error = {"code": -32022, "message": "Unsupported protocol version", "data": data}
            say(id=id_, error=error)
        case "server/discover" if era in ("modern", "slow", "stubborn"):
            found = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
            say(id=id_, result=found)
        case "initialize" if era not in ("modern", "stubborn"):
            info = {"name": "on stdio", "version": "1"}
            opening = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": info}
            say(id=id_, result=opening)
        case "tools/list":
            say(id=id_, result={"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]})
        case "tools/call":
            work = (id_, params["name"], params, line)
            threading.Thread(target=call, args=work, daemon=True).start()
        case "notifications/cancelled":
            cancelled[params["requestId"]].set()
        case str() if id_ is not None:
            unknown(id_, method)


def main() -> None:
    if era == "dead":
        sys.exit("cannot find my configuration")
    if era == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for line in sys.stdin:
        take(line)
    if era == "stubborn":
        time.sleep(1000)


main()
