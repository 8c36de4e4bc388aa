import Foundation
import PushProtocol
import Testing

@testable import Console

@Suite struct AccessTests {
    private let secret = "a-secret-of-at-least-thirty-two-bytes"
    private let now = Date(timeIntervalSince1970: 1_767_225_600)

    @Test func `a sealed value is read until its end, with the same secret and purpose`() {
        let seal = Seal(secret: secret, purpose: .session)
        let text = seal.text(of: ["name": "Kim"], until: now.addingTimeInterval(60))
        #expect(seal.value(of: text, now: now)?["name"] == "Kim")
        #expect(seal.value(of: text, now: now.addingTimeInterval(60)) == nil)
        #expect(Seal(secret: secret, purpose: .supportLink).value(of: text, now: now) == nil)
        #expect(Seal(secret: secret + "2", purpose: .session).value(of: text, now: now) == nil)
    }

    @Test(arguments: [0, 10, 40, -1])
    func `a changed byte makes a sealed value invalid`(index: Int) {
        let seal = Seal(secret: secret, purpose: .session)
        var bytes = Array(seal.text(of: ["role": "look"], until: now.addingTimeInterval(60)).utf8)
        let position = index < 0 ? bytes.count + index : index
        // Of the last character of a code, not every bit counts.
        bytes[position] = bytes[position] == UInt8(ascii: "A") ? UInt8(ascii: "Q") : UInt8(ascii: "A")
        #expect(seal.value(of: String(decoding: bytes, as: UTF8.self), now: now) == nil)
    }

    @Test(arguments: ["", ".", "a.b", "a.b.c", "e30.", "é.é"])
    func `other texts are no sealed values`(text: String) {
        #expect(Seal(secret: secret, purpose: .session).value(of: text, now: now) == nil)
    }

    @Test func `a form token belongs to one session`() throws {
        let address = try #require(ConsoleAddress("https://console.example"))
        let keeper = SessionKeeper(secret: secret, address: address, lifetime: .seconds(60))
        let (one, other) = (Session(name: "a", role: .look), Session(name: "a", role: .look))
        #expect(keeper.isFormToken(keeper.formToken(of: one), of: one))
        #expect(!keeper.isFormToken(keeper.formToken(of: one), of: other))
        #expect(!keeper.isFormToken("", of: one))
    }

    @Test func `cookies of a secure address are bound to it`() throws {
        let session = Session(name: "a", role: .look)
        let secure = SessionKeeper(
            secret: secret, address: try #require(ConsoleAddress("https://c.example/")), lifetime: .seconds(60))
        #expect(secure.cookie(for: session).hasPrefix("__Host-heliograph-session="))
        #expect(secure.cookie(for: session).hasSuffix("; Path=/; Max-Age=60; HttpOnly; SameSite=Lax; Secure"))
        let plain = SessionKeeper(
            secret: secret, address: try #require(ConsoleAddress("http://127.0.0.1:8083")), lifetime: .seconds(60))
        #expect(plain.cookie(for: nil as Session?) == "heliograph-session=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax")
    }

    @Test func `the highest role of a claim counts`() {
        #expect(Role.highest(in: ["staff", "heliograph-look", "heliograph-operate"]) == .operate)
        #expect(Role.highest(in: ["staff", "operate"]) == nil)
        #expect(Role.look < .support && Role.support < .operate)
    }

    @Test(arguments: [
        ("/event?id=1", "/event?id=1"), ("https://evil.example", "/"), ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("/a\r\nSet-Cookie: x", "/"), ("", "/"),
    ])
    func `a sign-in returns to a path of the console only`(target: String, path: String) {
        #expect(SignIn.path(target) == path)
    }

    @Test func `the challenge is that of RFC 7636, appendix B`() throws {
        let signIn = try #require(
            SignIn(
                [
                    "state": "s", "nonce": "n", "target": "/",
                    "verifier": "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
                ] as JSONValue))
        #expect(signIn.challenge == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM")
    }

    @Test(arguments: [
        ("https://c.example", "c.example", true, false), ("http://127.0.0.1:8083/", "127.0.0.1:8083", false, true),
        ("http://[::1]:8083", "[::1]:8083", false, true),
    ])
    func `an address of the console`(text: String, authority: String, isSecure: Bool, isLoopback: Bool) throws {
        let address = try #require(ConsoleAddress(text))
        #expect(address.authority == authority && address.isSecure == isSecure && address.isLoopback == isLoopback)
    }

    @Test(arguments: ["console", "https://", "https://c.example/path", "https://u@c.example", "https://c.example?x"])
    func `other texts are no addresses`(text: String) { #expect(ConsoleAddress(text) == nil) }

    @Test func `form fields with any characters survive`() {
        let fields = [("a", "x y&z=ü%+"), ("b", "")]
        #expect(FormCoding.fields(of: FormCoding.text(fields)) == ["a": "x y&z=ü%+", "b": ""])
        #expect(FormCoding.fields(of: "a=1+2&a=3&c") == ["a": "1 2", "c": ""])
    }
}
