package import PushProtocol

/// Encodes requests to FCM HTTP v1 for one project: `POST /v1/projects/<project>/messages:send`. Maps responses to
/// consequences.
package struct FCMCodec: ProviderCodec {
    package let path: String?

    package init(project: String) { path = "/v1/projects/\(project)/messages:send" }

    package func render(_ push: Push, now: Timestamp) -> any PushRendering { FCMRendering(push, now: now) }

    /// A 401 or 403 may concern one target only.
    package func shouldContinue(after status: Int) -> Bool { true }
}
