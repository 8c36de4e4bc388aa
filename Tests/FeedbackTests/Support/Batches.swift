import FoundationEssentials
import PushProtocol

@testable import Feedback
@testable import FeedbackStore

extension Timestamp {
    /// 2026-01-01T00:00:00Z, as in the test vectors (ProviderFacts.md §E).
    static let start = Timestamp(milliseconds: 1_767_225_600_000)
}

/// Builds outcomes messages as senders publish them.
enum Batches {
    static let app = AppID(rawValue: "family-portal")!
    static let other = AppID(rawValue: "hide-and-seek")!
    static let registered = Timestamp(milliseconds: 1_767_220_000_000)
    static let sender = UUID(uuidString: "55555555-5555-5555-8555-555555555555")!

    /// A stable device id.
    static func device(_ number: Int) -> UUID { DerivedID.uuid5(DerivedID.namespace, ["test-device", "\(number)"]) }
    /// A stable notification id.
    static func notification(_ number: Int) -> UUID {
        DerivedID.uuid5(DerivedID.namespace, ["test-notification", "\(number)"])
    }

    static let route = FeedbackRoute(app: app, origin: .apns, environment: .production)
    /// A sender's report of a spike, without outcomes.
    static func spikeReport(of spike: RouteHealth.BadTokenSpike) -> Outcomes {
        batch(badToken, devices: [], at: spike.until, answered: 0, spike: spike)
    }

    static let badToken = Outcome.Answer.rejected(reason: "BadDeviceToken", suspectToken: true)

    /// A batch with `answer` for each of `devices` to one notification, and with route health if `answered` is set.
    ///
    /// - Parameter owner: The owner of each device's established registration; by default a different one for each.
    static func batch(
        _ answer: Outcome.Answer, devices: some Sequence<Int>, notification: Int = 0, app: AppID = app,
        origin: Outcomes.Origin = .apns, environment: ProviderEnvironment? = .production, at: Timestamp = .start,
        registeredAt: Timestamp? = registered, answered: Int? = nil, acceptedAt: Timestamp? = nil,
        elsewhere: ProviderEnvironment? = nil, refusedFID: String? = nil, spike: RouteHealth.BadTokenSpike? = nil,
        owner: (Int) -> Int? = { $0 }
    ) -> Outcomes {
        Outcomes(
            trace: Trace(
                id: DerivedID.uuid5(DerivedID.namespace, ["batch", "\(notification)"]), correlation: "event-1",
                causation: "push-1", traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
            app: app, origin: origin, environment: environment, lane: .interactive,
            routeHealth: answered.map {
                RouteHealth(
                    sender: sender, minute: at.minute, answered: $0, acceptedAt: acceptedAt, badTokenSpike: spike)
            },
            outcomes: devices.map {
                Outcome(
                    notification: Self.notification(notification), device: device($0), answer: answer, at: at,
                    registeredAt: registeredAt, elsewhere: elsewhere, refusedFID: refusedFID,
                    owner: owner($0).map { UserHash(rawValue: Int64($0)) })
            })
    }
}
