import Crypto
import Foundation
import PushProtocol
import Testing

@testable import ProviderSimulator

@Suite struct MessageDecryptionTests {
    @Test func `RFC 8291 §5: the message of the example`() throws {
        func bytes(_ text: String) throws -> [UInt8] { try #require(Base64URL.bytes(of: text)) }
        let subscription = BrowserSubscription(
            origin: "https://push.example.net", serverKey: [],
            privateKey: try P256.KeyAgreement.PrivateKey(
                rawRepresentation: bytes("q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94")),
            authSecret: try bytes("BTBZMqHH6r4Tts7J_aSIgg"))
        let body = try bytes(
            "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6Tlz"
                + "AC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN")
        let message = try MessageDecryption(body).message(for: subscription)
        #expect(String(decoding: message, as: UTF8.self) == "When I grow up, I want to be a watermelon")
    }

    @Test func `padding is removed`() throws {
        let page = PageUnderTest()
        #expect(try page.push(body: page.encrypt(Array("x\0".utf8), padding: 900))?.status == 201)
        #expect(page.logged?.response.plaintext == Array("x\0".utf8))
    }

    @Test func `a wrong header of the coding is rejected by the push service`() throws {
        let page = PageUnderTest()
        let good = try page.encrypt(Array("x".utf8))
        var (shortKey, wrongPoint) = (good, good)
        shortKey[20] = 64
        wrongPoint[40] ^= 1
        for body in [
            [], Array(good.prefix(85)), shortKey, wrongPoint,
            try page.encrypt([UInt8](repeating: 32, count: 100), recordSize: 50),
        ] {
            let response = try page.push(body: body)
            #expect(response?.status == 400 && response?.reason == "BadEncryptionHeader")
        }
    }

    @Test func `a message that does not decrypt is accepted and not shown`() throws {
        let page = PageUnderTest()
        let message = Array("x".utf8)
        var changed = try page.encrypt(message)
        changed[changed.count - 1] ^= 1
        for body in [
            changed, try page.encrypt(message, authSecret: BrowserSubscription.random(16)),
            try page.encrypt(message, delimiter: 1), try page.encrypt([], delimiter: 0), Array(changed.prefix(90)),
        ] {
            #expect(try page.push(body: body)?.status == 201)
            let response = page.logged?.response
            #expect(response?.isDelivered == false && response?.reason == "Undecryptable" && response?.plaintext == nil)
        }
    }
}
