"""HTTP requests with Python's own modules."""

import json
import urllib.error
import urllib.request


def request(
    method: str, url: str, body=None, headers: dict[str, str] | None = None, raw: bytes | None = None,
    timeout: float = 10,
):
    """Returns (status, parsed JSON or text). `body` is sent as JSON; `raw` is sent as it is."""
    data = raw if raw is not None else None if body is None else json.dumps(body).encode()
    sent = urllib.request.Request(url, data=data, method=method, headers=headers or {})
    if body is not None and not sent.has_header("Content-type"):
        sent.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(sent, timeout=timeout) as answer:
            status, text = answer.status, answer.read()
    except urllib.error.HTTPError as refusal:
        status, text = refusal.code, refusal.read()
    try:
        return status, json.loads(text)
    except ValueError:
        return status, text.decode(errors="replace")
