import Foundation
import Messaging
import PushProtocol
import Testing

@testable import RegistryStore

@Suite struct TargetKindsTests {
    static func content(_ pushType: String?, event: String? = nil, fcm: FCMOverride? = nil) -> Content {
        Content(
            body: "hi",
            apns: APNsOverride(
                headers: pushType.map { ["Apns-Push-Type": $0] },
                payload: event.map { ["aps": ["event": .string($0)]] }),
            fcm: fcm)
    }

    @Test(arguments: [
        (nil, RegistrationKind.alert), ("alert", .alert), ("background", .alert), ("voip", .voip),
        ("complication", .complication), ("fileprovider", .fileProvider), ("mdm", .mdm), ("location", .location),
        ("pushtotalk", .pushToTalk), ("widgets", .widgets), ("controls", .controls), ("liveactivity", .liveActivity),
        ("not-known-here", .alert),
    ])
    func `a push type goes to tokens of its kind`(pushType: String?, kind: RegistrationKind) {
        let selection = TargetKinds(Self.content(pushType))
        #expect(RegistrationKind.allCases.filter { $0.provider == .apns && selection.includes($0) } == [kind])
    }

    @Test func `a Live Activity is started by one kind of token and updated by another`() {
        #expect(TargetKinds(Self.content("liveactivity", event: "start")).apns == .pushToStart)
        #expect(TargetKinds(Self.content("liveactivity", event: "end")).apns == .liveActivity)
    }

    @Test func `FCM gets content that is not only for Apple, and content with an FCM block`() {
        let fcm = RegistrationKind.allCases.filter { $0.provider == .fcm }
        #expect(fcm.count == 3)
        for pushType in [nil, "voip", "pushtotalk"] {
            #expect(fcm.allSatisfy { TargetKinds(Self.content(pushType)).includes($0) })
        }
        #expect(!fcm.contains { TargetKinds(Self.content("liveactivity")).includes($0) })
        let both = TargetKinds(Self.content("liveactivity", fcm: FCMOverride(message: ["data": [:]])))
        #expect(fcm.allSatisfy { both.includes($0) })
    }

    @Test func `a browser gets alerts with a text only, because it shows a notification for each push`() {
        func includes(_ content: Content) -> Bool { TargetKinds(content).includes(.webPush) }
        #expect(includes(Content(title: "T")) && includes(Content(body: "B")))
        #expect(includes(Content(web: WebPushOverride(message: ["notification": ["title": "T"]]))))
        #expect(!includes(Content(badge: 3)) && !includes(Content(title: "")) && !includes(Content(silent: true)))
        #expect(!includes(Self.content("voip")) && !includes(Self.content("liveactivity")))
    }

    @Test func `of a registration token and a FID of one installation, one is used`() {
        func registration(_ kind: RegistrationKind, _ installation: String?, day: Int) -> Registration {
            var one = PushPlanTests.registration("a", "\(kind)-\(installation ?? "")", .fcm)
            (one.kind, one.installation) = (kind, installation.flatMap { InstallationID(rawValue: $0) })
            one.registeredAt = PushPlanTests.now + .seconds(day * 86_400)
            return one
        }
        func used(_ registrations: [Registration]) -> [RegistrationKind] {
            registrations.withFallbacks().map(\.kind)
        }
        let fid = registration(.fid, "phone", day: 0)
        #expect(used([registration(.fcmToken, "phone", day: 0), fid]) == [.fid])
        #expect(used([registration(.fcmToken, "phone", day: 1), fid]) == [.fcmToken])
        #expect(used([registration(.fcmToken, "tablet", day: 0), fid]) == [.fcmToken, .fid])
        #expect(used([registration(.fcmToken, nil, day: 0), fid]) == [.fcmToken, .fid])
        #expect(used([registration(.fcmToken, "phone", day: 0)]) == [.fcmToken])
    }

    @Test func `a FID is marked as one, and an own topic makes an own push`() {
        var fid = PushPlanTests.registration("a", "f", .fcm)
        fid.kind = .fid
        var other = PushPlanTests.registration("a", "02")
        other.topic = "com.example.watch"
        let plan = PushPlanTests.plan(
            PushPlanTests.notification(to: ["a"]), [fid, other, PushPlanTests.registration("a", "01")])
        #expect(plan.pushes.map { $0.targets.map(\.token.secret) } == [["01"], ["02"], ["f"]])
        #expect(plan.pushes.map { $0.content.apns?.headers } == [nil, ["apns-topic": "com.example.watch"], nil])
        #expect(plan.pushes.map { $0.targets[0].address } == [nil, nil, .fid])
        #expect(Set(plan.pushes.map(\.trace.id)).count == 3)
    }

    @Test func `a user with only devices of another kind gets no-device`() {
        var voip = PushPlanTests.registration("a", "01")
        voip.kind = .voip
        let plan = PushPlanTests.plan(PushPlanTests.notification(to: ["a"]), [voip])
        #expect(plan.pushes.isEmpty)
        #expect(plan.outcomes.flatMap(\.outcomes).map(\.answer) == [.skipped(reason: "no-device")])
    }

    @Test func `a scope selects one of several activities, and FCM phones need no scope`() {
        func activity(_ token: String, _ scope: String?) -> Registration {
            var one = PushPlanTests.registration("a", token)
            (one.kind, one.scope) = (.liveActivity, scope)
            return one
        }
        let devices = [
            activity("01", "match-1"), activity("02", "match-2"), activity("03", nil),
            PushPlanTests.registration("a", "phone", .fcm),
        ]
        func told(_ scope: String?, fcm: FCMOverride? = nil) -> [String] {
            var notification = PushPlanTests.notification(to: ["a"])
            notification.content = Self.content("liveactivity", event: "update", fcm: fcm)
            notification.scope = scope
            return PushPlanTests.plan(notification, devices).pushes.flatMap { $0.targets.map(\.token.secret) }.sorted()
        }
        #expect(told("match-2") == ["02"])
        #expect(told(nil) == ["01", "02", "03"])
        #expect(told("match-2", fcm: FCMOverride(message: ["data": [:]])) == ["02", "phone"])
        #expect(told("match-3") == [])
    }

    @Test func `a broadcast is one push with one target, without a lookup`() {
        var notification = PushPlanTests.notification(to: [])
        notification.broadcast = Broadcast(
            notification: DerivedID.uuid5(DerivedID.namespace, ["b"]),
            to: .channel(ChannelID(rawValue: "dHN0")!, .development))
        let plan = PushPlanTests.plan(notification, [PushPlanTests.registration("a", "01")])
        #expect(plan.pushes.map(\.provider) == [.apns] && plan.pushes.map(\.environment) == [.development])
        #expect(plan.pushes.flatMap { $0.targets.map(\.address) } == [.channel])
        #expect(plan.pushes.flatMap { $0.targets.map(\.token.secret) } == ["dHN0"])
        #expect(plan.outcomes.isEmpty)
        notification.broadcast = Broadcast(
            notification: DerivedID.uuid5(DerivedID.namespace, ["b"]), to: .topic(FCMTopic(rawValue: "t")!))
        #expect(PushPlanTests.plan(notification, []).pushes.map(\.provider) == [.fcm])
        notification.expiresAt = PushPlanTests.now
        let late = PushPlanTests.plan(notification, [])
        #expect(late.pushes.isEmpty)
        #expect(late.outcomes.flatMap(\.outcomes).map(\.answer) == [.expired])
    }
}
