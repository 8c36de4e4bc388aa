import DecisionLog
import FoundationEssentials
import HTTPAuth
import HTTPTypes
import Hummingbird
import PushProtocol

/// `POST /v1/test-pushes`: sends a test push to the caller's own devices, for an app's screen “Is it working?”.
struct TestPushRoutes: Sendable {
    static let source = "/v1/test-pushes"
    /// The label of the metric of events.
    static let mode = "test"
    /// The wait without the query parameter `wait`.
    static let defaultWait = Duration.seconds(10)
    /// The maximum number of these requests that wait.
    static let maximumWaiting = 100

    let users: BearerAuthenticator
    let limits: TestPushLimits
    /// Its waiter has a limit apart from that of publishers.
    let delivery: EventDelivery

    func add(to router: Router<BasicRequestContext>) {
        router.post("v1/test-pushes") { request, context in
            await Response.answeringPublisher(context) {
                let caller = try await users.authenticate(request.bearerToken)
                let wait = try request.wait ?? Self.defaultWait
                try limits.admit(caller)
                return try await push(to: caller, wait)
            }
        }
    }

    private func push(to caller: Caller, _ wait: Duration) async throws -> Response {
        let event = try Self.event(to: caller, id: UUID(), at: Date())
        let receipt = await delivery.publish([.success(event)], of: caller.app, Self.mode)[0]
        if let refusal = receipt.refusal { throw refusal }
        guard let identity = receipt.event,
            let knowledge = await delivery.waiter.knowledge(of: [identity], within: wait)
        else { return .json(.accepted, Self.answer(event.event.id, nil)) }
        return .json(.ok, Self.answer(event.event.id, knowledge))
    }

    /// The event that requests the push.
    static func event(to caller: Caller, id: UUID, at time: Date) throws(EventRefusal) -> IncomingEvent {
        let text: [UInt8]
        do {
            text = try DirectNotification.event(
                DirectNotification.test(to: caller.user).json, id: .string(id.uuidString.lowercased()), source: source,
                at: time)
        } catch {
            throw EventRefusal(error)
        }
        return try EventReader(app: caller.app, mayRequestNotifications: true).structured(text)
    }

    /// - Parameter knowledge: the decision and outcomes so far; nil if too many requests wait, or the log is unreadable.
    private static func answer(_ id: String, _ knowledge: DecisionWaiter.Knowledge?) -> JSONValue {
        let trace = knowledge?.explanations.first??.traces.first
        let decision = trace?.decisions.last
        let devices = (trace?.outcomes ?? []).filter { $0.device != nil }
        var members: [String: JSONValue] = [
            "id": .string(id), "decision": .optional(decision?.answer),
            "reason": .optional(decision?.reason),
            "devices": .array(devices.map(\.testPushJSON)),
        ]
        // Without a device, the outcome of the registry has the reason: no-device or expired.
        if let outcome = trace?.outcomes.first(where: { $0.device == nil }) {
            members["reason"] = .optional(outcome.reason ?? outcome.disposition)
        }
        members.merge(knowledge?.json ?? ["complete": false, "incomplete": "undecided"]) { $1 }
        return .object(members)
    }
}

extension Explanation.Outcome {
    fileprivate var testPushJSON: JSONValue {
        [
            "device": .optional(device?.uuidString.lowercased()), "provider": .string(origin),
            "result": .string(disposition), "reason": .optional(reason), "at": .string(RFC3339.string(from: at)),
        ]
    }
}

/// The limits of a user's test pushes, in one process.
struct TestPushLimits: Sendable {
    static let pause = Duration.seconds(30)
    static let maximumPerHour = 5

    private let short: RateLimiter<Caller>
    private let long: RateLimiter<Caller>

    init(uptime: @escaping @Sendable () -> ContinuousClock.Instant = { .now }) {
        short = RateLimiter("test-push", 1, per: Self.pause, uptime: uptime)
        long = RateLimiter("test-push", Self.maximumPerHour, per: .seconds(3600), uptime: uptime)
    }

    /// Throws 429 above a limit. A refused request counts against neither.
    func admit(_ caller: Caller) throws(APIError) {
        try long.check(caller)
        try short.admit(caller)
        long.spend(of: caller)
    }
}
