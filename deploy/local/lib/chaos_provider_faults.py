"""Faults of APNs and FCM, played by the simulator."""

from chaos_fault import Fault
from chaos_service_faults import unacknowledged_pushes
from simulated_users import Simulator

PAUSED = "apns-sender|fcm-sender metric heliograph_route_open is 0"
RECONNECTED = 'apns-sender|fcm-sender metric heliograph_push_connects_total{result="ready"} rises'
CONNECT_FAILED = 'apns-sender|fcm-sender metric heliograph_push_connects_total{result="failed"} rises'
# Error codes of HTTP/2.
INTERNAL_ERROR, REFUSED_STREAM = 2, 7
RETRIED = "apns-sender|fcm-sender metric heliograph_messages_retried_total rises"


class ProviderFault(Fault):
    """Scripted outcomes of requests, faults of connections and of handshakes, until the end."""

    def __init__(
        self, name: str, *numbers: int, outcomes=(), disturbances=(), handshakes=(), revokes_access_tokens=False,
        signals=(), answers_lost=0, gate=False, hold=15, recovery=90, lasting=0
    ):
        self.name, self.numbers, self.signals, self.gate = name, numbers, tuple(signals), gate
        self.hold, self.recovery, self.lasting = hold, recovery, lasting
        self.outcomes, self.disturbances, self.handshakes = outcomes, disturbances, handshakes
        self.revokes_access_tokens = revokes_access_tokens
        # How often the answer to one push can be lost although the provider accepted it.
        self.answers_lost = answers_lost

    def begin(self, stack, random):
        self.extra_pushes = self.answers_lost * unacknowledged_pushes(stack)
        simulator = Simulator(stack)
        if self.outcomes:
            simulator.ask("POST", f"/outcomes?seed={random.getrandbits(31)}", list(self.outcomes))
        if self.handshakes:
            simulator.ask("POST", "/handshakes", list(self.handshakes))
        if self.revokes_access_tokens:
            simulator.ask("DELETE", "/access-tokens")
        if self.disturbances:
            simulator.ask("POST", "/disturbances", list(self.disturbances))
        return {"outcomes": len(self.outcomes)}

    def end(self, stack):
        Simulator(stack).clear_faults()


def both(**outcome) -> list[dict]:
    return [{"provider": provider, **outcome} for provider in ("apns", "fcm")]


def on_each(**fault) -> list[dict]:
    return [{"port": port, **fault} for port in ("apns", "fcm")]


class StreamLimit(ProviderFault):
    """One request at a time on each connection; the earlier limit returns with the end."""

    def end(self, stack):
        super().end(stack)
        Simulator(stack).ask("POST", "/disturbances", [{"max_streams": 100}])


FAULTS: list[Fault] = [
    ProviderFault(
        "fcm-unavailable", 44, outcomes=[{"provider": "fcm", "status": 503, "error_code": "UNAVAILABLE"}],
        signals=[PAUSED], recovery=150),
    # Apple asks for a quarter of an hour before the next attempt.
    ProviderFault(
        "apns-unavailable", 44, outcomes=[{"provider": "apns", "status": 503, "reason": "ServiceUnavailable"}],
        signals=[PAUSED], hold=30, recovery=150, lasting=960),
    ProviderFault("providers-silent", 45, outcomes=both(silence=True), signals=[RETRIED], hold=40, recovery=150),
    ProviderFault(
        "providers-slow", 21, 45, outcomes=both(status=200, share=1, delay_ms={"uniform": [2000, 8000]}), hold=20),
    ProviderFault(
        "providers-goaway", 39,
        disturbances=on_each(goaway={"last_stream": "graceful", "reason": "Shutdown"}, every_ms=500),
        signals=["apns-sender|fcm-sender metric heliograph_push_goaways_total rises"], hold=10),
    ProviderFault(
        "providers-goaway-and-close", 40,
        outcomes=both(goaway={"last_stream": "before", "code": INTERNAL_ERROR, "pause_ms": 0}, share=0.05),
        signals=["apns-sender|fcm-sender metric heliograph_push_goaways_total rises"], answers_lost=8, gate=True,
        hold=10),
    ProviderFault(
        "providers-streams-refused", 41, outcomes=both(reset=REFUSED_STREAM, share=0.3),
        signals=["apns-sender|fcm-sender metric heliograph_push_resends_total rises"], hold=10),
    ProviderFault(
        "providers-streams-reset", 41, outcomes=both(reset=INTERNAL_ERROR, accepted=True, share=0.3),
        signals=[RETRIED], answers_lost=8, hold=10, recovery=150),
    ProviderFault(
        "providers-connections-dropped", 40, 41, outcomes=both(drop=True, accepted=True, share=0.05),
        signals=[RECONNECTED], answers_lost=8, hold=10, recovery=150),
    ProviderFault(
        "providers-certificate-expired", 42, handshakes=on_each(fault="expired"), disturbances=on_each(drop=True),
        signals=[CONNECT_FAILED, PAUSED], answers_lost=1, hold=15),
    ProviderFault(
        "providers-certificate-unknown", 42, handshakes=on_each(fault="unknown_authority"),
        disturbances=on_each(drop=True), signals=[CONNECT_FAILED, PAUSED], answers_lost=1, hold=15),
    ProviderFault(
        "providers-without-http2", 42, handshakes=on_each(fault="wrong_protocol"), disturbances=on_each(drop=True),
        signals=[CONNECT_FAILED, PAUSED], answers_lost=1, hold=15),
    ProviderFault(
        "apns-too-many-requests", 43,
        outcomes=[{"provider": "apns", "status": 429, "reason": "TooManyRequests", "share": 0.3}],
        signals=["apns-sender metric heliograph_messages_retried_total rises"], hold=10, recovery=300, lasting=150),
    ProviderFault(
        "fcm-quota-exhausted", 43,
        outcomes=[{"provider": "fcm", "error_code": "QUOTA_EXCEEDED", "retry_after": 5}],
        signals=["fcm-sender metric heliograph_messages_retried_total rises"],
        hold=10, recovery=300),
    ProviderFault(
        "providers-half-open", 46, disturbances=on_each(stall=True), signals=[RECONNECTED], answers_lost=1, hold=45,
        recovery=150),
    StreamLimit("providers-one-stream", 47, disturbances=[{"max_streams": 1}], hold=15),
    ProviderFault(
        "apns-provider-token-expired", 49, outcomes=[{"provider": "apns", "reason": "ExpiredProviderToken"}],
        signals=["apns-sender metric heliograph_route_open is 0"], hold=15, recovery=150),
    ProviderFault(
        "google-token-endpoint-unavailable", 49, outcomes=[{"provider": "oauth", "status": 503}],
        revokes_access_tokens=True, signals=["fcm-sender metric heliograph_route_open is 0"], gate=True, hold=15,
        recovery=150),
    # The devices ended before their registrations, so the registrations stay.
    ProviderFault(
        "apns-unregistered-wave", 50,
        outcomes=[{"provider": "apns", "status": 410, "reason": "Unregistered", "timestamp": {"ago_ms": 86_400_000},
                   "share": 0.2}],
        signals=['apns-sender metric heliograph_push_targets_total{disposition="unregistered"} rises'], hold=10),
]
