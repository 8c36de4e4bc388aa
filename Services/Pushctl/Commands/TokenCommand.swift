import ArgumentParser
import Foundation
import HTTPAuth
import JWTKit
import PushProtocol
import ServiceKit

/// `pushctl token mint`: prints a bearer token like the ones that an app's backend signs.
struct TokenCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "token", abstract: "Create bearer tokens for development.", subcommands: [Mint.self])

    struct Mint: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print a bearer token for a user or a publisher, signed with the app's HS256 secret. For "
                + "development only: in production, the app's own backend signs, and Heliograph has no signing key.")
        @Option(help: "The app.") var app: String
        @Option(help: "The user.") var user: String?
        @Option(help: "A publisher's name, instead of a user, for POST /v1/events and /v1/notifications.")
        var publisher: String?
        @Option(help: "An operation of the publisher: events:publish or notifications:send; repeat it for both.")
        var may: [String] = []
        @Option(help: "A type that the publisher may publish, or the beginning of types up to a dot; repeatable.")
        var eventType: [String] = []
        @Option(parsing: .unconditional, help: "Seconds until it expires; negative for an expired token.")
        var expiresIn = 3600
        @OptionGroup var apps: AppsOption
        @OptionGroup var output: OutputOption

        func run() async throws {
            let configured = try apps.app(app)
            let holder: TokenHolder = publisher == nil ? .user : .publisher
            let list = holder == .user ? configured.bearer : configured.publishers
            guard let hs256 = list.first(where: { $0.algorithm == .hs256 }) else {
                throw CommandError(
                    "the app \(app) has no HS256 key in \(holder.member); tokens can be minted only with one")
            }
            let now = Int64(Date().timeIntervalSince1970)
            var claims = try holderClaims(hs256)
            claims["iat"] = .int(now)
            claims["exp"] = .int(now + Int64(expiresIn))
            claims["iss"] = hs256.issuer.map(JSONValue.string)
            claims["aud"] = hs256.audience.map(JSONValue.string)
            if let claim = hs256.appClaim { claims[claim.name] = .string(claim.value) }
            let keys = JWTKeyCollection()
            await keys.add(hmac: HMACKey(from: try secret(of: hs256)), digestAlgorithm: .sha256)
            let token = try await keys.sign(Claims(value: .object(claims)))
            let expiresAt = Date(timeIntervalSince1970: Double(now + Int64(expiresIn)))
            try output.write(["token": .string(token), "expires_at": .time(expiresAt)], text: [token])
        }

        /// The claims that name the user, or the publisher and its permissions.
        private func holderClaims(_ verification: BearerVerification) throws -> [String: JSONValue] {
            switch (user, publisher) {
            case (let user?, nil):
                guard may.isEmpty, eventType.isEmpty else {
                    throw CommandError("--may and --event-type need --publisher", .usage)
                }
                return [verification.userClaim: .string(user)]
            case (nil, let publisher?):
                var claims: [String: JSONValue] = [
                    "sub": .string(publisher), "scope": .string(may.joined(separator: " ")),
                ]
                if !eventType.isEmpty { claims["event_types"] = .array(eventType.map(JSONValue.string)) }
                let names = Set(PublisherScope.operations.map(\.rawValue))
                guard !may.isEmpty, names.isSuperset(of: may), PublisherScope(.object(claims)) != nil else {
                    throw CommandError(
                        "--publisher needs --may with one of \(names.sorted().joined(separator: ", "))", .usage)
                }
                return claims
            default: throw CommandError("name either --user or --publisher", .usage)
            }
        }

        /// The secret of an HS256 key: the first line of its file.
        private func secret(of verification: BearerVerification) throws -> String {
            guard case .file(let path) = verification.keys else {
                throw CommandError("the app \(app) has no secret in a file")
            }
            guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
                throw CommandError("\(path): cannot be read", .notFound)
            }
            // A JWK or JWK set is a JSON object. Services read a plain secret from the first line, with its spaces.
            guard text.first(where: { !$0.isWhitespace }) != "{" else {
                throw CommandError("\(path): contains JWKs; minting needs a file with a plain secret")
            }
            guard let secret = text.split(whereSeparator: \.isNewline).first else {
                throw CommandError("\(path): is empty; minting needs a secret in its first line")
            }
            return String(secret)
        }
    }

    /// The claims as JSON. Signing uses `encode(to:)` only; `JWTPayload` requires the others.
    private struct Claims: JWTPayload {
        let value: JSONValue

        init(value: JSONValue) { self.value = value }
        init(from decoder: any Decoder) throws { value = try JSONValue(from: decoder) }
        func encode(to encoder: any Encoder) throws { try value.encode(to: encoder) }
        func verify(using algorithm: some JWTAlgorithm) async throws {}
    }
}
