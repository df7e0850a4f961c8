"""Runs a program that ends when its parent does, as the user it is meant for.

    python -I -S die_with_parent.py PARENT_PID SIGNAL IDENTITY LIFELINE program argument …

A script of its own, with nothing but the standard library, since code between fork and exec is not
safe in a process with threads. It replaces itself by the program, so the parent's child is the
program, and what it sets up cannot be forgotten on the way.
"""

import ctypes
import functools
import os
import select
import signal
import sys
from typing import NoReturn

CLONE_NEWUSER = 0x10000000
PR_SET_PDEATHSIG = 1


@functools.cache
def lifelines() -> tuple[int, ...]:
    """File descriptors that a child must inherit where the kernel sends no death signal: a pipe's
    reading end.

    Nobody inherits the writing end, so it closes when this process ends, however it ends.
    """
    if os.path.exists("/proc/self"):
        return ()
    reading, _writing = os.pipe()
    return (reading,)


def command(
    argv: list[str],
    *,
    signal: int = signal.SIGKILL,
    identity: str = "self",
    python: str = sys.executable,
) -> list[str]:
    """`argv` of a program that gets `signal` when the process that calls this has ended."""
    lifeline = lifelines()[0] if lifelines() else 0
    words = [str(os.getpid()), str(int(signal)), identity, str(lifeline)]
    return [python, "-I", "-S", __file__, *words, *argv]


def main(parent: int, death: int, identity: str, lifeline: int, argv: list[str]) -> NoReturn:
    if death != signal.SIGKILL:
        # Deafness is inherited: a shell makes what it starts in the background deaf to SIGINT.
        signal.signal(death, signal.SIG_DFL)
    become(identity)
    # After becoming: a change of user takes the death signal away again.
    if not lifeline:
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, death, 0, 0, 0)
    elif os.fork() == 0:
        # Its copies would keep the program's pipes open when the program has closed them.
        os.closerange(0, 3)
        watch(lifeline, os.getppid(), death)
    else:
        os.close(lifeline)
    if os.getppid() != parent:
        sys.exit("the parent ended before its child began")
    try:
        os.execv(argv[0], argv)
    except OSError as error:
        sys.exit(f"{argv[0]} cannot be run: {error.strerror}")


def become(identity: str) -> None:
    how, _, who = identity.partition(":")
    if how == "self":
        return
    os.umask(0o077)
    # The caller's directory may be one that the new user cannot enter.
    os.chdir("/")
    uid, gid = (int(number) for number in who.split(":"))
    if how == "namespace":
        enter_namespace(uid, gid)
        return
    os.setgroups([])
    os.setgid(gid)
    os.setuid(uid)


def enter_namespace(uid: int, gid: int) -> None:
    """Keep root's files and lose root's number: PostgreSQL refuses to run as user 0."""
    outer = os.geteuid(), os.getegid()
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWUSER) != 0:
        why = os.strerror(ctypes.get_errno())
        sys.exit(
            "PostgreSQL does not run as root, and root may not make a user namespace here "
            f"({why}). Start as an ordinary user, use a data directory and an installation that "
            "the user nobody can reach, or give DATABASE_URL."
        )
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{uid} {outer[0]} 1"),
        ("gid_map", f"{gid} {outer[1]} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def watch(lifeline: int, program: int, death: int) -> NoReturn:
    """Only the parent holds the other end of `lifeline`: when it can be read, it is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while os.getppid() == program:
        if select.select([lifeline], [], [], 1.0)[0]:
            os.kill(program, death)
            break
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), sys.argv[5:])
