package import PushProtocol
package import PushSending

/// How FCM v1 is spoken to for one project: `POST /v1/projects/<project>/messages:send`.
package struct FCMWire: PushWire {
    package let path: String?

    package init(project: String) { path = "/v1/projects/\(project)/messages:send" }

    package func render(_ push: Push, now: Timestamp) -> any PushRendering { FCMRendering(push, now: now) }

    /// 401 and 403 may be about one target alone.
    package func goesOn(after status: Int) -> Bool { true }
}
