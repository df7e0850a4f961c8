"""Replaces itself by a program that ends when the process that asked for it does.

    python -I -S leash.py PARENT_PID program argument …

A script of its own, because code between fork and exec is not safe in a process with threads.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(parent: int, argv: list[str]) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit("the parent ended before its child began")
    try:
        os.execv(argv[0], argv)  # noqa: S606, no shell is wanted
    except OSError as error:
        sys.exit(f"{argv[0]} cannot be run: {error.strerror}")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
