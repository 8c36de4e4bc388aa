import Foundation
import Messaging
import PushProtocol
import Testing

@testable import RegistryStore
@testable import TokenRegistry

/// `devices` of a notification: platforms, and the fallback for devices without another registration.
@Suite struct DeviceSelectionTests {
    private static func registration(
        _ token: String, _ kind: RegistrationKind, on installation: String? = nil, scope: String? = nil,
        isAppleByFCM: Bool = false
    ) -> Registration {
        var registration = PushPlanTests.registration("a", token, kind.provider)
        registration.kind = kind
        registration.installation = installation.flatMap(InstallationID.init(rawValue:))
        registration.scope = scope
        registration.isAppleByFCM = isAppleByFCM
        return registration
    }

    /// The tokens that get a push, then the other tokens with their reasons.
    private static func plan(_ devices: DeviceSelection?, _ registrations: [Registration]) -> [String] {
        var notification = PushPlanTests.notification(to: ["a"])
        notification.devices = devices
        let plan = PushPlanTests.plan(notification, registrations)
        let reasons = plan.outcomes.flatMap(\.outcomes).map { outcome in
            guard case .skipped(let reason) = outcome.answer else { return "\(outcome.answer)" }
            let token = registrations.first { $0.device == outcome.device }?.token.secret ?? "-"
            return "\(token) \(reason)"
        }
        return plan.pushes.flatMap(\.targets).map(\.token.secret).sorted() + reasons.sorted()
    }

    @Test func `given platforms, then other devices are skipped with the reason`() {
        let registrations = [
            registration("01", .alert), registration("02", .fcmToken),
            registration("03", .fcmToken, isAppleByFCM: true),
            registration("04", .fcmWeb),
        ]
        func skipped(_ tokens: String...) -> [String] { tokens.map { "\($0) other-platform" } }
        #expect(Self.plan(nil, registrations) == ["01", "02", "03", "04"])
        #expect(
            Self.plan(DeviceSelection(platforms: [.apple]), registrations) == ["01", "03"] + skipped("02", "04"))
        #expect(
            Self.plan(DeviceSelection(platforms: [.android, .web]), registrations)
                == ["02", "04"] + skipped("01", "03"))
        #expect(Self.plan(DeviceSelection(platforms: []), registrations) == skipped("01", "02", "03", "04"))
    }

    @Test func `given another registration of the device, then its alert is skipped, and other devices get it`() {
        let registrations = [
            registration("01", .alert, on: "phone"), registration("02", .liveActivity, on: "phone", scope: "order-1"),
            registration("03", .fcmToken, on: "tablet"),
        ]
        func unless(_ scope: String?) -> DeviceSelection {
            DeviceSelection(unless: DeviceSelection.Registered(kind: .liveActivity, scope: scope))
        }
        let skipped = ["01 has-other-registration"]
        #expect(Self.plan(unless("order-1"), registrations) == ["03"] + skipped)
        #expect(Self.plan(unless(nil), registrations) == ["03"] + skipped)
        #expect(Self.plan(unless("order-2"), registrations) == ["01", "03"])
    }

    @Test func `FCM only for devices without an APNs registration`() {
        let unless = DeviceSelection(unless: DeviceSelection.Registered(kind: .alert))
        let both = [
            registration("01", .alert, on: "phone"), registration("02", .fcmToken, on: "phone"),
            registration("03", .fcmToken, on: "tablet"),
        ]
        #expect(Self.plan(unless, both) == ["01", "03", "02 has-other-registration"])
        // Without installations, the user's registration counts.
        let unknown = [registration("01", .alert), registration("02", .fcmToken)]
        #expect(Self.plan(unless, unknown) == ["01", "02 has-other-registration"])
    }

    @Test func `given no device at all, then the reason is no-device`() {
        #expect(Self.plan(DeviceSelection(platforms: [.apple]), []) == ["- no-device"])
    }

    @Test func `many skipped devices make several messages within the size limit`() throws {
        let registrations = (0..<2100).map { registration(String(format: "%04d", $0), .fcmToken) }
        var notification = PushPlanTests.notification(to: ["a"])
        notification.devices = DeviceSelection(platforms: [.apple])
        let plan = PushPlanTests.plan(notification, registrations)
        #expect(plan.pushes.isEmpty && plan.outcomes.map(\.outcomes.count) == [800, 800, 500])
        #expect(Set(plan.outcomes.map(\.trace.id)).count == 3)
        for message in try plan.outbound() { #expect(message.body.count <= WireCoding.maximumBodySize) }
    }

    private func registration(
        _ token: String, _ kind: RegistrationKind, on installation: String? = nil, scope: String? = nil,
        isAppleByFCM: Bool = false
    ) -> Registration {
        Self.registration(token, kind, on: installation, scope: scope, isAppleByFCM: isAppleByFCM)
    }

    @Test func `a notification without the member reads as before`() throws {
        var notification = PushPlanTests.notification(to: ["a"])
        let before = try notification.wireBody()
        #expect(!String(decoding: before, as: UTF8.self).contains("devices"))
        notification.devices = DeviceSelection(
            platforms: [.apple], unless: DeviceSelection.Registered(kind: .liveActivity, scope: "s"))
        #expect(try PushProtocol.Notification.decode(wireBody: try notification.wireBody()) == notification)
    }
}
