import FoundationEssentials
import PushProtocol
import PushSending

/// How FCM v1 is spoken to for one project: `POST /v1/projects/<project>/messages:send`.
struct FCMWire: PushWire {
    let path: String?

    init(project: String) { path = "/v1/projects/\(project)/messages:send" }

    func render(_ push: Push, now: Timestamp) -> any PushRendering { FCMRendering(push, now: now) }

    /// 401 and 403 may be about one target alone.
    func goesOn(after status: Int) -> Bool { true }
}
