import Foundation
import HTTPSFetch
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import NIOCore
import PushProtocol
import Testing
import TestSupport

@testable import Console

/// The console's pages, in front of scripted APIs.
struct ConsoleHTTP: Sendable {
    static let secret = "a-secret-of-at-least-thirty-two-bytes"
    /// The authority of the test client's requests.
    static let address = ConsoleAddress("http://localhost")!

    struct Answer: Sendable {
        var status: Int
        var text: String
        var headers: HTTPFields
    }

    let client: any TestClientProtocol
    let frame: ConsoleFrame
    /// The requests that the APIs received.
    let server: ScriptedServer

    /// - Parameter api: the status and body for a request's line, such as `GET /v1/operator/counts?app=x`.
    static func with(
        address: ConsoleAddress = address, signIn: SignInRoutes.Method = .development,
        api: @escaping @Sendable (String) -> (Int, String) = { _ in (200, "{}") },
        _ body: @escaping @Sendable (ConsoleHTTP) async throws -> Void
    ) async throws {
        let folder = try TemporaryFolder()
        let server = try ScriptedServer { request in
            let line = request.prefix { $0 != "\r\n" }.replacing(" HTTP/1.1", with: "")
            let (status, text) = api(String(line))
            return .text("HTTP/1.1 \(status) X\r\nContent-Length: \(text.utf8.count)\r\n\r\n\(text)")
        }
        defer { server.stop() }
        let fetch = HTTPSFetch()
        let url = "http://127.0.0.1:\(server.port)"
        let frame = ConsoleFrame(
            keeper: SessionKeeper(secret: secret, address: address, lifetime: .seconds(3600)),
            audit: try AuditLog(path: "\(folder.path)/audit.jsonl"))
        let routes = ConsoleRoutes(
            frame: frame, signIn: signIn,
            rules: OperatorAPI(service: "rules", address: url, key: "key-of-rules", fetch: fetch),
            registry: OperatorAPI(service: "token-registry", address: url, key: "key-of-registry", fetch: fetch),
            links: Seal(secret: secret, purpose: .supportLink),
            services: [ObservedService(name: "rules", address: url)], adminFetch: fetch,
            apps: { [AppID(rawValue: "portal")!] })
        try await Application(router: routes.router, logger: .silent).test(.router) { client in
            try await body(ConsoleHTTP(client: client, frame: frame, server: server))
        }
    }

    func session(_ role: Role) -> Session { Session(name: "Kim", role: role) }

    func get(_ path: String, as session: Session? = nil) async throws -> Answer {
        try await send(.get, path, as: session, body: nil, origin: nil)
    }

    /// Sends a form; with the session's form token, unless `fields` has one.
    func post(
        _ path: String, _ fields: [String: String], as session: Session? = nil, origin: String? = address.origin
    ) async throws -> Answer {
        var fields = fields
        if let session, fields["form_token"] == nil { fields["form_token"] = frame.keeper.formToken(of: session) }
        return try await send(
            .post, path, as: session, body: FormCoding.text(fields.map { ($0, $1) }), origin: origin)
    }

    private func send(
        _ method: HTTPRequest.Method, _ path: String, as session: Session?, body: String?, origin: String?
    ) async throws -> Answer {
        var headers: HTTPFields = [:]
        if let session {
            headers[.cookie] = "other=1; " + String(frame.keeper.cookie(for: session).prefix { $0 != ";" })
        }
        if let origin { headers[.origin] = origin }
        return try await client.execute(
            uri: path, method: method, headers: headers, body: body.map { ByteBuffer(string: $0) },
            testCallback: { response in
                Answer(
                    status: response.status.code, text: String(buffer: response.body), headers: response.headers)
            })
    }

    var entries: [AuditEntry] { get async throws { try await frame.audit.last(100) } }
}
