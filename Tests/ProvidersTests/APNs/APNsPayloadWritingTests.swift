import FoundationEssentials
import PushProtocol
import Testing
import TestSupport

@testable import Providers

/// The fast payload encoder: its output equals the rendered payload, or it returns `nil`.
@Suite struct APNsPayloadWritingTests {
    @Test func `the fast encoder writes the rendered bytes and no invalid payload`() throws {
        var random = SplitMix(seed: 11)
        var written = 0
        for _ in 0..<4000 {
            let content = Content.random(&random)
            let badge = Bool.random(using: &random) ? Int.random(in: -1...3, using: &random) : nil
            guard let bytes = APNsPayload.write(content, badge: badge) else { continue }
            written += 1
            let payload = try APNsPayload.render(content, badge: badge)
            #expect(bytes == JSONText.bytes(of: payload), "\(content)")
            #expect(throws: Never.self) { try (content.silent ? APNsPushType.background : .alert).check(payload) }
        }
        #expect(written > 2000)
    }

    @Test func `copying an encoded content writes the rendered bytes and no invalid payload`() throws {
        var random = SplitMix(seed: 12)
        var copied = 0
        for _ in 0..<4000 {
            let content = Content.random(&random)
            let badge = Bool.random(using: &random) ? Int.random(in: -1...3, using: &random) : nil
            var push = Push.sample(targets: [.sample(token: "ab")])
            push.content = content
            guard let text = try Push.decode(wireBody: try push.wireBody()).encodedContent else { continue }
            #expect(text.content == content)
            guard let bytes = APNsPayload.write(text, badge: badge) else { continue }
            copied += 1
            let payload = try APNsPayload.render(content, badge: badge)
            #expect(bytes == JSONText.bytes(of: payload), "\(content)")
            #expect(throws: Never.self) { try (content.silent ? APNsPushType.background : .alert).check(payload) }
        }
        #expect(copied > 500)
    }

    @Test(
        arguments: [
            [:], ["a": 1], ["z": 1], ["a": 1, "z": 2], ["deep_lin": 1, "deep_linka": 2], ["deep_link": "own"],
            ["aps": [:]], nil,
        ] as [[String: JSONValue]?])
    func `deep_link is written in sorted order`(data: [String: JSONValue]?) throws {
        var push = Push.sample(targets: [.sample(token: "ab")])
        push.content = Content(title: "a", deepLink: "app://x", data: data)
        let text = try #require(Push.decode(wireBody: try push.wireBody()).encodedContent)
        guard let bytes = APNsPayload.write(text, badge: nil) else {
            #expect(data?["deep_link"] != nil || data?["aps"] != nil)
            return
        }
        #expect(bytes == JSONText.bytes(of: try APNsPayload.render(push.content, badge: nil)))
    }

    @Test func `a push from the bus and the same decoded push produce equal requests`() throws {
        let codec = APNsCodec(topic: "com.example.app")
        var random = SplitMix(seed: 13)
        for _ in 0..<500 {
            let badges: [Int?] = Bool.random(using: &random) ? [1, 1] : [nil, 2]
            var value = Push.sample(targets: badges.map { .sample(token: "ab", badge: $0) })
            value.content = Content.random(&random)
            if Int.random(in: 0..<4, using: &random) == 0 { value.content.collapseKey = "k" }
            if Bool.random(using: &random) { value.expiresAt = nil }
            let came = try Push.decode(wireBody: try value.wireBody())
            #expect(came == value)
            for (one, other) in zip(came.targets, value.targets) {
                #expect(
                    Self.request(to: one, codec.render(came, now: .sample), codec)
                        == Self.request(to: other, codec.render(value, now: .sample), codec))
            }
        }
    }

    private static func request(
        to target: Push.Target, _ rendering: any PushRendering, _ codec: APNsCodec
    ) -> Result<ProviderRequest, LocalRejection> {
        Result { () throws(LocalRejection) in try codec.request(to: target, from: rendering) }
    }

    @Test func `a content with a payload override is rendered`() {
        let own = Content(title: "a", apns: APNsOverride(headers: nil, payload: ["aps": ["sound": "s"]]))
        #expect(APNsPayload.write(own, badge: nil) == nil)
    }

    @Test func `default templates equal the headers of pushes without overrides`() throws {
        let defaults = APNsHeaderTemplate.Defaults(bundle: "com.example.app")
        for content in [Content(title: "a"), Content(silent: true)] {
            for expiresAt in [nil, Timestamp.sample] {
                let headers = try APNsHeaders(for: content, bundle: "com.example.app", expiresAt: expiresAt)
                let template = try #require(defaults.template(for: content, expiresAt: expiresAt))
                #expect(template.pushType == headers.pushType)
                #expect(template.topic == headers.topic)
                #expect(template.expiration == headers.expiration)
                #expect(template.collapsesByNotification == headers.collapsesByNotification)
                #expect(template.fields.shared == headers.template.shared)
                #expect(
                    template.fields.perRequestFields.map { "\($0)" }
                        == headers.template.perRequestFields.map { "\($0)" })
            }
        }
        #expect(defaults.template(for: Content(title: "a", collapseKey: "k"), expiresAt: nil) == nil)
    }
}

extension Content {
    fileprivate static func random(_ random: inout SplitMix) -> Content {
        func maybe<Value>(_ value: @autoclosure () -> Value) -> Value? {
            Bool.random(using: &random) ? value() : nil
        }
        var data: [String: JSONValue] = ["b": 1, "a": "x/\"\n", "c": [nil, true, maybe(2.5) ?? -25]]
        if Int.random(in: 0..<8, using: &random) == 0 { data["aps"] = 1 }
        return Content(
            title: maybe("Títle \"q\""), subtitle: maybe(""), body: maybe("Body\u{1}"),
            badge: maybe(Int.random(in: -1...2, using: &random)), sound: maybe("default"), category: maybe("c"),
            thread: maybe("t"), deepLink: maybe("app://x"), image: maybe("https://e/x.png"), data: maybe(data),
            silent: Int.random(in: 0..<4, using: &random) == 0,
            interruptionLevel: maybe(InterruptionLevel.allCases.randomElement(using: &random) ?? .active))
    }
}
