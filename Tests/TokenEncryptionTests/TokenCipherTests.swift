import Foundation
import PushProtocol
import Testing
import TestSupport

@testable import TokenEncryption

@Suite struct TokenCipherTests {
    static let app = AppID(rawValue: "family-portal")!
    static let device = UUID(uuidString: "6f1f8f5e-53f2-5b0c-9d0a-0b1de15c7c3a")!

    static func file(_ lines: String...) -> [UInt8] { Array(lines.joined(separator: "\n").utf8) }

    static func line(_ id: String, _ byte: UInt8) -> String {
        "\(id):\(Data(repeating: byte, count: 32).base64EncodedString())"
    }

    private func sealed(_ cipher: TokenCipher, _ token: String) -> String {
        cipher.seal(DeviceToken(secret: token), device: Self.device, app: Self.app)
    }

    private func opened(_ cipher: TokenCipher, _ text: String) throws(TokenCipher.DecryptionError) -> String {
        try cipher.open(text, device: Self.device, app: Self.app).secret
    }

    @Test(arguments: [
        "", "0", "01", "ab12", "AB12", String(repeating: "9f", count: 32), "abc", "0g", "dHN0:APA91b-_",
        String(repeating: "x", count: 4096), String(repeating: "f", count: 4096), "zürich",
    ])
    func `an encrypted token decrypts to itself and is not visible in the text`(token: String) throws {
        let cipher = try TokenCipher(file: Self.file(Self.line("k1", 1)))
        let text = sealed(cipher, token)
        #expect(text.hasPrefix("v1 k1 "))
        #expect(text.utf8.count <= 8192)
        #expect(try opened(cipher, text) == token)
        if token.utf8.count > 2 { #expect(!text.contains(token)) }
        #expect(sealed(cipher, token) == text, "encryption is deterministic")
    }

    @Test func `an APNs token takes half the space of its hexadecimal digits`() throws {
        let cipher = try TokenCipher(file: Self.file(Self.line("k1", 1)))
        #expect(sealed(cipher, String(repeating: "9f", count: 32)).utf8.count == 90)
    }

    @Test func `different tokens and rows have different nonces`() throws {
        let cipher = try TokenCipher(file: Self.file(Self.line("k1", 1)))
        var nonces: Set<String> = []
        for number in 0..<500 {
            let device = DerivedID.uuid5(DerivedID.namespace, ["\(number)"])
            for token in ["ab", "cd"] {
                let text = cipher.seal(DeviceToken(secret: token), device: device, app: Self.app)
                nonces.insert(String(text.dropFirst(6).prefix(16)))
            }
        }
        #expect(nonces.count == 1000)
    }

    @Test func `a text in another row fails to decrypt`() throws {
        let cipher = try TokenCipher(file: Self.file(Self.line("k1", 1)))
        let text = sealed(cipher, "ab12")
        #expect(throws: TokenCipher.DecryptionError.notAuthentic(key: "k1")) {
            try cipher.open(text, device: UUID(), app: Self.app)
        }
        #expect(throws: TokenCipher.DecryptionError.notAuthentic(key: "k1")) {
            try cipher.open(text, device: Self.device, app: AppID(rawValue: "hide-and-seek")!)
        }
    }

    @Test func `a modified text fails to decrypt`() throws {
        let cipher = try TokenCipher(file: Self.file(Self.line("k1", 1), Self.line("k2", 2)))
        let text = sealed(cipher, "ab12")
        for place in text.utf8.indices {
            var bytes = Array(text.utf8)
            let index = text.utf8.distance(from: text.utf8.startIndex, to: place)
            bytes[index] = bytes[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
            let changed = String(decoding: bytes, as: UTF8.self)
            // Without the version prefix, the text is read as a plaintext token.
            guard TokenCipher.isSealed(changed) else { continue }
            #expect(throws: TokenCipher.DecryptionError.self) { try opened(cipher, changed) }
        }
        #expect(throws: TokenCipher.DecryptionError.notAuthentic(key: "k2")) {
            try opened(cipher, text.replacing("k1", with: "k2"))
        }
    }

    @Test(arguments: ["v1 ", "v1 k1", "v1 k1 ", "v1 k1 %%", "v1 k1 AAAA AAAA", "v1  AAAA"])
    func `a malformed text fails to decrypt`(text: String) throws {
        let cipher = try TokenCipher(file: Self.file(Self.line("k1", 1)))
        #expect(throws: TokenCipher.DecryptionError.self) { try opened(cipher, text) }
    }

    @Test func `an unknown key is named in the error`() throws {
        let text = sealed(try TokenCipher(file: Self.file(Self.line("k2", 2))), "ab12")
        let cipher = try TokenCipher(file: Self.file(Self.line("k1", 1)))
        #expect(throws: TokenCipher.DecryptionError.unknownKey("k2")) { try opened(cipher, text) }
        #expect(throws: TokenCipher.DecryptionError.unknownKey("k2")) { try opened(.none, text) }
    }

    @Test func `a plaintext token is read unchanged, and written so without a key`() throws {
        let cipher = try TokenCipher(file: Self.file(Self.line("k1", 1)))
        #expect(try opened(cipher, "ab12") == "ab12")
        #expect(sealed(.none, "ab12") == "ab12")
        let plain = try TokenCipher(file: Self.file("plain", Self.line("k1", 1)))
        #expect(sealed(plain, "ab12") == "ab12")
        #expect(try opened(plain, sealed(cipher, "ab12")) == "ab12")
    }

    @Test func `the first key encrypts, and every key decrypts`() throws {
        let both = try TokenCipher(file: Self.file("# keys", "", Self.line("k2", 2), " \(Self.line("k1", 1))\r", ""))
        #expect(both.writingKeyID == "k2" && both.ids == ["k1", "k2"])
        let former = sealed(try TokenCipher(file: Self.file(Self.line("k1", 1))), "ab12")
        #expect(try opened(both, former) == "ab12")
        #expect(sealed(both, "ab12").hasPrefix("v1 k2 "))
    }

    @Test func `only an APNs token is encrypted for the other environment too`() throws {
        let cipher = try TokenCipher(file: Self.file(Self.line("k1", 1)))
        let token = DeviceToken(secret: "ab12")
        func device(_ environment: ProviderEnvironment) -> UUID {
            DerivedID.device(app: Self.app, provider: .apns, environment: environment, token: token)
        }
        let sealed = cipher.seal(
            token, device: device(.production), app: Self.app, provider: .apns, environment: .production)
        #expect(try cipher.open(sealed.stored, device: device(.production), app: Self.app) == token)
        let moved = try #require(sealed.moved)
        #expect(try cipher.open(moved, device: device(.development), app: Self.app) == token)
        let fcm = cipher.seal(token, device: Self.device, app: Self.app, provider: .fcm, environment: .production)
        #expect(fcm.moved == nil)
    }

    // MARK: - Key files

    @Test(arguments: [
        ("", "has no key"), ("# only a comment\n", "has no key"), ("plain", "has no key"),
        ("c2VjcmV0c2VjcmV0c2VjcmV0", "line 1: has no colon"), (":c2VjcmV0", "line 1: the id before the colon"),
        ("plain:c2VjcmV0", "line 1: the id before the colon"), ("a b:c2VjcmV0", "line 1: the id before the colon"),
        ("k1:c2VjcmV0!", "line 1: the key “k1” is not base64"),
        ("\nk1:c2VjcmV0", "line 2: the key “k1” has 6 bytes instead of 32"),
        ("\(line("k1", 1))\n\(line("k1", 2))", "line 2: the id “k1” is not unique"),
        ("\(line("k1", 1))\nplain", "line 2: “plain” is allowed in the first line only"),
    ])
    func `an error in a key file is reported with its line and without the key`(text: String, problem: String) {
        let fault = #expect(throws: TokenCipher.KeyFileError.self) { try TokenCipher(file: Array(text.utf8)) }
        let told = fault?.description ?? ""
        #expect(told.contains(problem), "\(told)")
        #expect(!told.contains("c2VjcmV0") && !told.contains("AQEB") && !told.contains("AgIC"), "\(told)")
    }

    @Test func `a key file that is not text or too large is rejected`() {
        #expect(throws: TokenCipher.KeyFileError.self) { try TokenCipher(file: [0xff, 0xfe]) }
        #expect(throws: TokenCipher.KeyFileError.self) {
            try TokenCipher(file: [UInt8](repeating: 35, count: TokenCipher.maximumFileSize + 1))
        }
    }

    @Test func `any bytes are a valid key file or a reported error`() {
        var random = SplitMix(seed: 8)
        for _ in 0..<2000 {
            let length = Int.random(in: 0..<80, using: &random)
            let bytes = (0..<length).map { _ in UInt8.random(in: 9...126, using: &random) }
            _ = try? TokenCipher(file: bytes)
            _ = try? opened(.none, "v1 " + String(decoding: bytes, as: UTF8.self))
        }
    }
}
