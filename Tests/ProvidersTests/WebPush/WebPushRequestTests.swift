import Crypto
import FoundationEssentials
import PushProtocol
import TestSupport
import Testing

@testable import Providers

/// Requests to a push service, as a sender makes them from a push.
@Suite struct WebPushRequestTests {
    private let codec = WebPushCodec(
        origin: "https://push.example.net", site: try! WebPushSite("https://app.example/"))

    private func target(_ browser: Browser, badge: Int? = nil, id: UUID = UUID()) throws -> Push.Target {
        .sample(token: try browser.subscription().text, badge: badge, notification: id)
    }

    private func request(
        _ content: Content = Content(title: "T"), lane: Lane = .interactive, expiresAt: Timestamp? = nil
    ) throws -> ProviderRequest {
        let target = try target(Browser.sample())
        let push = Push.sample(content, lane: lane, expiresAt: expiresAt, targets: [target])
        return try codec.request(
            to: target, from: WebPushRendering(push, codec: codec, now: .sample))
    }

    private func header(_ name: String, of request: ProviderRequest) -> String? {
        request.headers.first { $0.name == name }?.value
    }

    private func rejection(_ content: Content = Content(title: "T"), _ target: Push.Target) -> LocalRejection? {
        do throws(LocalRejection) {
            _ = try codec.request(to: target, from: codec.render(.sample(content, targets: [target]), now: .sample))
            return nil
        } catch {
            return error
        }
    }

    @Test func `a request has the endpoint's path, the headers of RFC 8030 and an encrypted message`() throws {
        let id = try #require(UUID(uuidString: "01234567-89AB-4DEF-8123-456789ABCDEF"))
        let browser = try Browser.sample()
        let target = try target(browser, id: id)
        let push = Push.sample(
            Content(title: "T", body: "B"), expiresAt: .sample + .seconds(3600), targets: [target])
        let request = try codec.request(to: target, from: codec.render(push, now: .sample))
        #expect(request.path == "/push/JzLQ3raZJfFBR0aqvOMsLrt54w4rJUsV?v=1")
        #expect(
            request.headers == [
                ProviderHeader("content-encoding", "aes128gcm"),
                ProviderHeader("content-type", "application/octet-stream"), ProviderHeader("ttl", "3600"),
                ProviderHeader("urgency", "high"),
            ])
        #expect(request.body.count == 2923)
        let message = try WireCoding.decode(JSONValue.self, from: browser.decrypt(request.body))
        #expect(
            message == [
                "web_push": 8030,
                "notification": [
                    "title": "T", "body": "B", "navigate": "https://app.example/",
                    "tag": "01234567-89ab-4def-8123-456789abcdef",
                ],
            ])
    }

    @Test func `each target gets its own badge, id and ciphertext`() throws {
        let browsers = try [Browser.sample(), Browser(key: .init(), auth: Array(0...15)), Browser.sample()]
        let targets = try zip(browsers, [1, 2, nil]).map { try target($0, badge: $1) }
        let push = Push.sample(Content(title: "T", badge: 9), targets: targets)
        let rendering = codec.render(push, now: .sample)
        var batch = ProviderRequestBatch(path: codec.path)
        rendering.begin(in: &batch)
        for target in targets { try rendering.add(target, to: &batch) }
        for (index, expected) in [1, 2, 9].enumerated() {
            let message = try WireCoding.decode(JSONValue.self, from: browsers[index].decrypt(batch[index].body))
            #expect(message["app_badge"] == .int(Int64(expected)))
            let id = targets[index].notification.uuidString.lowercased()
            #expect(message[path: "notification.tag"] == .string(id))
        }
        #expect(throws: (any Error).self) { try browsers[0].decrypt(batch[1].body) }
        #expect(batch[0].body[..<16] != batch[2].body[..<16])
    }

    @Test func `the expiration becomes a ttl of whole seconds, up to four weeks`() throws {
        for (left, ttl) in [(0, "0"), (-5, "0"), (59, "59"), (2_419_200, "2419200"), (10_000_000, "2419200")] {
            let request = try request(expiresAt: .sample + .seconds(left))
            #expect(header("ttl", of: request) == ttl)
        }
        #expect(header("ttl", of: try request()) == "2419200")
    }

    @Test(
        arguments: [
            (nil, .interactive, "high"), (nil, .bulk, "normal"), (.active, .bulk, "normal"),
            (.active, .interactive, "high"),
            (.passive, .interactive, "low"), (.passive, .bulk, "low"), (.timeSensitive, .bulk, "high"),
            (.critical, .bulk, "high"),
        ] as [(InterruptionLevel?, Lane, String)])
    func `level and lane give the urgency`(level: InterruptionLevel?, lane: Lane, urgency: String) throws {
        let content = Content(title: "T", interruptionLevel: level)
        #expect(header("urgency", of: try request(content, lane: lane)) == urgency)
        var own = content
        own.web = WebPushOverride(urgency: .veryLow)
        #expect(header("urgency", of: try request(own, lane: lane)) == "very-low")
    }

    @Test(arguments: ["order/1", "Größe 🚪", String(repeating: "k", count: 64), "a"])
    func `a collapse key becomes a topic that does not reveal it`(key: String) throws {
        let topic = try #require(header("topic", of: try request(Content(title: "T", collapseKey: key))))
        #expect(topic.utf8.count == 32 && Base64URL.isAlphabet(topic))
        #expect(try header("topic", of: request(Content(title: "U", collapseKey: key))) == topic)
        #expect(try header("topic", of: request(Content(title: "T", collapseKey: "other"))) != topic)
        #expect(WebPushHeaders.topic(of: key, app: AppID(rawValue: "other")!) != topic)
    }

    @Test func `without a collapse key there is no topic`() throws {
        #expect(header("topic", of: try request()) == nil)
    }

    @Test func `a collapse key that APNs and FCM refuse is refused here too`() throws {
        let key = String(repeating: "k", count: 65)
        #expect(
            rejection(Content(title: "T", collapseKey: key), try target(Browser.sample()))
                == LocalRejection("collapse-id-not-1-to-64-bytes"))
    }

    @Test func `given a message of the largest size, it is sent, and one byte more is rejected`() throws {
        let browser = try Browser.sample()
        let target = try target(browser)
        func content(_ count: Int) -> Content {
            Content(title: "T", body: String(repeating: "b", count: count))
        }
        func message(_ count: Int) throws -> [UInt8] {
            let push = Push.sample(content(count), targets: [target])
            return try browser.decrypt(codec.request(to: target, from: codec.render(push, now: .sample)).body)
        }
        let rest = WebPushEncryption.maximumMessage - (try message(1).count - 1)
        #expect(try message(rest).count == WebPushEncryption.maximumMessage)
        #expect(rejection(content(rest + 1), target) == LocalRejection("payload-too-large"))
    }

    @Test func `a token that is no subscription is suspect`() {
        #expect(
            rejection(.sample(token: "cafe")) == LocalRejection("malformed-subscription", suspectToken: true))
    }

    @Test func `given an endpoint in a private network, no request is built`() throws {
        let text = try Browser.sample().subscription().text
        let target = Push.Target.sample(token: text.replacing("push.example.net", with: "10.0.0.1"))
        #expect(rejection(target) == LocalRejection("malformed-subscription", suspectToken: true))
    }

    @Test func `given an endpoint of another push service, no request is built for this connection`() throws {
        var browser = try Browser.sample()
        browser.endpoint = "https://push.example.net:8443/x"
        #expect(rejection(try target(browser)) == LocalRejection("endpoint-of-another-origin"))
    }

    @Test(arguments: Push.Address.allCases)
    func `addresses of other providers are rejected`(address: Push.Address) throws {
        let target = Push.Target.sample(token: try Browser.sample().subscription().text, address: address)
        #expect(rejection(target) == LocalRejection("address-not-of-web-push"))
    }

    private func rejection(_ target: Push.Target) -> LocalRejection? { rejection(Content(title: "T"), target) }
}
