import PushProtocol
import Synchronization

/// The provider limits before a rejection or GOAWAY. `nil` means unlimited.
struct LimitSettings: Hashable, Sendable {
    enum RetryAfter: String, Hashable, Sendable, CaseIterable {
        case seconds, date, none
    }

    /// Pushes to one device token; further ones get `TooManyRequests`.
    var apnsDevicePerSecond: Int?
    /// The error count of a connection, without 410. Half of it leaves one stream, all of it ends the connection with
    /// GOAWAY. `BadDeviceToken` counts twice; an acceptance resets the count (ProviderFacts.md §A.3).
    var apnsErrors: Int?
    /// Milliseconds without a request before GOAWAY with `IdleTimeout`.
    var apnsIdle: Int?
    /// Messages to one device. Google's limits are 240 a minute and 5,000 an hour (ProviderFacts.md §B.5).
    var fcmDevicePerMinute: Int?
    var fcmDevicePerHour: Int?
    /// Messages and rejections of a project. Google's default is 600,000 (Firebase: Throttling and quotas).
    var fcmProjectPerMinute: Int?
    /// The form of `Retry-After` in FCM's 429 responses.
    var fcmRetryAfter = RetryAfter.seconds
    /// Milliseconds without a request before GOAWAY `session_timed_out`.
    var fcmIdle: Int?
    /// Messages to one subscription; further ones get `TooManyRequests`.
    var webPushSubscriptionPerMinute: Int?
    /// Milliseconds without a request before GOAWAY.
    var webPushIdle: Int?
    /// PINGs on a connection to FCM; the next one gets GOAWAY `too_many_pings` (ProviderFacts.md §B.4).
    var fcmPingsPerMinute: Int? = 2

    /// Reads all limits. Absent ones get their default; `null` means unlimited.
    init(_ value: JSONValue) throws(ControlRequestError) {
        let members = try MemberReader(
            value, at: "",
            known: [
                "apns_device_per_second", "apns_errors", "apns_idle_ms", "fcm_device_per_minute",
                "fcm_device_per_hour", "fcm_project_per_minute", "fcm_retry_after", "fcm_idle_ms",
                "fcm_pings_per_minute", "webpush_subscription_per_minute", "webpush_idle_ms",
            ])
        func limit(_ name: String) throws(ControlRequestError) -> Int? {
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
        webPushSubscriptionPerMinute = try limit("webpush_subscription_per_minute")
        webPushIdle = try limit("webpush_idle_ms")
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
            writer.limit("webpush_subscription_per_minute", webPushSubscriptionPerMinute)
            writer.limit("webpush_idle_ms", webPushIdle)
        }
    }
}

extension JSONWriter {
    fileprivate mutating func limit(_ name: String, _ limit: Int?) {
        self.name(name)
        value(limit.map { .int(Int64($0)) } ?? .null)
    }
}

/// The limits in force and their counters. Safe from any thread.
final class RateLimits: Sendable {
    private struct Window {
        var start: Timestamp
        var count = 0
    }

    private struct State {
        var limits = LimitSettings()
        var windows: [String: Window] = [:]
    }

    /// The maximum number of counters. Beyond it, all counters restart.
    private static let maximumWindows = 1_000_000

    private let state = Mutex(State())

    var limits: LimitSettings {
        get { state.withLock { $0.limits } }
        set {
            state.withLock { state in
                state.limits = newValue
                state.windows = [:]
            }
        }
    }

    /// Counts one use of `limit` for `subject`. A window starts with its first use.
    ///
    /// - Returns: the time until the window ends, if the limit is reached.
    func consume(_ limit: KeyPath<LimitSettings, Int?>, per window: Duration, on subject: String, at now: Timestamp)
        -> Duration?
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
