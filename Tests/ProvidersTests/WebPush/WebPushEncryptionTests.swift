import Crypto
import Foundation
import Testing

@testable import Providers

/// RFC 8188 and RFC 8291, against their vectors and another implementation.
@Suite struct WebPushEncryptionTests {
    private static let message = Array(#"{"notification":{"title":"Tür offen 🚪"}}"#.utf8)

    private static func bytes(_ text: String) throws -> [UInt8] { try #require(Base64URL.bytes(of: text)) }

    @Test func `RFC 8188 §3.1: a record without key id`() throws {
        let body = try ContentCoding.encrypt(
            Array("I am the walrus".utf8), key: SymmetricKey(data: try Self.bytes("yqdlZ-tYemfogSmv7Ws5PQ")),
            salt: try Self.bytes("I1BsxtFttlv3u_Oo94xnmw"))
        #expect(
            Base64URL.text(of: body)
                == "I1BsxtFttlv3u_Oo94xnmwAAEAAA-NAVub2qFgBEuQKRapoZu-IxkIva3MEB1PD-ly8Thjg")
    }

    @Test func `RFC 8291 §5: the message of the example`() throws {
        let browser = Browser(
            key: try P256.KeyAgreement.PrivateKey(
                rawRepresentation: try Self.bytes("q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94")),
            auth: try Self.bytes("BTBZMqHH6r4Tts7J_aSIgg"))
        let secrets = WebPushEncryption.MessageSecrets(
            salt: try Self.bytes("DGv6ra1nlYgDCS1FRnbzlw"),
            privateKey: try P256.KeyAgreement.PrivateKey(
                rawRepresentation: try Self.bytes("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw")))
        let text = "When I grow up, I want to be a watermelon"
        let body = try WebPushEncryption.encrypt(
            Array(text.utf8), padding: 0, for: browser.subscription(), with: secrets)
        #expect(
            Base64URL.text(of: body)
                == "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6Tlz"
                + "AC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN")
        #expect(try browser.decrypt(body) == Array(text.utf8))
    }

    @Test func `http_ece encrypts to the same bytes`() throws {
        let body = try WebPushEncryption.encrypt(
            Self.message, padding: 0, for: Browser.sample().subscription(), with: .sample())
        #expect(
            Base64URL.text(of: body)
                == "AAECAwQFBgcICQoLDA0ODwAAEABBBB8UAUa_sbJR-E9N2-DUzc_Xev2YSpUg41eUAh-DErue7JlaCLH6dwTfPcwLUKlmUmP7"
                + "dxH5X5-KRJxQluR8iSuotVH30Tou6oErkz7576PmuJRYLkBNBgvYGa_-ea3CIuwqzgjnxxJOfYyuKLptwJb5uWXTg3dEdz-u"
                + "RH5K")
    }

    /// `make_vectors.py` prints the digests.
    @Test(arguments: [
        (2820, "803214276b90e3c5f56a742663db2154242bd4258d6651a33c5438a27d063fc2"),
        (3993, "e3f36bc2b644b8c78ae8c00a466d2c4ae479b854fee7d7a5df8ec9f821213d5b"),
    ]) func `http_ece opens the padded message, and has the same bytes`(size: Int, digest: String) throws {
        let body = try WebPushEncryption.encrypt(
            Self.message, padding: size - Self.message.count, for: Browser.sample().subscription(), with: .sample())
        #expect(SHA256.hash(data: body).map { String(format: "%02x", $0) }.joined() == digest)
    }

    @Test func `given messages up to the limit, bodies have one of two sizes and open to the message`() throws {
        let browser = try Browser.sample()
        for (count, size) in [(0, 2923), (1, 2923), (2820, 2923), (2821, 4096), (3993, 4096)] {
            let message = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
            let body = try WebPushEncryption.encrypt(message, for: browser.subscription())
            #expect(body.count == size)
            #expect(try browser.decrypt(body) == message)
        }
        #expect(WebPushEncryption.maximumMessage == 3993)
    }

    @Test func `given a message beyond the limit, it is rejected and the token is not suspect`() throws {
        let subscription = try Browser.sample().subscription()
        #expect(throws: LocalRejection("payload-too-large")) {
            try WebPushEncryption.encrypt([UInt8](repeating: 65, count: 3994), for: subscription)
        }
    }

    @Test func `each message has its own salt and key`() throws {
        let subscription = try Browser.sample().subscription()
        let bodies = try (0..<20).map { _ in try WebPushEncryption.encrypt(Self.message, for: subscription) }
        #expect(Set(bodies.map { $0[..<16] }).count == 20)
        #expect(Set(bodies.map { $0[21..<86] }).count == 20)
    }

    @Test func `given one changed bit, the browser does not open the body`() throws {
        let browser = try Browser.sample()
        let body = try WebPushEncryption.encrypt(Self.message, for: browser.subscription())
        for index in [0, 40, 86, 2000, 2922] {
            var changed = body
            changed[index] ^= 1
            #expect(throws: (any Error).self) { try browser.decrypt(changed) }
        }
    }
}
