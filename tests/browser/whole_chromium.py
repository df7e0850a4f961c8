"""A whole Chromium on a screen of its own: with notifications that are pressed, installed
applications and badges, which the headless shell does not have."""

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageGrab
from playwright.sync_api import Browser, BrowserContext

from config.embedded.service import wait_until

CHROMIUM, XVFB = shutil.which("chromium"), shutil.which("Xvfb")
WIDTH, HEIGHT = 900, 920
# Where Chromium draws a notification: beside its own window, which is 500 wide at least.
NOTIFICATION = (WIDTH - 190, HEIGHT - 50)
# So many pictures that are alike show nothing that moves.
STILL = 15


class Screen:
    """An X display that nobody sees."""

    def __init__(self, display: str) -> None:
        self.display = display
        self._x, self._test = ctypes.CDLL("libX11.so.6"), ctypes.CDLL("libXtst.so.6")
        self._x.XOpenDisplay.restype = ctypes.c_void_p
        self._link = ctypes.c_void_p(self._x.XOpenDisplay(display.encode()))

    def picture(self) -> Image.Image:
        return ImageGrab.grab(xdisplay=self.display)

    def still_picture(self) -> Image.Image:
        """Once a notification is drawn, and moves no more."""
        self._wait_for_notification()
        seen = [self.picture()]

        def is_still() -> bool:
            seen.append(self.picture())
            return len({one.tobytes() for one in seen[-STILL:]}) == 1 < len(seen) // STILL

        assert wait_until(is_still, seconds=20)
        return seen[-1]

    def _wait_for_notification(self) -> None:
        assert wait_until(lambda: self.picture().getpixel(NOTIFICATION) != (0, 0, 0), seconds=20)

    def press_notification(self) -> None:
        """With the pointer, once one is drawn."""
        self._wait_for_notification()
        self._test.XTestFakeMotionEvent(self._link, -1, *NOTIFICATION, 0)
        for is_down in (1, 0):
            self._test.XTestFakeButtonEvent(self._link, 1, is_down, 0)
        self._x.XFlush(self._link)


@contextmanager
def whole_chromium(
    chromium: Browser, profile: Path, **options: Any
) -> Iterator[tuple[BrowserContext, Screen]]:
    if not (CHROMIUM and XVFB):
        pytest.skip("Needs a whole Chromium and Xvfb (Debian: apt install chromium xvfb).")
    argv = [XVFB, "-displayfd", "1", "-screen", "0", f"{WIDTH}x{HEIGHT}x24", "-nolisten", "tcp"]
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout
            display = f":{process.stdout.readline().strip()}"
            context = chromium.browser_type.launch_persistent_context(
                profile,
                executable_path=CHROMIUM,
                headless=False,
                args=["--no-sandbox", "--window-size=412,880", "--window-position=0,0"],
                # Without a desktop it draws notifications itself.
                env={**os.environ, "DISPLAY": display, "DBUS_SESSION_BUS_ADDRESS": "disabled:"},
                **options,
            )
            yield context, Screen(display)
            context.close()
        finally:
            process.terminate()
