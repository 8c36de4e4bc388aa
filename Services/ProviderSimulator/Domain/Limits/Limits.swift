import PushProtocol
import Synchronization

/// How much the providers put up with before they refuse or hang up. What is `nil` is without limit.
struct Limits: Hashable, Sendable {
    enum RetryAfter: String, Hashable, Sendable, CaseIterable {
        case seconds, date, none
    }

    /// Pushes to one device token; more are `TooManyRequests` (push-protocols A.9).
    var apnsDevicePerSecond: Int?
    /// How bad a connection's errors may get, 410 not counted: at half of it one stream is left, at all of it comes
    /// GOAWAY (A.3). A `BadDeviceToken` counts double, an acceptance starts anew.
    var apnsErrors: Int?
    /// Milliseconds without a request until GOAWAY with `IdleTimeout`.
    var apnsIdle: Int?
    /// Messages to one device: 240 and 5,000 at Google (B.5).
    var fcmDevicePerMinute: Int?
    var fcmDevicePerHour: Int?
    /// Messages and refusals of a project: 600,000 at Google (B.5).
    var fcmProjectPerMinute: Int?
    /// How FCM's 429 says when to come back.
    var fcmRetryAfter = RetryAfter.seconds
    /// Milliseconds without a request until GOAWAY `session_timed_out` (B.4).
    var fcmIdle: Int?
    /// PINGs of a connection to FCM; the next is answered with GOAWAY `too_many_pings` (B.4).
    var fcmPingsPerMinute: Int? = 2

    /// Reads all of them; what is not named is as it is at the start, and `null` is without limit.
    init(_ value: JSONValue) throws(ControlProblem) {
        let members = try MemberReader(
            value, at: "",
            known: [
                "apns_device_per_second", "apns_errors", "apns_idle_ms", "fcm_device_per_minute",
                "fcm_device_per_hour", "fcm_project_per_minute", "fcm_retry_after", "fcm_idle_ms",
                "fcm_pings_per_minute",
            ])
        func limit(_ name: String) throws(ControlProblem) -> Int? {
            members.raw(name) == .null ? nil : try members.integer(name, in: 1...1_000_000_000)
        }
        apnsDevicePerSecond = try limit("apns_device_per_second")
        apnsErrors = try limit("apns_errors")
        apnsIdle = try limit("apns_idle_ms")
        fcmDevicePerMinute = try limit("fcm_device_per_minute")
        fcmDevicePerHour = try limit("fcm_device_per_hour")
        fcmProjectPerMinute = try limit("fcm_project_per_minute")
        fcmRetryAfter = try members.choice("fcm_retry_after", of: RetryAfter.self) ?? .seconds
        fcmIdle = try limit("fcm_idle_ms")
        if members.has("fcm_pings_per_minute") { fcmPingsPerMinute = try limit("fcm_pings_per_minute") }
    }

    init() {}

    func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.limit("apns_device_per_second", apnsDevicePerSecond)
            writer.limit("apns_errors", apnsErrors)
            writer.limit("apns_idle_ms", apnsIdle)
            writer.limit("fcm_device_per_minute", fcmDevicePerMinute)
            writer.limit("fcm_device_per_hour", fcmDevicePerHour)
            writer.limit("fcm_project_per_minute", fcmProjectPerMinute)
            writer.member("fcm_retry_after", fcmRetryAfter.rawValue)
            writer.limit("fcm_idle_ms", fcmIdle)
            writer.limit("fcm_pings_per_minute", fcmPingsPerMinute)
        }
    }
}

extension JSONWriter {
    fileprivate mutating func limit(_ name: String, _ limit: Int?) {
        self.name(name)
        value(limit.map { .int(Int64($0)) } ?? .null)
    }
}

/// The limits in force, and what was used of them. Safe from any thread.
final class Allowances: Sendable {
    private struct Window {
        var start: Timestamp
        var count = 0
    }

    private struct State {
        var limits = Limits()
        var windows: [String: Window] = [:]
    }

    /// Whatever is counted apart; with more of it, counting begins again.
    private static let maximumWindows = 1_000_000

    private let state = Mutex(State())

    var limits: Limits {
        get { state.withLock { $0.limits } }
        set {
            state.withLock { state in
                state.limits = newValue
                state.windows = [:]
            }
        }
    }

    /// Uses up one of what `limit` allows for `subject`; a window begins with its first use and then is full again.
    ///
    /// - Returns: how long until it is, when there is nothing left.
    func spend(_ limit: KeyPath<Limits, Int?>, per window: Duration, on subject: String, at now: Timestamp) -> Duration?
    {
        state.withLock { state in
            guard let most = state.limits[keyPath: limit] else { return nil }
            if state.windows.count >= Self.maximumWindows { state.windows.removeAll(keepingCapacity: true) }
            var current = state.windows[subject] ?? Window(start: now)
            if now - current.start >= window || now < current.start { current = Window(start: now) }
            guard current.count < most else { return window - (now - current.start) }
            current.count += 1
            state.windows[subject] = current
            return nil
        }
    }
}
