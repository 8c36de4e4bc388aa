import FoundationEssentials
import PushProtocol
import Testing
import TestSupport

@testable import Providers

/// The fast message encoder: its output equals the rendered message, or it returns `nil`.
@Suite struct FCMMessageWritingTests {
    private let codec = FCMCodec(project: "demo-project")

    private func request(to target: Push.Target, of push: Push) -> Result<ProviderRequest, LocalRejection> {
        Result { () throws(LocalRejection) in
            try codec.request(to: target, from: codec.render(push, now: .sample))
        }
    }

    @Test func `a push from the bus and the same decoded push produce equal requests`() throws {
        var random = SplitMix(seed: 31)
        var copied = 0
        for _ in 0..<3000 {
            let badges: [Int?] = Bool.random(using: &random) ? [1, 1] : [nil, Int.random(in: -1...2, using: &random)]
            var value = Push.sample(
                provider: .fcm, targets: badges.map { .sample(token: "fcm\"Tok_1:APA", badge: $0) })
            value.content = Content.random(&random)
            let near = Timestamp.sample + .milliseconds(Int.random(in: -5000...5000, using: &random))
            // Times outside the range of a date.
            let far = [Timestamp(milliseconds: .min), Timestamp(milliseconds: .max)].randomElement(using: &random)
            value.expiresAt = [nil, nil, near, near, far].randomElement(using: &random)!
            let came = try Push.decode(wireBody: try value.wireBody())
            if let text = came.encodedContent,
                FCMMessage.write(text, badge: badges[0], expiresAt: came.expiresAt, now: .sample) != nil
            {
                copied += 1
            }
            for (one, other) in zip(came.targets, value.targets) {
                #expect(request(to: one, of: came) == request(to: other, of: value), "\(value.content)")
            }
        }
        #expect(copied > 1500)
    }

    @Test(
        arguments: [
            [:], ["a": 1], ["z": "y"], ["a": true, "z": nil], ["deep_lin": 1, "deep_linka": 2], ["deep_link": "own"],
            ["o": ["k": [1, "q\"\n\\"]]], ["from": "x"], ["gcmx": "x"], ["google": "x"], ["message_type": "x"],
            ["message_typ": "x", "fro": "x", "g": "x"], nil,
        ] as [[String: JSONValue]?], [nil, "app://x/\"1\""] as [String?])
    func `data becomes a string map, with deep_link in sorted order`(data: [String: JSONValue]?, link: String?) throws {
        var value = Push.sample(provider: .fcm, targets: [.sample(token: "t")])
        value.content = Content(title: "a", deepLink: link, data: data)
        let came = try Push.decode(wireBody: try value.wireBody())
        #expect(came.encodedContent != nil)
        #expect(request(to: came.targets[0], of: came) == request(to: value.targets[0], of: value))
    }

    @Test func `the size limit is the same for encoded and decoded contents`() throws {
        for length in 4000...4100 {
            var value = Push.sample(provider: .fcm, targets: [.sample(token: "t")])
            value.content = Content(body: String(repeating: "x", count: length), data: ["a": 5])
            let came = try Push.decode(wireBody: try value.wireBody())
            #expect(request(to: came.targets[0], of: came) == request(to: value.targets[0], of: value))
        }
    }

    @Test func `contents with overrides or a collapse key are decoded`() throws {
        for content in [
            Content(title: "a", collapseKey: "k"), Content(title: "a", fcm: FCMOverride(validateOnly: true)),
        ] {
            var value = Push.sample(provider: .fcm, targets: [.sample(token: "t")])
            value.content = content
            let came = try Push.decode(wireBody: try value.wireBody())
            let text = came.encodedContent.flatMap { FCMMessage.write($0, badge: nil, expiresAt: nil, now: .sample) }
            #expect(text == nil)
            #expect(request(to: came.targets[0], of: came) == request(to: value.targets[0], of: value))
        }
    }

    @Test func `a probe is a dry run to a topic`() throws {
        let route = ProviderRoute(app: AppID(rawValue: "demo")!, environment: .production)
        let probe = Push.probe(of: route, provider: .fcm, now: .sample)
        let request = try request(to: probe.targets[0], of: probe).get()
        let body = try WireCoding.decode(JSONValue.self, from: request.body)
        #expect(body["validate_only"] == true)
        #expect(body[path: "message.topic"] == "heliograph-probe")
        #expect(body[path: "message.notification"] == nil)
    }
}

extension Content {
    fileprivate static func random(_ random: inout SplitMix) -> Content {
        func maybe<Value>(_ value: @autoclosure () -> Value) -> Value? {
            Bool.random(using: &random) ? value() : nil
        }
        var data: [String: JSONValue] = [
            "b": 1, "a": "x/\"\n", "c": [nil, true, -25], "e": ["n": "q\"\\", "m": []], "f": false,
        ]
        if Int.random(in: 0..<8, using: &random) == 0 { data["aps"] = 1 }
        if Int.random(in: 0..<8, using: &random) == 0 { data["gcm.x"] = "1" }
        return Content(
            title: maybe("Títle \"q\""), subtitle: maybe(""),
            body: maybe(Int.random(in: 0..<8, using: &random) == 0 ? "Body\u{1}" : "Bödy\n\t"),
            badge: maybe(Int.random(in: -1...2, using: &random)), sound: maybe("default"),
            category: maybe(["c", "", "cät\"\n"].randomElement(using: &random)!),
            thread: maybe("t"), deepLink: maybe("app://x"), image: maybe("https://e/x.png"), data: maybe(data),
            silent: Int.random(in: 0..<4, using: &random) == 0,
            interruptionLevel: maybe(InterruptionLevel.allCases.randomElement(using: &random) ?? .active))
    }
}
