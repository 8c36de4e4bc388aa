import PushProtocol
import RuleLanguage

/// The body of `PUT /v1/presence/{device}`: the app is open on this device.
///
///     {"viewing": "9", "for": 45}
///
/// Both members are optional: `viewing` is the thread on the screen, `for` the lease in seconds (default 45).
struct HeartbeatBody: Hashable, Sendable {
    /// The largest accepted body, in bytes.
    static let maximumSize = 8 * 1024

    let viewing: String?
    let lease: Duration

    init(_ body: [UInt8]) throws(WireError) {
        let value: JSONValue =
            body.isEmpty ? [:] : try WireCoding.decode(JSONValue.self, from: body, maximumSize: Self.maximumSize)
        let members = try JSONObjectReader(value, at: "the body", prefix: "", known: ["viewing", "for"])
        viewing = try members.freeText("viewing", ReadingBody.longestThread)
        let longest = Signal.longestLease.components.seconds
        let seconds = try members.optional("for", "expected a whole number of seconds, 1–\(longest)") { value in
            value.int.flatMap { (1...longest).contains($0) ? $0 : nil }
        }
        lease = seconds.map { .seconds($0) } ?? Signal.defaultLease
    }
}
