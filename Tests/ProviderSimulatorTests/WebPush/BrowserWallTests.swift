import Crypto
import HTTPTypes
import PushProtocol
import Testing

@testable import ProviderSimulator

@Suite struct BrowserWallTests {
    @Test func `a declarative message is shown, and a tag replaces`() throws {
        let page = PageUnderTest()
        for (text, tag) in [("one", "ride"), ("two", "other"), ("three", "ride")] {
            _ = try page.push(
                """
                {"web_push":8030,"app_badge":4,"notification":{"title":"Ride","body":"\(text)","tag":"\(tag)",\
                "navigate":"https://a.example/ride","silent":true,"actions":[{"action":"a","title":"Accept",\
                "navigate":"https://a.example/yes"}]}}
                """)
        }
        let phone = try #require(try PhoneWallTests.phones(page.simulator).first)
        #expect(phone["platform"] == "browser" && phone["app"] == "family-portal" && phone["badge"] == 4)
        #expect(PhoneWallTests.bodies(phone) == ["three", "two"])
        let note = phone["notifications"]?.array?.first
        #expect(note?["kind"] == "declarative" && note?["replaced"] == 1 && note?["actions"] == ["Accept"])
        #expect(note?["link"] == "https://a.example/ride" && note?["level"] == "passive" && note?["silent"] == false)
    }

    @Test(
        arguments: [
            (#"{"title":"T","body":"B"}"#, "T", "B", false), (#"{"notification":{"title":"T"}}"#, "T", nil, false),
            ("a text", nil, "a text", false), ("", nil, nil, true),
            (#"{"web_push":8030}"#, nil, #"{"web_push":8030}"#, false),
            (#"{"web_push":8030,"notification":{"title":"T"}}"#, "T", nil, false),
        ] as [(String, String?, String?, Bool)])
    func `a plain message is what the page's code would show`(
        text: String, title: String?, body: String?, isSilent: Bool
    ) throws {
        let page = PageUnderTest()
        _ = try page.push(text)
        let note = try PhoneWallTests.phones(page.simulator).first?["notifications"]?.array?.first
        #expect(note?["kind"] == "plain" && note?["title"]?.string == title && note?["body"]?.string == body)
        #expect(note?["silent"]?.bool == isSilent)
    }

    @Test func `a browser that got nothing has no notifications`() throws {
        let page = PageUnderTest()
        _ = try page.push(with: ["ttl": nil])
        let phone = try #require(try PhoneWallTests.phones(page.simulator).first)
        #expect(phone["platform"] == "browser" && phone["refused"] == 1 && phone["notifications"] == [])
    }

    @Test func `subscriptions are created and ended over the control port`() async throws {
        let page = PageUnderTest()
        let key = Base64URL.text(of: page.serverKey.publicKey.x963Representation)
        try await ControlRoutesTests.withControl(page.simulator) { client async throws in
            let made = try await ControlRoutesTests.ask(
                client, .post, "/subscriptions",
                #"{"application_server_key":"\#(key)","origin":"https://127.0.0.1:9446","expires_in_ms":60000}"#)
            let token = try #require(made.json?["token"]?.string)
            #expect(made.json?["endpoint"]?.string == "https://127.0.0.1:9446/\(token)")
            #expect(made.json?["keys"]?["p256dh"]?.string.flatMap { Base64URL.bytes(of: $0) }?.count == 65)
            #expect(made.json?["keys"]?["auth"]?.string.flatMap { Base64URL.bytes(of: $0) }?.count == 16)
            #expect(made.json?["expirationTime"]?.int != nil)
            let plain = try await ControlRoutesTests.ask(
                client, .post, "/subscriptions", #"{"application_server_key":"\#(key)"}"#)
            #expect(plain.json?["endpoint"]?.string?.hasPrefix("https://localhost/") == true)
            #expect(plain.json?["expirationTime"] == .null)
            for (query, status) in [
                ("", 400), ("?token=\(token)&status=500", 400), ("?token=x", 400), ("?token=\(token)&a=b", 400),
                ("?token=\(token)&status=404", 204), ("?token=\(token)", 204),
            ] {
                let ended = try await ControlRoutesTests.ask(client, .delete, "/subscriptions\(query)")
                #expect(ended.status.code == status, "\(query)")
            }
            let shown = try await ControlRoutesTests.ask(client, .get, "/shown?provider=webpush&token=\(token)")
            #expect(shown.json?["shown"] == [])
        }
    }

    @Test(arguments: [
        ("{}", "app is missing, as is application_server_key"),
        (#"{"app":"nobody"}"#, "app is no app with a VAPID key in the catalog"),
        (#"{"application_server_key":"AAAA"}"#, "application_server_key is not an uncompressed P-256 point"),
        (#"{"app":"a","application_server_key":"AAAA"}"#, "app and application_server_key exclude each other"),
        (#"{"app":"a","name":1}"#, "name is unknown"),
    ]) func `an invalid subscription is rejected with a reason`(body: String, problem: String) async throws {
        try await ControlRoutesTests.withControl { client async throws in
            let answer = try await ControlRoutesTests.ask(client, .post, "/subscriptions", body)
            #expect(answer.status == .badRequest)
            #expect(answer.json?["error"]?.string?.hasPrefix(problem) == true, "\(answer)")
        }
    }
}
