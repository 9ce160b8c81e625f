"""A headless Chromium over its debugging pipe: what a page logs and asks of the network."""

from __future__ import annotations

import base64
import json
import os
import select
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

_FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--remote-debugging-pipe",
]
_PATIENCE = 120  # seconds without a word


@dataclass
class Seen:
    """What happened on a page: texts of the console, errors, and addresses asked for."""

    console: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


class Chromium:
    """One page of one browser; messages are JSON, ended by a zero byte (descriptors 3 and 4)."""

    def __init__(self, profile: Path) -> None:
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        self._process = subprocess.Popen(
            ["bash", "-c", f'exec chromium "$@" 3<&{to_read} 4>&{to_write}', "chromium", *_FLAGS,
             f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(to_read, to_write), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_read)
        os.close(to_write)
        self._left, self._number, self._session = b"", 0, ""
        self._loaded = 0
        self.seen = Seen()
        targets = self.ask("Target.getTargets")["targetInfos"]
        page = next(target["targetId"] for target in targets if target["type"] == "page")
        self._session = self.ask("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def __enter__(self) -> Chromium:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._process.terminate()
        self._process.wait(30)
        os.close(self._write)
        os.close(self._read)

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its answer; events in between are noted."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        message |= {"sessionId": self._session} if self._session else {}
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result

    def open(self, page: Path, width: int) -> None:
        """Load a file as a window of that width would, and wait until it is there."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=900,
                 deviceScaleFactor=1, mobile=width < 500)  # fmt: skip
        before = self._loaded
        self.ask("Page.navigate", url=page.resolve().as_uri())
        while self._loaded == before:  # the event may have come before the answer
            self._next()

    def value(self, expression: str) -> Any:
        """What a line of JavaScript says on the page."""
        found = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        return found["result"]["value"]

    def screenshot(self, path: Path) -> None:
        """The whole page as PNG."""
        shot = self.ask("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._left:
            assert select.select([self._read], [], [], _PATIENCE)[0], "Chromium says nothing"
            chunk = os.read(self._read, 1 << 20)
            assert chunk, "Chromium has ended"
            self._left += chunk
        raw, _, self._left = self._left.partition(b"\0")
        message: dict[str, Any] = json.loads(raw)
        self._note(message)
        return message

    def _note(self, message: dict[str, Any]) -> None:
        parameters = message.get("params", {})
        match message.get("method"):
            case "Page.loadEventFired":
                self._loaded += 1
            case "Network.requestWillBeSent":
                self.seen.requests.append(parameters["request"]["url"])
            case "Runtime.consoleAPICalled":
                self.seen.console.append(str(parameters["args"]))
            case "Log.entryAdded":
                self.seen.console.append(parameters["entry"]["text"])
            case "Runtime.exceptionThrown":
                self.seen.errors.append(str(parameters["exceptionDetails"]))
