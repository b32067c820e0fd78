"""Headless Chromium, driven through its own debugging pipe: what the tests of the site need of a browser."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Self

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
WAIT = 300.0  # seconds for one answer


class Chromium:
    """A browser with one tab. It notes what the tab asked for and what it complained of."""

    def __init__(self) -> None:
        found = next(filter(None, map(shutil.which, NAMES)), None)
        if found is None:
            raise FileNotFoundError(f"none of {', '.join(NAMES)} is installed")
        self._folder = tempfile.mkdtemp(prefix="chromium-")
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        switches = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"]
        line = [found, *switches, f"--user-data-dir={self._folder}", "--remote-debugging-pipe", "about:blank"]
        pipes = f'exec 3<&{theirs_in} 4>&{theirs_out}; exec "$@"'  # the browser reads from 3 and writes to 4
        self._process = subprocess.Popen(
            ["bash", "-c", pipes, "bash", *line], pass_fds=(theirs_in, theirs_out), stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(theirs_in)
        os.close(theirs_out)
        self._buffer, self._number, self._session = b"", 0, None
        self.asked: list[str] = []
        self.complaints: list[str] = []
        self._loaded: set[str] = set()  # the documents, by the name of their loading
        target = next(t for t in self._call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self._session = self._call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self._call(f"{domain}.enable")
        self._call("Page.setLifecycleEventsEnabled", enabled=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)
        shutil.rmtree(self._folder, ignore_errors=True)

    # --- what a test does -----------------------------------------------------------------------------------------
    def look(self, width: int, height: int = 900, scheme: str = "light", motion: str = "no-preference") -> None:
        """Set the size of the window, and which colour scheme and how much motion the reader asks for."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._call("Emulation.setDeviceMetricsOverride", **size)
        asked = {"prefers-color-scheme": scheme, "prefers-reduced-motion": motion}
        features = [{"name": name, "value": value} for name, value in asked.items()]
        self._call("Emulation.setEmulatedMedia", features=features)

    def goto(self, path: Path) -> None:
        loading = self._call("Page.navigate", url=path.as_uri())["loaderId"]
        while loading not in self._loaded:
            self._read()

    def follow(self, selector: str) -> None:
        """Click a link to another page and wait until that is loaded."""
        before = set(self._loaded)
        self.evaluate(f"setTimeout(() => document.querySelector({json.dumps(selector)}).click())")
        while self._loaded == before:
            self._read()

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression; of a promise, what it becomes."""
        answer = self._call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(answer["exceptionDetails"]["exception"].get("description"))
        return answer["result"].get("value")

    def click(self, x: float, y: float) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            self._call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key: str, code: int) -> None:
        for kind in ("rawKeyDown", "keyUp"):
            self._call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code)

    def screenshot(self, whole: bool = False) -> bytes:
        """What the window shows, as PNG."""
        answer = self._call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        return base64.b64decode(answer["data"])

    # --- the pipe: JSON documents with a zero byte after each -----------------------------------------------------
    def _call(self, method: str, **values: Any) -> dict[str, Any]:
        self._number += 1
        self._send(self._number, method, **values)
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def _send(self, number: int, method: str, **values: Any) -> None:
        message = {"id": number, "method": method, "params": values}
        session = {"sessionId": self._session} if self._session else {}
        os.write(self._out, json.dumps(message | session).encode() + b"\0")

    def _read(self) -> dict[str, Any]:
        deadline = time.monotonic() + WAIT
        while b"\0" not in self._buffer:
            if not select.select([self._in], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise TimeoutError(f"the browser did not answer within {WAIT:g} s")
            piece = os.read(self._in, 1 << 16)
            if not piece:
                raise OSError("the browser has ended")
            self._buffer += piece
        first, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(first)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, event: str | None, values: dict[str, Any]) -> None:
        if event == "Page.lifecycleEvent" and values["name"] == "load":
            self._loaded.add(values["loaderId"])
        elif event == "Network.requestWillBeSent":
            self.asked.append(values["request"]["url"])
        elif event == "Runtime.exceptionThrown":
            self.complaints.append(str(values["exceptionDetails"].get("text")))
        elif event == "Runtime.consoleAPICalled" and values["type"] == "error":
            self.complaints.append(str(values["args"]))
        elif event == "Log.entryAdded" and values["entry"]["level"] == "error":
            self.complaints.append(values["entry"]["text"])
        elif event == "Page.javascriptDialogOpening":
            self.complaints.append(values["message"])
            self._send(0, "Page.handleJavaScriptDialog", accept=False)
