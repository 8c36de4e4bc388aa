"""The signals by which an operator notices a fault, and a watch for them.

A signal is one line:

    SERVICE down                           its admin port does not answer
    SERVICE not-ready CONDITION: REGEX     a readiness condition does not hold, and its reason matches
    SERVICE metric NAME{LABELS} rises      the sum of a metric's series grew since the fault began
    SERVICE metric NAME{LABELS} is VALUE   one of its series has this value
    SERVICE log: REGEX                     a line of its log since the fault began

SERVICE is one name, several with `|` between them, `any`, or VICTIM: the member `service` of the fault's choices.
LABELS are optional; a series must contain each of them. One of several services suffices.
"""

import re

SERVICES = ["rules", "token-registry", "apns-sender", "fcm-sender", "feedback"]
METRIC = re.compile(r"(?P<name>\w+)(\{(?P<labels>.*)\})? (rises|is (?P<value>\S+))$")


class SignalWatch:
    """Looks for signals from its creation on. Create it before the fault begins."""

    def __init__(self, stack, signals: tuple[str, ...]):
        self.stack, self.signals = stack, signals
        self.seen: dict[str, str] = {}
        self._choices: dict = {}
        self._before = {service: stack.metrics(service) or {} for service in SERVICES}
        self._logs = {service: _size(stack.log(service)) for service in SERVICES}

    def chosen(self, choices: dict) -> None:
        """Takes the choices of the fault's begin."""
        self._choices = choices

    def sample(self) -> None:
        """Looks once."""
        open_signals = [signal for signal in self.signals if signal not in self.seen]
        if not open_signals:
            return
        metrics = {service: self.stack.metrics(service) for service in SERVICES}
        readiness = {service: self.stack.readiness(service) for service in SERVICES}
        for signal in open_signals:
            for service in self._services(signal):
                evidence = self._evidence(signal, service, metrics[service], readiness[service])
                if evidence:
                    self.seen[signal] = f"{service}: {evidence}"
                    break

    @property
    def missing(self) -> list[str]:
        return [signal for signal in self.signals if signal not in self.seen]

    def _services(self, signal: str) -> list[str]:
        names = signal.split(" ", 1)[0]
        if names == "any":
            return SERVICES
        if names == "VICTIM":
            return [self._choices["service"]] if "service" in self._choices else []
        return names.split("|")

    def _evidence(self, signal: str, service: str, metrics, readiness) -> str | None:
        kind, _, rest = signal.split(" ", 1)[1].partition(" ")
        match kind:
            case "down":
                return "no answer" if readiness is None else None
            case "not-ready":
                condition, pattern = rest.split(": ", 1)
                return next((f"{name}: {reason}" for name, reason in (readiness or {}).items()
                             if name == condition and re.search(pattern, reason)), None)
            case "metric":
                return self._metric(rest, service, metrics)
            case "log:":
                return next((line for line in self._lines(service) if re.search(rest, line)), None)
        raise ValueError(f"unknown kind of signal: {signal}")

    def _metric(self, wanted: str, service: str, metrics: dict[str, float] | None) -> str | None:
        found = METRIC.match(wanted)
        if not found:
            raise ValueError(f"unknown form of a metric signal: {wanted}")
        labels = [label for label in (found["labels"] or "").split(",") if label]
        now, before = _series(metrics or {}, found["name"], labels), _series(
            self._before[service], found["name"], labels)
        if found["value"] is not None:
            return next((series for series, value in now.items() if value == float(found["value"])), None)
        # A restarted process counts from zero.
        rise = sum(max(0, value - before.get(series, 0)) for series, value in now.items())
        return f"+{rise:g}" if rise > 0 else None

    def _lines(self, service: str) -> list[str]:
        path = self.stack.log(service)
        if not path.is_file():
            return []
        with path.open(errors="replace") as log:
            if _size(path) >= self._logs[service]:
                log.seek(self._logs[service])
            return log.read().splitlines()


def _size(path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _series(metrics: dict[str, float], name: str, labels: list[str]) -> dict[str, float]:
    return {series: value for series, value in metrics.items()
            if series.split("{")[0] == name and all(label in series for label in labels)}
