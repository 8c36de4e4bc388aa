import Crypto
import Foundation
import PushProtocol
import Testing

@testable import ProviderSimulator

@Suite struct WebPushProviderTests {
    private static let message = #"{"web_push":8030,"notification":{"title":"Tür","navigate":"https://a.example/"}}"#

    @Test func `a correct message is accepted, decrypted and logged`() throws {
        let page = PageUnderTest()
        let response = try #require(try page.push(Self.message, with: ["topic": "a-B_9"]))
        #expect(response.status == 201 && response.headers["ttl"] == "60" && response.body == nil)
        #expect(response.headers["location"]?.hasPrefix("\(PageUnderTest.origin)/message/") == true)
        let entry = try #require(page.logged)
        #expect(entry.response.app == "family-portal" && entry.response.target == page.subscription.id)
        let json = try RequestLogTests.json { entry.write(to: &$0) }
        #expect(json["body"]?["notification"]?["title"] == "Tür" && json["status"] == 201)
        #expect(json["encrypted"]?.string == Base64URL.text(of: entry.request.body))
        #expect(json["messageName"]?.string.map { response.headers["location"]?.hasSuffix($0) == true } == true)
    }

    @Test(
        arguments: [
            (["ttl": nil], 400, "BadTtl"), (["ttl": "-1"], 400, "BadTtl"), (["ttl": "1.5"], 400, "BadTtl"),
            (["urgency": "asap"], 400, "BadUrgency"), (["topic": ""], 400, "BadTopic"),
            (["topic": String(repeating: "a", count: 33)], 400, "BadTopic"), (["topic": "a b"], 400, "BadTopic"),
            (["content-encoding": nil], 400, "BadContentEncoding"),
            (["content-encoding": "aesgcm"], 400, "BadContentEncoding"),
            (["authorization": nil], 401, "MissingAuthorization"),
            (["authorization": "WebPush abc"], 401, "MissingAuthorization"),
            (["authorization": "vapid"], 403, "BadJwtToken"),
            (["authorization": "vapid t=a.b.c, k=zz"], 403, "BadJwtToken"),
        ] as [([String: String?], Int, String)])
    func `a wrong header is rejected`(changes: [String: String?], status: Int, reason: String) throws {
        let response = try PageUnderTest().push(with: changes)
        #expect(response?.status == status && response?.reason == reason)
        #expect(response?.headers["www-authenticate"] == (status == 401 ? "vapid" : nil))
    }

    @Test func `optional headers may be absent`() throws {
        #expect(try PageUnderTest().push(with: ["urgency": nil, "ttl": "0"])?.status == 201)
        // Longer than any number that is needed.
        #expect(try PageUnderTest().push(with: ["ttl": "99999999999999999999"])?.headers["ttl"] == "2419200")
    }

    @Test func `a VAPID token is verified`() throws {
        let page = PageUnderTest()
        func answer(_ token: String) throws -> ReceivedResponse? {
            try page.push(with: ["authorization": page.authorization(token)])
        }
        let now = Fixture.now.seconds
        for wrong in [
            page.token(key: Signing.otherKey), page.token(algorithm: "HS256"), page.token { $0["aud"] = nil },
            page.token { $0["aud"] = "https://push.example" }, page.token { $0["exp"] = .int(now) },
            page.token { $0["exp"] = .int(now + 86_401) }, page.token { $0["exp"] = "soon" },
            page.token { $0["exp"] = .double(1e300) }, page.token { $0["sub"] = nil },
            page.token { $0["sub"] = "ops@example.com" }, String(page.token().dropLast(4)),
        ] {
            let response = try answer(wrong)
            #expect(
                response?.status == 403 && response?.reason == "BadJwtToken", "\(page.logged?.response.detail ?? "")")
        }
        #expect(try answer(page.token { $0["exp"] = .int(now + 86_400) })?.status == 201)
        let other = Base64URL.text(of: Signing.otherKey.publicKey.x963Representation)
        let stranger = page.authorization(page.token(key: Signing.otherKey), k: other)
        #expect(try page.push(with: ["authorization": stranger])?.reason == "VapidPkHashMismatch")
        // Parameters in another order, with quotation marks.
        let key = Base64URL.text(of: page.serverKey.publicKey.x963Representation)
        #expect(try page.push(with: ["authorization": "VAPID k=\"\(key)\",t=\"\(page.token())\""])?.status == 201)
    }

    @Test func `subscriptions end, expire and are unknown`() throws {
        let page = PageUnderTest(expiresAt: Fixture.now + .seconds(60))
        #expect(try page.push(path: "/nobody")?.status == 404)
        #expect(try page.push(method: "GET")?.status == 405)
        #expect(try page.push()?.status == 201)
        #expect(try page.push(at: Fixture.now + .seconds(60))?.status == 410)
        let subscriptions = page.simulator.state.subscriptions
        #expect(subscriptions.end(page.subscription.id, as: .gone) && !subscriptions.end("nobody", as: .gone))
        #expect(try page.push()?.reason == "Unsubscribed")
        #expect(subscriptions.end(page.subscription.id, as: .unknown))
        #expect(try page.push()?.reason == "UnknownSubscription")
    }

    @Test func `the number of subscriptions has a bound`() throws {
        let page = PageUnderTest()
        for _ in 0..<BrowserSubscriptions.maximumSubscriptions {
            page.simulator.state.subscriptions.insert(
                BrowserSubscription(
                    origin: PageUnderTest.origin, serverKey: [], privateKey: page.subscription.privateKey))
        }
        #expect(try page.push()?.status == 404)
    }

    @Test func `a body over 4096 bytes is too large`() throws {
        let page = PageUnderTest()
        #expect(try page.push(body: page.encrypt([UInt8](repeating: 32, count: 3993)))?.status == 201)
        #expect(try page.push(body: page.encrypt([UInt8](repeating: 32, count: 3994)))?.status == 413)
    }

    @Test func `an outcome is scripted for a subscription or an app`() throws {
        let page = PageUnderTest()
        let id = page.subscription.id
        try page.simulator.play(#"{"provider":"webpush","token":"\#(id)","status":429,"retry_after":7,"count":1}"#)
        let limited = try page.push()
        #expect(limited?.status == 429 && limited?.headers["retry-after"] == "7")
        try page.simulator.play(#"{"provider":"webpush","app":"family-portal","reason":"BadJwtToken","count":1}"#)
        #expect(try page.push()?.status == 403)
        try page.simulator.play(#"{"provider":"webpush","drop":true,"accepted":true,"count":1}"#)
        #expect(try page.push() == nil && page.logged?.response.isDelivered == true)
        #expect(try page.push()?.status == 201 && page.simulator.log.totals(of: .webpush).delivered == 2)
        // The same message, encrypted again.
        #expect(page.simulator.log.totals(of: .webpush).duplicates == 1)
    }

    @Test(arguments: ["error_code", "timestamp", "omit_id", "expires_in"])
    func `a script has no keys of other providers`(key: String) throws {
        let error = #expect(throws: ControlRequestError.self) {
            try PageUnderTest().simulator.play(#"{"provider":"webpush","status":410,"\#(key)":"x"}"#)
        }
        #expect(error?.description == "\(key) has no meaning for webpush")
    }

    @Test func `a subscription has a limit of messages a minute`() throws {
        let page = PageUnderTest()
        page.simulator.state.rateLimits.limits = try LimitSettings(["webpush_subscription_per_minute": 1])
        #expect(try page.push()?.status == 201)
        let limited = try page.push(at: Fixture.now + .seconds(20))
        #expect(limited?.reason == "TooManyRequests" && limited?.headers["retry-after"] == "41")
        #expect(try page.push(at: Fixture.now + .seconds(61))?.status == 201)
    }
}
