import Foundation
import PushProtocol
import Testing

/// One file for each message and version. Files are never changed: builds must read messages in flight.
@Suite struct MessageGoldenTests {
    static let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Golden")

    static func bytes(_ name: String) throws -> [UInt8] {
        Array(try Data(contentsOf: folder.appending(path: name)))
    }

    /// Decodes the golden file, compares it with the value, and compares the encoded value with the file.
    static func check<Message: WireMessage & Equatable>(_ name: String, _ expected: Message) throws {
        let golden = try bytes(name)
        #expect(try Message.decode(wireBody: golden) == expected)
        let written = try JSONDecoder().decode(JSONValue.self, from: Data(try expected.wireBody()))
        #expect(try written == JSONDecoder().decode(JSONValue.self, from: Data(golden)))
    }

    static let trace = Trace(
        id: UUID(uuidString: "11111111-1111-5111-8111-111111111111")!, correlation: "event-1", causation: "event-1",
        traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
    static let app = AppID(rawValue: "family-portal")!
    static let notification = UUID(uuidString: "22222222-2222-5222-8222-222222222222")!
    static let device = UUID(uuidString: "33333333-3333-5333-8333-333333333333")!
    static let campaign = UUID(uuidString: "66666666-6666-5666-8666-666666666666")!
    static let moment = Timestamp(milliseconds: 1_767_225_600_123)
    static let content = Content(
        title: "New message", body: "Pat: hi", badge: 1, sound: "default", category: "chat_message",
        data: ["message_id": 123, "thread_id": nil], interruptionLevel: .timeSensitive,
        apns: APNsOverride(headers: ["apns-priority": "10"], payload: ["aps": ["content-available": 1]]),
        fcm: FCMOverride(message: ["android": ["priority": "HIGH"]]))

    @Test func `notification version 1`() throws {
        try Self.check(
            "notification.v1.json",
            PushProtocol.Notification(
                trace: Self.trace, app: Self.app, rule: "chat-message", lane: .interactive, content: Self.content,
                expiresAt: Timestamp(milliseconds: 1_767_225_600_000),
                recipients: [.init(user: UserID(rawValue: "457")!, notification: Self.notification, badge: 3)]))
    }

    /// Two devices with only the common members; the list of version 1 has the first.
    static let push = Push(
        trace: trace, app: app, provider: .apns, environment: .production, lane: .interactive,
        content: content, expiresAt: Timestamp(milliseconds: 1_767_225_600_000),
        targets: [
            .init(
                device: device, token: DeviceToken(secret: "0a0b"), notification: notification, badge: 3,
                registeredAt: Timestamp(milliseconds: 1_767_220_000_000)),
            .init(
                device: UUID(uuidString: "55555555-5555-5555-8555-555555555555")!, token: DeviceToken(secret: "0c0d"),
                notification: UUID(uuidString: "44444444-4444-5444-8444-444444444444")!,
                registeredAt: Timestamp(milliseconds: 1_767_220_000_001)),
        ])

    /// A push to the addresses of FCM other than registration tokens.
    static let pushToAddresses = {
        func target(_ text: String, _ address: Push.Address?) -> Push.Target {
            .init(
                device: device, token: DeviceToken(secret: text), address: address, notification: notification,
                registeredAt: Timestamp(milliseconds: 1_767_220_000_000))
        }
        return Push(
            trace: trace, app: app, provider: .fcm, environment: .production, lane: .bulk,
            content: Content(body: "B", fcm: FCMOverride(validateOnly: true)),
            targets: [
                target("token", nil), target("installation", .fid), target("news", .topic),
                target("'news' in topics", .condition),
            ])
    }()

    @Test func `push version 2`() throws {
        try Self.check("push.v2.json", Self.push)
        try Self.check("push.addresses.v2.json", Self.pushToAddresses)
        var push = Self.pushToAddresses
        push.targets.removeLast(2)
        push.targets[0].owner = UserHash(rawValue: 9_007_199_254_740_991)
        push.targets[1].fallback = DeviceToken(secret: "token")
        try Self.check("push.fallbacks.v2.json", push)
        var ofCampaign = Self.push
        ofCampaign.campaign = Self.campaign
        try Self.check("push.campaign.v2.json", ofCampaign)
    }

    @Test func `push version 1 is read`() throws {
        var first = Self.push
        first.targets.removeLast()
        #expect(try Push.decode(wireBody: Self.bytes("push.v1.json")) == first)
        #expect(try Push.decode(wireBody: Self.bytes("push.addresses.v1.json")) == Self.pushToAddresses)
    }

    /// A misaligned table could pair a token with another user.
    @Test(
        arguments: [
            (#""0c0d""#, #""0c0d","0e0f""#, "targets.tokens"), (#","0c0d""#, "", "targets.tokens"),
            (#"[3,null]"#, "[3,null,4]", "targets.badges"),
            ("[1767220000000,1767220000001]", "[]", "targets.registeredAt"),
            (#""notifications":["#, #""others":["#, "targets.notifications"),
        ]
    ) func `a table of targets with misaligned columns is rejected`(
        part: String, other: String, name: String
    ) throws {
        let table = String(decoding: try Self.push.wireBody(), as: UTF8.self)
        let body = table.replacing(part, with: other)
        #expect(body != table)
        let error = #expect(throws: WireError.self) { try Push.decode(wireBody: Array(body.utf8)) }
        #expect("\(try #require(error))".contains(name))
    }

    /// Outcomes that the table cannot represent.
    static let listed = {
        let registered = Timestamp(milliseconds: 1_767_220_000_000)
        func outcome(_ answer: Outcome.Answer, device: UUID? = device) -> Outcome {
            Outcome(
                notification: notification, device: device, answer: answer, at: moment,
                registeredAt: device == nil ? nil : registered)
        }
        return Outcomes(
            trace: trace, app: app, origin: .apns, environment: .production, lane: .interactive,
            outcomes: [
                outcome(.accepted(id: "AAAA")), outcome(.accepted(id: nil)),
                outcome(.unregistered(since: Timestamp(milliseconds: 1), reason: "Unregistered")),
                outcome(.unregistered(since: nil, reason: "UNREGISTERED")),
                outcome(.rejected(reason: "PayloadTooLarge", suspectToken: false)),
                outcome(.rejected(reason: "BadDeviceToken", suspectToken: true)),
                outcome(.throttled(reason: "TooManyRequests")), outcome(.misconfigured(reason: "BadTopic")),
                outcome(.expired), outcome(.skipped(reason: "no-device"), device: nil),
            ])
    }()

    @Test func `outcomes version 2`() throws {
        try Self.check("outcomes.v2.json", Self.listed)
        func accepted(_ device: String, _ notification: UUID, _ id: ProviderMessageID?) -> Outcome {
            Outcome(
                notification: notification, device: UUID(uuidString: device), answer: .accepted(id: id),
                at: Self.moment, registeredAt: nil)
        }
        let (first, second) = (Self.device.uuidString, "55555555-5555-5555-8555-555555555555")
        try Self.check(
            "outcomes.accepted.v2.json",
            Outcomes(
                trace: Self.trace, app: Self.app, origin: .apns, environment: .production, lane: .interactive,
                outcomes: [
                    accepted(first, Self.notification, "66666666-6666-5666-8666-6666666666ab"),
                    accepted(second, UUID(uuidString: "44444444-4444-5444-8444-444444444444")!, nil),
                ]))
        try Self.check(
            "outcomes.accepted.shared.v2.json",
            Outcomes(
                trace: Self.trace, app: Self.app, origin: .fcm, environment: .production, lane: .bulk,
                outcomes: [accepted(first, Self.notification, nil), accepted(second, Self.notification, nil)]))
    }

    @Test func `outcomes of FIDs and with user hashes`() throws {
        func outcome(_ answer: Outcome.Answer, owner: UserHash? = nil) -> Outcome {
            Outcome(
                notification: Self.notification, device: Self.device, answer: answer, at: Self.moment,
                registeredAt: Timestamp(milliseconds: 1_767_220_000_000), refusedFID: "UNREGISTERED", owner: owner)
        }
        try Self.check(
            "outcomes.fid.v2.json",
            Outcomes(
                trace: Self.trace, app: Self.app, origin: .fcm, environment: .production, lane: .bulk,
                outcomes: [
                    outcome(.accepted(id: nil)),
                    outcome(.unregistered(since: nil, reason: "UNREGISTERED"), owner: UserHash(rawValue: 7)),
                ]))
    }

    @Test func `outcomes of version 1 are read`() throws {
        #expect(try Outcomes.decode(wireBody: Self.bytes("outcomes.v1.json")) == Self.listed)
    }

    @Test func `a list and a table in one message are both read, and one is required`() throws {
        let table = String(decoding: try Self.bytes("outcomes.accepted.v2.json"), as: UTF8.self)
        let body = try Self.listed.wireBody()
        let member = try #require(table.firstRange(of: #""accepted": {"#))
        let accepted = String(table[member.lowerBound...])
        let both = try Outcomes.decode(
            wireBody: Array((String(decoding: body, as: UTF8.self).dropLast() + "," + accepted).utf8))
        #expect(both.outcomes.count == Self.listed.outcomes.count + 2)
        #expect(throws: WireError.self) {
            try Outcomes.decode(wireBody: Array(table.replacing(#""accepted": {"#, with: #""rejected": {"#).utf8))
        }
    }

    @Test(arguments: [
        (#""ids": ["#, #""ids": ["a", "#, "ids"),
        (#""notifications": ["#, #""notifications": ["77777777-7777-5777-8777-777777777777", "#, "notifications"),
    ])
    func `a table with columns of different length is rejected with the column's name`(
        column: String, longer: String, name: String
    ) throws {
        let table = String(decoding: try Self.bytes("outcomes.accepted.v2.json"), as: UTF8.self)
        let error = #expect(throws: WireError.self) {
            try Outcomes.decode(wireBody: Array(table.replacing(column, with: longer).utf8))
        }
        #expect("\(try #require(error))".contains(name))
    }

    @Test func `at-most-once delivery and its unknown outcome are encoded and decoded`() throws {
        var push = try Push.decode(wireBody: Self.bytes("push.v1.json"))
        #expect(push.delivery == nil)
        push.delivery = .atMostOnce
        let body = try push.wireBody()
        #expect(String(decoding: body, as: UTF8.self).contains(#""delivery":"at-most-once""#))
        #expect(try Push.decode(wireBody: body) == push)

        var outcomes = try Outcomes.decode(wireBody: Self.bytes("outcomes.v1.json"))
        outcomes.outcomes[0].answer = .unknown(reason: "connection-lost")
        #expect(try Outcomes.decode(wireBody: outcomes.wireBody()) == outcomes)
    }

    @Test func `a timestamp keeps its millisecond through Foundation's Date`() {
        for milliseconds in Int64(1_767_225_600_000)..<1_767_225_602_000 {
            let moment = Timestamp(milliseconds: milliseconds)
            #expect(Timestamp(moment.date) == moment)
        }
        #expect(Timestamp(Date(timeIntervalSince1970: 1_767_225_600.000_999)).milliseconds == 1_767_225_600_000)
    }

    @Test func `route health and the accepting environment are encoded and decoded, and absent in older messages`()
        throws
    {
        var outcomes = try Outcomes.decode(wireBody: Self.bytes("outcomes.v1.json"))
        #expect(outcomes.routeHealth == nil)
        #expect(outcomes.outcomes.allSatisfy { $0.elsewhere == nil })
        outcomes.routeHealth = RouteHealth(
            sender: Self.device, minute: Timestamp(milliseconds: 1_767_225_659_999).minute, answered: 100,
            acceptedAt: nil)
        #expect(try Outcomes.decode(wireBody: outcomes.wireBody()) == outcomes)
        outcomes.routeHealth?.badTokenSpike = .init(since: .init(milliseconds: 1), until: .init(milliseconds: 2))
        outcomes.outcomes[0].elsewhere = .development
        #expect(outcomes.routeHealth?.minute == Timestamp(milliseconds: 1_767_225_600_000))
        #expect(try Outcomes.decode(wireBody: outcomes.wireBody()) == outcomes)
        outcomes.outcomes = []
        #expect(try Outcomes.decode(wireBody: outcomes.wireBody()) == outcomes)
    }

    @Test(arguments: [
        "register", "register.installation", "unregister", "unregister.at", "deactivate", "suspect", "correct",
        "cancel",
    ])
    func `device command version 1`(name: String) throws {
        let user = UserID(rawValue: "457")!
        let token = DeviceToken(secret: "0a0b")
        let at = Timestamp(milliseconds: 1_767_225_000_000)
        let command: DeviceCommand.Command =
            switch name {
            case "register":
                .register(RegistrationPayload(user: user, provider: .apns, environment: .development, token: token))
            case "register.installation":
                .register(
                    RegistrationPayload(
                        user: user, provider: .apns, environment: .production, token: token, kind: .liveActivity,
                        installation: InstallationID(rawValue: "c-1"), scope: "match-7", topic: "com.example.other",
                        locale: "de-CH", timeZone: "Europe/Zurich", appVersion: "4.2", at: at))
            case "unregister":
                .unregister(user: user, provider: .fcm, environment: .production, token: token, at: nil)
            case "unregister.at":
                .unregister(user: user, provider: .fcm, environment: .production, token: token, at: at)
            case "deactivate":
                .deactivate(device: Self.device, notRegisteredSince: at, reason: "Unregistered")
            case "suspect": .suspect(device: Self.device, at: at, reason: "UNREGISTERED")
            case "cancel": .cancel(campaign: Self.campaign)
            default: .correct(device: Self.device, environment: .production)
            }
        let message = DeviceCommand(trace: Self.trace, app: Self.app, command: command)
        try Self.check("device-command.\(name).v1.json", message)
        #expect(message.routingKey == "command.\(name.prefix { $0 != "." }).\(message.app)")
    }

    @Test(arguments: [DeviceEvent.Change.replaced, .signedOut, .userErased])
    func `device event version 1`(change: DeviceEvent.Change) throws {
        let device = DeviceEvent.Device(
            id: Self.device, provider: .fcm, environment: .production, kind: .fid,
            installation: InstallationID(rawValue: "c-1"), active: false)
        let reasons: [DeviceEvent.Change: String] = [.replaced: "the token changed", .signedOut: "unregistered"]
        let message = DeviceEvent(
            trace: Self.trace, app: Self.app, change: change, user: UserID(rawValue: "457")!,
            device: change == .userErased ? nil : device, reason: reasons[change],
            at: Timestamp(milliseconds: 1_767_225_000_000),
            revokes: change == .signedOut ? Timestamp(milliseconds: 1_767_220_000_000) : nil)
        try Self.check("device-event.\(change.rawValue).v1.json", message)
        #expect(message.routingKey == "event.\(change.rawValue)")
    }

    @Test func `notification revocation version 1`() throws {
        let other = UUID(uuidString: "44444444-4444-5444-8444-444444444444")!
        let message = NotificationRevocation(
            trace: Self.trace, app: Self.app, notifications: [Self.notification, other], at: Self.moment)
        try Self.check("notification-revocation.v1.json", message)
        let golden = try Self.bytes("notification-revocation.v1.json")
        #expect(try SenderRevocation(wireBody: golden) == .notifications(message))
        let event = try Self.bytes("device-event.signed-out.v1.json")
        #expect(try SenderRevocation(wireBody: event) == .device(try DeviceEvent.decode(wireBody: event)))
    }

    @Test func `channel request version 1`() throws {
        func check(_ name: String, _ operation: ChannelRequest.Operation) throws {
            try Self.check(
                "channel-request.\(name).v1.json",
                ChannelRequest(
                    trace: Self.trace, app: Self.app, environment: .production, id: Self.notification,
                    operation: operation))
        }
        try check("create", .create)
        try check("delete", .delete(ChannelID(rawValue: "dHN0")!))
    }

    @Test func `channel answer version 1`() throws {
        func check(_ name: String, _ result: ChannelAnswer.Result) throws {
            try Self.check(
                "channel-answer.\(name).v1.json",
                ChannelAnswer(
                    trace: Self.trace, app: Self.app, environment: .production, id: Self.notification, result: result))
        }
        try check("created", .created(ChannelID(rawValue: "dHN0")!))
        try check("deleted", .deleted)
        try check("refused", .refused(reason: "FeatureNotEnabled"))
    }

    @Test func `a start with channels`() throws {
        let start: JSONValue = ["aps": ["event": "start"]]
        try Self.check(
            "notification.channels.v1.json",
            PushProtocol.Notification(
                trace: Self.trace, app: Self.app, rule: "match-start", lane: .interactive,
                content: Content(
                    title: "Match",
                    apns: APNsOverride(
                        headers: ["apns-push-type": "liveactivity"], payload: start,
                        channels: ["production": ChannelID(rawValue: "dHN0")!])),
                recipients: [.init(user: UserID(rawValue: "457")!, notification: Self.notification)]))
    }

    @Test func `census report version 1`() throws {
        var (settled, retried) = (CensusKeys(), CensusKeys())
        settled.append(Self.notification)
        retried.append(Self.notification, at: Self.moment)
        try Self.check(
            "census-report.v1.json",
            CensusReport(
                trace: Self.trace, service: "token-registry", process: Self.device, at: Self.moment, oldest: 1250,
                settled: settled, retried: retried))
    }

    @Test func `a message of a later version is rejected, naming the supported versions`() throws {
        var text = String(decoding: try Self.bytes("push.v1.json"), as: UTF8.self)
        text.replace("\"version\": 1", with: "\"version\": 3")
        #expect(throws: WireError.invalid(path: "version", problem: "this build reads versions 1 to 2")) {
            try Push.decode(wireBody: Array(text.utf8))
        }
    }

    @Test func `a message of another type is rejected`() throws {
        let notification = try Self.bytes("notification.v1.json")
        #expect(throws: WireError.invalid(path: "type", problem: "expected \"heliograph.push\"")) {
            try Push.decode(wireBody: notification)
        }
    }

    @Test func `an unknown member is ignored`() throws {
        var text = String(decoding: try Self.bytes("push.v1.json"), as: UTF8.self)
        text.replace("\"version\": 1", with: "\"version\": 1, \"future\": {\"a\": [1]}")
        #expect(try Push.decode(wireBody: Array(text.utf8)).app == Self.app)
    }
}
