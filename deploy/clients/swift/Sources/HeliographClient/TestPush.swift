import Foundation

/// The result of a test push.
public struct TestPush: Decodable, Sendable {
    /// A provider's answer for one device.
    public struct Device: Decodable, Sendable {
        /// The registration's id.
        public let device: UUID
        /// `apns` or `fcm`.
        public let provider: String
        /// `accepted`, or the kind of failure, such as `unregistered` for a token that is no longer valid.
        public let result: String
        /// The provider's reason for a failure.
        public let reason: String?
    }

    /// `push` if it was sent; otherwise `reason` has the setting that prevents it. Nil without a decision in time.
    public let decision: String?
    /// Why it was decided so, such as `wanted`, `channel-off` or `no-device`.
    public let reason: String?
    /// The answers so far.
    public let devices: [Device]
    /// Whether all answers are here.
    public let complete: Bool

    /// Whether a provider accepted the push for a device of the user.
    public var isAccepted: Bool { devices.contains { $0.result == "accepted" } }
}

extension HeliographClient {
    /// Sends a test push to the user's own devices, and returns the providers' answers. For a screen “Is it working?”.
    ///
    /// A user may send one in 30 s, and five in an hour; another throws `unavailable` with status 429. It is not repeated.
    ///
    /// - Parameter wait: The longest wait for the answers, from 0 to 30 s.
    public func sendTestPush(wait: Int = 10) async throws -> TestPush {
        guard let events = configuration.events else {
            throw HeliographError.refused(status: 0, detail: "the configuration has no address of events-api")
        }
        let url = events.api("v1", "test-pushes", query: [("wait", "\(wait)s")])
        return try APIConnection.decode(TestPush.self, from: try await connection.send("POST", url, attempts: 1))
    }
}
