import Foundation
import JWTKit
import PushProtocol
import PushSending
import Synchronization
import Testing
import TestSupport

@testable import APNsSender

@Suite(.timeLimit(.minutes(2))) struct ProviderTokenSignerTests {
    private let key = ES256PrivateKey()

    /// Runs `body` with a key file containing `text`.
    private func withKey(_ text: String? = nil, _ body: (ProviderTokenSigner) async throws -> Void) async throws {
        let file = FileManager.default.temporaryDirectory.appending(path: "\(UUID().uuidString).p8")
        try (text ?? key.pemRepresentation).write(to: file, atomically: true, encoding: .utf8)
        defer { try? FileManager.default.removeItem(at: file) }
        try await body(ProviderTokenSigner(keyID: "ABC123DEFG", teamID: "DEF123GHIJ", keyFile: file.path()))
    }

    private struct Claims: JWTPayload, Equatable {
        let iss: String
        let iat: Int
        func verify(using algorithm: some JWTAlgorithm) {}
    }

    @Test func `A32: the token is ES256 over exactly iss and iat, with a raw signature`() async throws {
        try await withKey { token in
            let parts = try await token.mint(at: .sample).split(separator: ".").map(String.init)
            let header = try #require(Self.json(parts[0])), claims = try #require(Self.json(parts[1]))
            #expect(header["alg"] == "ES256")
            #expect(header["kid"] == "ABC123DEFG")
            #expect(claims == ["iss": "DEF123GHIJ", "iat": 1_767_225_600])
            #expect(parts[2].count == 86)
            let keys = JWTKeyCollection()
            await keys.add(ecdsa: key.publicKey)
            let verified = try await keys.verify(parts.joined(separator: "."), as: Claims.self)
            #expect(verified == Claims(iss: "DEF123GHIJ", iat: 1_767_225_600))
        }
    }

    @Test func `A33 A34: a token is reused for fifty minutes, and the next is minted on demand`() async throws {
        try await withKey { token in
            let uptime = Mutex(Duration.zero)
            let clock = SenderClock(
                now: { .sample + uptime.withLock { $0 } }, uptime: { uptime.withLock { $0 } }, sleep: { _ in })
            let file = token.file(clock: clock)
            _ = await file.reload()
            let source = token.source(file, clock: clock)
            var tokens: [String?] = []
            for minute in [0, 19, 49, 51, 70] {
                uptime.withLock { $0 = .seconds(minute * 60) }
                tokens.append(try await source.current().authorization)
            }
            #expect(tokens[0] == tokens[1] && tokens[1] == tokens[2])
            #expect(tokens[2] != tokens[3] && tokens[3] == tokens[4])
            #expect(tokens.allSatisfy { $0?.hasPrefix("bearer ") == true })
        }
    }

    @Test(arguments: ["", "not a key", "-----BEGIN PRIVATE KEY-----\nc2VjcmV0LWJ5dGVz\n-----END PRIVATE KEY-----"])
    func `given an invalid key file, then the error names the file without its contents`(text: String) async throws {
        try await withKey(text) { token in
            let error = await #expect(throws: CredentialError.self) { try await token.mint(at: .sample) }
            #expect(error?.description.contains(token.keyFile) == true)
            #expect(error?.description.contains("c2VjcmV0") == false)
        }
    }

    @Test func `given a missing key file, then the error names it`() async throws {
        let token = ProviderTokenSigner(keyID: "ABC123DEFG", teamID: "DEF123GHIJ", keyFile: "/nonexistent.p8")
        await #expect(throws: CredentialError.self) { try await token.mint(at: .sample) }
    }

    @Test func `a rotated key signs after it is loaded, and a malformed key never does`() async throws {
        try await withKey { token in
            let file = token.file(clock: .system)
            #expect(await file.reload() == .loaded)
            let source = token.source(file, clock: .system)
            let first = try await source.current().authorization
            try "garbage".write(toFile: token.keyFile, atomically: true, encoding: .utf8)
            guard case .refused(let error, keepsOld: true) = await file.reload() else {
                Issue.record("garbage was not refused")
                return
            }
            #expect(error.description.contains(token.keyFile) && !error.description.contains("garbage"))
            source.renew()
            _ = try await source.current()
            let rotated = ES256PrivateKey()
            try rotated.pemRepresentation.write(toFile: token.keyFile, atomically: true, encoding: .utf8)
            #expect(await file.reload() == .loaded)
            source.renew()
            let second = try #require(try await source.current().authorization)
            #expect(second != first)
            let keys = JWTKeyCollection()
            await keys.add(ecdsa: rotated.publicKey)
            let claims = try await keys.verify(String(second.dropFirst(7)), as: Claims.self)
            #expect(claims.iss == "DEF123GHIJ")
        }
    }

    private static func json(_ part: String) -> JSONValue? {
        var base64 = part.replacing("-", with: "+").replacing("_", with: "/")
        while !base64.count.isMultiple(of: 4) { base64 += "=" }
        return Data(base64Encoded: base64).flatMap { try? WireCoding.decode(JSONValue.self, from: Array($0)) }
    }
}

extension ProviderTokenSigner {
    /// A token signed with the current file.
    fileprivate func mint(at now: Timestamp) async throws(CredentialError) -> String {
        let file = file(clock: .system)
        _ = await file.reload()
        return try await sign(with: try file.value(), at: now)
    }
}
