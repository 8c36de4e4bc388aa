import FoundationEssentials
import PushProtocol
import Testing
import TestSupport

@testable import Providers

/// The request vectors, encoded to bytes.
@Suite struct APNsRequestVectorTests {
    private let codec = APNsCodec(topic: "com.example.app")

    @Test(arguments: RequestVector.all)
    func `a content is encoded to these headers and this body`(vector: RequestVector) throws {
        let target = Push.Target.sample(token: vector.token)
        let push = Push.sample(
            vector.content, expiresAt: vector.lifetime.map { .sample + $0 }, targets: [target])
        let request = try codec.request(to: target, from: codec.render(push, now: .sample))
        #expect(request.path == "/3/device/\(vector.hexToken)")
        #expect(String(decoding: request.body, as: UTF8.self) == vector.body)
        let headers = Dictionary(request.headers.map { ($0.name, $0.value) }) { first, _ in first }
        #expect(headers.count == request.headers.count)
        #expect(headers == vector.headers(to: target, now: .sample))
    }

    @Test(arguments: RejectedVector.all) func `an invalid content is rejected before sending`(vector: RejectedVector) {
        let push = Push.sample(vector.content)
        #expect(throws: LocalRejection(vector.reason)) {
            try codec.request(to: push.targets[0], from: codec.render(push, now: .sample))
        }
    }

    @Test(arguments: ["voip", "pushtotalk"]) func `calls have expiration 0, whatever the push's expiration`(
        _ type: String
    ) throws {
        func expiration(_ content: Content) throws -> String? {
            let push = Push.sample(content, expiresAt: .sample + .seconds(3600))
            let request = try codec.request(to: push.targets[0], from: codec.render(push, now: .sample))
            return request.headers.first { $0.name == "apns-expiration" }?.value
        }
        var content = RequestVector.override(type, ["call": "c1"])
        #expect(try expiration(content) == "0")
        content.apns?.headers?["apns-expiration"] = "1767225605"
        #expect(try expiration(content) == "1767225605")
    }

    /// Numbers of 64 bits and doubles keep their value.
    @Test func `a content state is sent unchanged`() throws {
        let state = #"{"a":[1,2.5,-3],"big":9223372036854775807,"id":"x/y","no":null,"p":0.1,"t":true,"ü":"é\u0001"}"#
        let value = try WireCoding.decode(JSONValue.self, from: Array(state.utf8))
        let push = Push.sample(
            RequestVector.override(
                "liveactivity", ["aps": ["timestamp": 1, "event": "update", "content-state": value]]))
        let request = try codec.request(to: push.targets[0], from: codec.render(push, now: .sample))
        #expect(
            String(decoding: request.body, as: UTF8.self)
                == #"{"aps":{"content-state":\#(state),"event":"update","timestamp":1}}"#)
    }

    @Test func `texts of a Live Activity may have localization keys`() throws {
        let alert: JSONValue = ["title": ["loc-key": "T", "loc-args": ["a"]], "body": "b", "sound": "s"]
        let push = Push.sample(
            RequestVector.override("liveactivity", ["aps": ["timestamp": 1, "event": "end", "alert": alert]]))
        #expect(throws: Never.self) { try codec.request(to: push.targets[0], from: codec.render(push, now: .sample)) }
    }

    @Test func `A15: with a certificate, location pushes and foreign topics are rejected`() throws {
        func send(_ content: Content, _ topics: Set<String>?) throws -> ProviderRequest {
            let codec = APNsCodec(topic: "com.example.app", authentication: { .certificate(topics: topics) })
            let push = Push.sample(content)
            return try codec.request(to: push.targets[0], from: codec.render(push, now: .sample))
        }
        let voip = RequestVector.override("voip", ["callUUID": "c1"])
        #expect(throws: LocalRejection("location-needs-a-provider-token")) {
            try send(RequestVector.override("location", ["q": 1]), nil)
        }
        #expect(throws: LocalRejection("topic-not-in-certificate")) { try send(voip, ["com.example.app"]) }
        #expect(throws: Never.self) { try send(voip, ["com.example.app", "com.example.app.voip"]) }
        #expect(throws: Never.self) { try send(voip, nil) }
    }

    @Test(arguments: ["zz01", "", "abc", "00 11", "AAECAwQFBgcICQoLDA0ODw=="])
    func `A29: a token that is not hexadecimal is rejected and suspected`(
        token: String
    ) {
        let push = Push.sample(targets: [.sample(token: token)])
        #expect(throws: LocalRejection("malformed-token", suspectToken: true)) {
            try codec.request(to: push.targets[0], from: codec.render(push, now: .sample))
        }
    }

    @Test(arguments: [(APNsPushType.alert, 4096), (.voip, 5120)])
    func `A12 A13: a body may have the limit's size and not one byte more`(type: APNsPushType, limit: Int) throws {
        let frame = #"{"aps":{"alert":{"body":""}}}"#.utf8.count
        for (extra, fits) in [(0, true), (1, false)] {
            let content = Content(
                body: String(repeating: "a", count: limit - frame + extra),
                apns: .init(headers: ["apns-push-type": type.rawValue]))
            let push = Push.sample(content)
            let request = try? codec.request(to: push.targets[0], from: codec.render(push, now: .sample))
            #expect(request?.body.count == (fits ? limit : nil))
        }
    }

    @Test func `one body is rendered for each badge, and a target's badge takes precedence`() throws {
        let targets = (0..<500).map { Push.Target.sample(badge: $0 % 2 == 0 ? nil : 7) }
        let push = Push.sample(Content(body: "x", badge: 1), targets: targets)
        let rendering = try #require(codec.render(push, now: .sample) as? APNsRendering)
        guard case .byBadge(let bodies) = rendering.bodies else {
            Issue.record("one body for two badges")
            return
        }
        #expect(bodies.count == 2)
        for target in targets {
            let body = String(decoding: try codec.request(to: target, from: rendering).body, as: UTF8.self)
            #expect(body.contains(#""badge":\#(target.badge ?? 1)"#))
        }
    }

    @Test func `unique and secret headers are never indexed`() throws {
        let push = Push.sample(expiresAt: .sample)
        let request = try codec.request(to: push.targets[0], from: codec.render(push, now: .sample))
        let indexed = request.headers.filter { !$0.neverIndexed }.map(\.name)
        #expect(indexed == ["apns-push-type", "apns-topic", "apns-priority"])
    }
}
