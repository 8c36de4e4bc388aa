import Foundation
@testable import HTTPAuth
import PushProtocol
import RegistryStore
@testable import RuleEngine
@testable import Rules
import ServiceKit
import TestSupport

// Bodies and headers of HTTP requests, and the keys that verify them.

extension FuzzTarget {
    static let bearerToken = FuzzTarget("bearer-token") {
        let header = #"{"alg":"ES256","kid":"k1","typ":"JWT"}"#
        let claims =
            #"{"sub":"u1","iss":"i","aud":["a"],"iat":1767225000,"nbf":1767225000,"exp":1767225900,"app":"demo"}"#
        return [[header, claims, "signature"].map { Data($0.utf8).base64URL }.joined(separator: ".")]
            .map { Array($0.utf8) }
    } read: { input in
        let token = try SignedToken(String(decoding: input, as: UTF8.self))
        let rules = BearerVerification(
            algorithm: .es256, keys: .file("k"), issuer: "i", audience: "a", appClaim: .init("app", is: "demo"))
        guard let app = AppID(rawValue: "demo") else { return }
        _ = try rules.caller(
            of: app, from: token.claims(), now: Timestamp.sample.date, maximumLifetime: .seconds(86_400))
    }

    static let keyMaterial = FuzzTarget("key-material") {
        let ec =
            #"{"kty":"EC","crv":"P-256","kid":"k","use":"sig","alg":"ES256","key_ops":["verify"],"#
            + #""x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}"#
        let pem =
            "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEf83OJ3D2xF1Bg8vub9tLe1gHMzV7\n"
            + "6e8Tus9uPHvRVEXH8UTNG72bfocs3+257rn0s2ldbqkLJK2KRiMohYjlrQ==\n-----END PUBLIC KEY-----\n"
        return [
            ec, #"{"keys":[\#(ec),{"kty":"oct","k":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"}]}"#, pem,
            "a shared secret of thirty-two bytes or more",
        ].map { Array($0.utf8) }
    } read: { input in
        for algorithm in BearerVerification.Algorithm.allCases {
            waitFor { _ = try? await VerificationKey.keys(in: input, for: algorithm) }
        }
    }

    static let installation = FuzzTarget("installation") {
        [
            #"{"locale":"de-CH","time_zone":"Europe/Zurich","app_version":"4.2","registrations":["#
                + #"{"kind":"alert","token":"\#(RequestVector.t1)","environment":"production","topic":"t"},"#
                + #"{"kind":"live-activity","token":"\#(RequestVector.t2)","environment":"production","scope":"m"},"#
                + #"{"kind":"fid","token":"cAbcdefghijklmnopqrstu","platform":"ios"}]}"#
        ].map { Array($0.utf8) }
    } read: { input in
        _ = try InstallationBody(input).contradiction
    }

    /// The stored settings in the first line, and the patch in all others.
    static let preferences = FuzzTarget("preferences") {
        let settings =
            #"{"enabled":true,"channels":{"banner":false},"types":{"chat":false,"files":{"push":false}},"#
            + #""mutes":{"thread/9":{"until":"2026-03-29T08:00:00Z"}},"zone":"Europe/Berlin","language":"de","#
            + #""quiet_hours":{"days":["fri","sat"],"start":"22:00","end":"07:00"},"digest_time":"08:00"}"#
        return [
            "{}\n" + settings, settings + "\n" + #"{"types":{"chat":null},"mutes":null,"quiet_hours":{"end":"08:00"}}"#,
        ]
        .map { Array($0.utf8) }
    } read: { input in
        var input = FuzzInput(input)
        let stored = try PersonalSettings(WireCoding.decode(JSONValue.self, from: input.line()))
        let changed = try PreferencesPatch(Array(input.rest)).applied(to: stored, now: .sample)
        require((try? PersonalSettings(changed.json)) == changed, "settings differ from their stored form")
    }
}

extension Data {
    fileprivate var base64URL: String {
        base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }
}

private func waitFor(_ work: @escaping @Sendable () async -> Void) {
    let semaphore = DispatchSemaphore(value: 0)
    Task {
        await work()
        semaphore.signal()
    }
    semaphore.wait()
}
