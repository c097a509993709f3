"""A headless Chromium driven over its debugging pipe, without further packages.

Source of the protocol: the Chrome DevTools Protocol; messages are JSON, each ended by a zero byte,
on descriptors 3 and 4 of the browser (``--remote-debugging-pipe``).
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "chrome")
LIMIT_S = 120.0
ARGUMENTS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-extensions", "--disable-dev-shm-usage", "--remote-debugging-pipe",
)  # fmt: skip

PLACE_PIPES = """
import fcntl, os, sys
read, write = (fcntl.fcntl(int(n), fcntl.F_DUPFD, 10) for n in sys.argv[1:3])
os.dup2(read, 3)
os.dup2(write, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Puts the pipes where the browser looks for them, whatever numbers they have."""


def find_program() -> str | None:
    """The browser's path, None where there is none."""
    return next((path for name in PROGRAMS if (path := shutil.which(name))), None)


@dataclass
class Browser:
    """A running browser with one open page; keeps all that the page says and asks for."""

    to_browser: int
    from_browser: int
    session: str = ""
    number: int = 0
    buffer: bytes = b""
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    events: list[str] = field(default_factory=list)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and wait for its answer."""
        self.number += 1
        message: dict[str, Any] = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to_browser, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self._note(answer)

    def open(self, path: Path) -> None:
        """Load a file and wait until it is there."""
        self.events.clear()
        self.call("Page.navigate", url=path.absolute().as_uri())
        while "Page.loadEventFired" not in self.events:
            self._note(self._next())

    def evaluate(self, expression: str) -> Any:
        """The value of a script's expression."""
        found = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"])
        return found["result"].get("value")

    def look(self, *, width: int, dark: bool = False, media: str = "") -> None:
        """The screen's width, the colours that the reader prefers, and the medium."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1,
            mobile=width < 500,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=media, features=[scheme])

    def key(self, name: str) -> None:
        """Press and release a key."""
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38,
                 "ArrowRight": 39, "ArrowDown": 40}  # fmt: skip
        text = {"text": "\r"} if name == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent", type=kind, key=name, code=name,
                windowsVirtualKeyCode=codes[name], **(text if kind == "keyDown" else {}),
            )  # fmt: skip

    def picture(self, path: Path, *, height: int | None = None) -> None:
        """A PNG of the page from its top, the whole of it without a height."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {
            "x": 0, "y": 0, "width": size["width"],
            "height": min(size["height"], height or size["height"]), "scale": 1,
        }  # fmt: skip
        found = self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(found["data"]))

    def pdf(self) -> bytes:
        """The page as it is printed."""
        return base64.b64decode(self.call("Page.printToPDF")["data"])

    def _next(self) -> dict[str, Any]:
        end = time.monotonic() + LIMIT_S
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.from_browser], [], [], end - time.monotonic())
            data = os.read(self.from_browser, 1 << 16) if ready else b""
            if not data:
                raise RuntimeError("the browser has ended or does not answer")
            self.buffer += data
        text, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(text)

    def _note(self, event: dict[str, Any]) -> None:
        method, params = event.get("method", ""), event.get("params", {})
        self.events.append(method)
        if method == "Runtime.exceptionThrown":
            self.complaints.append(str(params["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.complaints.append(str(params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])


@contextlib.contextmanager
def running(program: str, folder: Path) -> Iterator[Browser]:
    """A browser with an empty profile in ``folder``; it and its children end with the block."""
    to_read, to_write = os.pipe()
    from_read, from_write = os.pipe()

    process = subprocess.Popen(
        [
            sys.executable, "-c", PLACE_PIPES, str(to_read), str(from_write), program, *ARGUMENTS,
            f"--user-data-dir={folder}",
        ],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        pass_fds=(to_read, from_write), start_new_session=True,
    )  # fmt: skip
    os.close(to_read)
    os.close(from_write)
    try:
        browser = Browser(to_write, from_read)
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        found = browser.call("Target.attachToTarget", targetId=target, flatten=True)
        browser.session = found["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            browser.call(f"{domain}.enable")
        yield browser
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        os.close(to_write)
        os.close(from_read)
