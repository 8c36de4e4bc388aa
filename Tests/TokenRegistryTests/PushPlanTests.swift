import Foundation
import Messaging
import PushProtocol
import Testing

@testable import RegistryStore
@testable import TokenRegistry

@Suite struct PushPlanTests {
    static let app = AppID(rawValue: "family-portal")!
    static let now = Timestamp(milliseconds: 1_767_225_600_000)

    static func user(_ name: String) -> UserID { UserID(rawValue: name)! }

    static func registration(
        _ user: String, _ token: String, _ provider: Provider = .apns,
        _ environment: ProviderEnvironment = .production
    ) -> Registration {
        let claim = RegistrationRequest(
            app: app, user: Self.user(user), provider: provider, environment: environment,
            token: DeviceToken(secret: token))
        return Registration(
            device: claim.device, app: app, user: claim.user, provider: provider, environment: environment,
            token: claim.token, registeredAt: now)
    }

    static func notification(to users: [String], expiresAt: Timestamp? = nil) -> PushProtocol.Notification {
        PushProtocol.Notification(
            trace: Trace(id: DerivedID.uuid5(DerivedID.namespace, ["n"]), correlation: "e", causation: "e"), app: app,
            rule: "r", lane: .bulk, content: Content(body: "hi"), expiresAt: expiresAt,
            recipients: users.map {
                .init(user: user($0), notification: DerivedID.uuid5(DerivedID.namespace, [$0]), badge: 2)
            })
    }

    static func plan(_ notification: PushProtocol.Notification, _ registrations: [Registration]) -> PushPlan {
        let devices = notification.recipients.map { recipient in registrations.filter { $0.user == recipient.user } }
        return PushPlan(notification, devices: devices, now: now)
    }

    @Test func `targets are grouped by provider and environment, with their recipient's id and badge`() {
        let plan = Self.plan(
            Self.notification(to: ["a", "b"]),
            [
                Self.registration("a", "01"), Self.registration("a", "02", .fcm), Self.registration("b", "03"),
                Self.registration("b", "04", .apns, .development),
            ])
        #expect(
            plan.pushes.map { [$0.provider.rawValue, $0.environment.rawValue] }
                == [["apns", "development"], ["apns", "production"], ["fcm", "production"]])
        #expect(plan.pushes.map { $0.targets.map(\.token.secret) } == [["04"], ["01", "03"], ["02"]])
        #expect(plan.pushes[1].targets[1].notification == DerivedID.uuid5(DerivedID.namespace, ["b"]))
        #expect(plan.pushes.allSatisfy { $0.lane == .bulk && $0.targets.allSatisfy { $0.badge == 2 } })
        #expect(plan.outcomes.isEmpty)
    }

    @Test func `a user without a device gets an outcome`() {
        let plan = Self.plan(Self.notification(to: ["a", "nobody"]), [Self.registration("a", "01")])
        #expect(plan.outcomes.flatMap(\.outcomes).map(\.answer) == [.skipped(reason: "no-device")])
        #expect(plan.outcomes.map(\.origin) == [.registry])
    }

    @Test func `501 targets make two pushes with deterministic ids`() {
        let registrations = (0...500).map { Self.registration("a", String(format: "%04x", $0)) }
        let plan = Self.plan(Self.notification(to: ["a"]), registrations)
        #expect(plan.pushes.map(\.targets.count) == [500, 1])
        #expect(Set(plan.pushes.map(\.trace.id)).count == 2)
        #expect(plan == Self.plan(Self.notification(to: ["a"]), registrations))
    }

    @Test func `long tokens make more pushes, each within the size limit`() throws {
        let registrations = (0..<200).map { Self.registration("a", String(format: "%04096d", $0), .fcm) }
        let plan = Self.plan(Self.notification(to: ["a"]), registrations)
        #expect(plan.pushes.flatMap(\.targets).count == 200)
        let arrival = Timestamp(milliseconds: 1_790_000_000_123)
        for message in try plan.outbound(arrivedAt: arrival) {
            #expect(message.body.count <= WireCoding.maximumBodySize)
            #expect(message.arrivedAt == arrival)
        }
    }

    @Test func `an FCM registration has one environment, whatever the build says`() {
        #expect(Self.registration("a", "t", .fcm, .development).device == Self.registration("a", "t", .fcm).device)
    }

    @Test func `the rule's delivery options are passed on`() {
        var notification = Self.notification(to: ["a"])
        notification.delivery = .atMostOnce
        #expect(Self.plan(notification, [Self.registration("a", "01")]).pushes.map(\.delivery) == [.atMostOnce])
    }

    @Test func `an expired notification gives expired outcomes for each recipient`() {
        let plan = Self.plan(
            Self.notification(to: ["a", "b"], expiresAt: Self.now), [Self.registration("a", "01")])
        #expect(plan.pushes.isEmpty)
        #expect(plan.outcomes.flatMap(\.outcomes).map(\.answer) == [.expired, .expired])
    }

    @Test func `one token of one user in two apps is two registrations`() {
        let other = RegistrationRequest(
            app: AppID(rawValue: "other")!, user: Self.user("a"), provider: .apns, environment: .production,
            token: DeviceToken(secret: "01"))
        #expect(other.device != Self.registration("a", "01").device)
    }
}
