import Crypto
import HTTPAuth
import HTTPTypes
import Hummingbird
import Metrics
import PushProtocol

/// `POST /_matrix/push/v1/notify`: a push gateway for Matrix homeservers.
struct MatrixRoutes: Sendable {
    /// The maximum body, in bytes. A Matrix event has at most 64 KiB.
    static let maximumBody = 96 << 10
    /// The maximum number of requests in progress. Anybody may call, so they have memory of their own.
    static let maximumRequests = 32
    /// The maximum requests about one user a minute.
    static let userRequests = 300

    /// Empty if the gateway is off.
    private let keys: [SymmetricKey]
    private let limit = RateLimiter<MatrixPushkey>("matrix", perMinute: userRequests)
    private let isConfigured: @Sendable (AppID) -> Bool
    private let publish: @Sendable ([IncomingEvent]) async -> [EventRefusal?]
    private let hasNoDevice: @Sendable (DomainEvent) async -> Bool
    private let running = ConcurrencyLimit(maximumRequests)

    /// - Parameters:
    ///   - keys: the keys of pushkeys; empty switches the gateway off.
    ///   - publish: publishes events and returns the reason for each that is not accepted.
    ///   - hasNoDevice: whether the registry has no device for an event's user.
    init(
        keys: [SymmetricKey], isConfigured: @escaping @Sendable (AppID) -> Bool,
        publish: @escaping @Sendable ([IncomingEvent]) async -> [EventRefusal?],
        hasNoDevice: @escaping @Sendable (DomainEvent) async -> Bool
    ) {
        self.keys = keys
        self.isConfigured = isConfigured
        self.publish = publish
        self.hasNoDevice = hasNoDevice
    }

    static var off: MatrixRoutes {
        MatrixRoutes(
            keys: [], isConfigured: { _ in false }, publish: { $0.map { _ in nil } }, hasNoDevice: { _ in false })
    }

    func add(to router: Router<BasicRequestContext>) {
        router.post("_matrix/push/v1/notify") { request, context in
            await Response.answeringPublisher(context) { try await answer(request) }
        }
    }

    /// A device with a valid pushkey.
    private struct Target {
        let pushkey: String
        let event: IncomingEvent?
    }

    private func answer(_ request: Request) async throws -> Response {
        guard !keys.isEmpty else {
            throw APIError(status: .notFound, message: "the Matrix gateway is off; set EVENTS_API_MATRIX_KEY")
        }
        let reading = try await running.run {
            let notify = try MatrixNotify(try await request.bytes(upTo: Self.maximumBody))
            let targets = try self.targets(of: notify)
            let events = targets.compactMap(\.event)
            // The homeserver sends the whole request again. Events with the same id are not decided twice.
            if let refusal = await publish(events).lazy.compactMap({ $0 }).first { throw refusal }
            return (notify, targets)
        }
        guard let (notify, targets) = reading else { throw APIError.busy }
        var rejected: [String] = []
        for target in targets {
            guard notify.isAboutEvent, let event = target.event?.event, await hasNoDevice(event) else { continue }
            rejected.append(target.pushkey)
        }
        count(targets.count - rejected.count, "published")
        count(rejected.count, "rejected")
        return .json(.ok, ["rejected": .array(rejected.map(JSONValue.string))])
    }

    /// - Throws: 403 if no pushkey is valid, 429 above a user's limit.
    private func targets(of notify: MatrixNotify) throws -> [Target] {
        var targets: [Target] = []
        var seen: Set<MatrixPushkey> = []
        for device in notify.devices {
            guard let pushkey = MatrixPushkey(device.pushkey, keys: keys), isConfigured(pushkey.app) else { continue }
            guard seen.insert(pushkey).inserted else { continue }
            try limit.admit(pushkey)
            let reader = EventReader(app: pushkey.app, mayRequestNotifications: true)
            let body = try notify.event(to: pushkey, sound: device.sound)
            targets.append(Target(pushkey: device.pushkey, event: try body.map { try reader.structured($0) }))
        }
        count(notify.devices.count - targets.count, "invalid")
        // Not “rejected”: the homeserver would delete the pusher, and a wrong key in the setting would end all of them.
        guard !targets.isEmpty else {
            throw APIError(
                status: .forbidden,
                message: "no pushkey is signed for a configured app with a key of EVENTS_API_MATRIX_KEY")
        }
        return targets
    }

    private func count(_ devices: Int, _ result: String) {
        guard devices > 0 else { return }
        Counter(label: "heliograph_events_api_matrix_devices_total", dimensions: [("result", result)])
            .increment(by: devices)
    }
}
