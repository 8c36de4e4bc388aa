"""A headless Chromium controlled over the DevTools protocol, to query pages in JavaScript."""

import contextlib
import json
import pathlib
import shutil
import subprocess
import time
import urllib.request

import websocket


class Page:
    """One tab."""

    def __init__(self, address: str):
        self.socket = websocket.create_connection(address, timeout=30, suppress_origin=True)
        self.sent = 0
        self.events: list[dict] = []

    def call(self, method: str, **parameters):
        self.sent += 1
        self.socket.send(json.dumps({"id": self.sent, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.socket.recv())
            if message.get("id") == self.sent:
                assert "error" not in message, message
                return message["result"]
            self.events.append(message)

    def go(self, url: str) -> None:
        self.call("Page.navigate", url=url)

    def ask(self, expression: str):
        """Evaluates a JavaScript expression in the page and returns its value as JSON."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")


@contextlib.contextmanager
def chromium(folder: pathlib.Path):
    """Starts a browser with a profile in `folder` and yields its first tab. The browser ends with the block."""
    program = shutil.which("chromium")
    assert program, "chromium is not installed; deploy/local/test installs it"
    with open(folder / "chromium.log", "wb") as log:
        process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-extensions", "--remote-debugging-port=0", f"--user-data-dir={folder / 'profile'}", "about:blank"],
            stdout=log, stderr=log)
    try:
        page = Page(tab(folder / "profile" / "DevToolsActivePort", process))
        page.call("Page.enable")
        page.call("Log.enable")
        yield page
        page.socket.close()
    finally:
        process.terminate()
        process.wait(timeout=20)


def tab(port_file: pathlib.Path, process: subprocess.Popen) -> str:
    """Returns the DevTools address of the first tab, once the browser listens."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert process.poll() is None, "the browser ended"
        # The browser creates the file before it writes the port.
        with contextlib.suppress(OSError, ValueError, IndexError, StopIteration):
            port = int(port_file.read_text().splitlines()[0])
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/json", timeout=5) as answer:
                return next(tab["webSocketDebuggerUrl"] for tab in json.load(answer) if tab["type"] == "page")
        time.sleep(0.1)
    raise AssertionError("the browser did not listen within 60 s")
