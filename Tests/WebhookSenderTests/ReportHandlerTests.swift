import Foundation
import HTTPSFetch
import Logging
import Messaging
import Primitives
import PushProtocol
import ServiceConnections
import ServiceKit
import Synchronization
import Testing
import TestSupport

@testable import WebhookSender

/// Requests to a receiver on this machine.
@Suite(.timeLimit(.minutes(1))) struct ReportHandlerTests {
    private static let app = AppID(rawValue: "shop")!
    private static let name = WebhookName(rawValue: "crm")!
    private static let queue = WorkQueue.webhookReports(app, name)
    private static let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    private static let id = UUID(uuidString: "6f1f8f5e-53f2-5b0c-9d0a-0b1de15c7c3a")!

    private let folder: TemporaryFolder
    private let clock = Clock()

    private final class Clock: Sendable {
        private let time = Mutex(Timestamp(milliseconds: 1_800_000_000_000))
        var now: Timestamp { time.withLock { $0 } }
        func advance(_ duration: Duration) { time.withLock { $0 = $0 + duration } }
    }

    init() throws { folder = try TemporaryFolder() }

    private static func answer(_ status: String, _ headers: String = "") -> ScriptedServer.Answer {
        .text("HTTP/1.1 \(status)\r\n\(headers)Content-Length: 0\r\nConnection: close\r\n\r\n")
    }

    private func settings(_ further: [String: String] = [:]) throws -> WebhookSettings {
        try WebhookSettings(
            Settings.load(
                keys: .webhookSender,
                environment: [
                    "AMQP_URL": "amqp://nobody:x@127.0.0.1:1/none",
                    "HELIOGRAPH_APPS": try folder.write("apps.yaml", "apps:\n"),
                    "HELIOGRAPH_WEBHOOK_PRIVATE_NETWORKS": "yes", "HELIOGRAPH_ALLOW_PLAINTEXT": "yes",
                    "WEBHOOK_FAILURE_TIME": "1h",
                ].merging(further) { $1 }))
    }

    private func handler(
        _ url: String, kinds: Set<ReportKind> = Set(ReportKind.allCases), settings: WebhookSettings
    ) throws -> ReportHandler {
        let endpoints = Endpoints(settings: settings, logger: .silent)
        try endpoints.add(
            AppConfiguration(
                id: Self.app,
                webhooks: [
                    WebhookConfiguration(
                        name: Self.name, url: try OutboundURL(url),
                        secretFile: try folder.write("secrets", Self.secret),
                        kinds: kinds)
                ]))
        return ReportHandler(
            endpoints: endpoints, failureTime: settings.failureTime, now: { [clock] in clock.now })
    }

    private func report(_ kind: ReportKind = .receipt) throws -> [UInt8] {
        try ReportEvent(
            kind: kind, id: Self.id, source: "/heliograph/rules", time: Timestamp(milliseconds: 0),
            data: ["receipt": "opened"]
        ).body()
    }

    private func inbound(_ body: [UInt8], kind: ReportKind = .receipt, key: String? = nil, age: Duration = .zero)
        -> Inbound
    {
        Inbound(
            queue: Self.queue, exchange: kind.exchange.name, routingKey: key ?? kind.routingKey(of: Self.app),
            body: body,
            firstSeen: clock.now - age)
    }

    private func handle(_ handler: ReportHandler, age: Duration = .zero) async throws -> Disposition {
        let inbound = inbound(try report(), age: age)
        let message = try handler.decode(inbound)
        let verdicts = try await handler.handle([Delivery(inbound: inbound, message: message)])
        return try #require(verdicts.first).disposition
    }

    @Test func `a report is sent signed, as it came, and 2xx settles it`() async throws {
        let server = try ScriptedServer { _ in Self.answer("204 No Content") }
        defer { server.stop() }
        let handler = try handler("http://127.0.0.1:\(server.port)/hook?x=1", settings: settings())
        #expect(try await handle(handler) == .done)
        let request = try #require(server.requests.first)
        let parts = request.components(separatedBy: "\r\n\r\n")
        let body = try report()
        #expect(parts[1] == String(decoding: body, as: UTF8.self))
        #expect(parts[0].hasPrefix("POST /hook?x=1 HTTP/1.1\r\n"))
        let id = Self.id.uuidString.lowercased()
        let signature = WebhookSecret.signature(
            id: id, timestamp: 1_800_000_000, body: body, secrets: [try #require(WebhookSecret(Self.secret))])
        for line in [
            "Content-Type: application/cloudevents+json", "webhook-id: \(id)", "webhook-timestamp: 1800000000",
            "webhook-signature: \(signature)",
        ] { #expect(parts[0].components(separatedBy: "\r\n").contains(line), "\(line) in \(parts[0])") }
    }

    @Test func `a redirect is not followed`() async throws {
        let server = try ScriptedServer { _ in
            Self.answer("307 Temporary Redirect", "Location: http://127.0.0.1:9/\r\n")
        }
        defer { server.stop() }
        let handler = try handler("http://127.0.0.1:\(server.port)/", settings: settings())
        #expect(try await handle(handler).code == "webhook-rejected")
        #expect(server.requests.count == 1)
    }

    @Test func `a silent receiver is paused after the time-out, and its reports wait`() async throws {
        let server = try ScriptedServer { _ in .silence }
        defer { server.stop() }
        let handler = try handler(
            "http://127.0.0.1:\(server.port)/", settings: settings(["WEBHOOK_TIMEOUT": "100ms"]))
        #expect(try await handle(handler).code == "webhook-unavailable")
        guard case .postpone(let delay, _) = try await handle(handler) else {
            Issue.record("the second report was not postponed")
            return
        }
        #expect(delay == .seconds(5))
        #expect(server.requests.count <= 1)
    }

    @Test func `after the time limit a report is dead, and the webhook is disabled until a probe succeeds`()
        async throws
    {
        let status = Mutex("500 Oops")
        let server = try ScriptedServer { _ in Self.answer(status.withLock { $0 }) }
        defer { server.stop() }
        let handler = try handler("http://127.0.0.1:\(server.port)/", settings: settings())
        #expect(try await handle(handler, age: .seconds(3599)).code == "webhook-rejected")
        #expect(handler.endpoints.condition == .holds)
        #expect(try await handle(handler, age: .seconds(3600)).code == "webhook-failed")
        guard case .degraded(let problem) = handler.endpoints.condition else {
            Issue.record("the disabled webhook does not show in readiness")
            return
        }
        #expect(problem.hasPrefix("the webhook crm of shop gets no reports: no report was delivered since "))
        // A probe, and a report that is not sent.
        #expect(try await handle(handler).code == "webhook-rejected")
        #expect(try await handle(handler).code == "webhook-disabled")
        #expect(server.requests.count == 3)
        status.withLock { $0 = "200 OK" }
        clock.advance(.seconds(900))
        #expect(try await handle(handler) == .done)
        #expect(try await handle(handler) == .done)
        #expect(handler.endpoints.condition == .holds)
    }

    @Test func `an address that is not allowed gets no request`() async throws {
        let server = try ScriptedServer { _ in Self.answer("200 OK") }
        defer { server.stop() }
        let strict = try settings(["HELIOGRAPH_WEBHOOK_PRIVATE_NETWORKS": "no"])
        let handler = try handler("https://127.0.0.1:\(server.port)/", settings: strict)
        guard case .deadLetter(let reason) = try await handle(handler) else {
            Issue.record("no dead letter")
            return
        }
        #expect(reason == Reason(code: "webhook-refused", detail: "127.0.0.1 is a loopback address"))
        guard case .degraded = handler.endpoints.condition else {
            Issue.record("the refused webhook does not show in readiness")
            return
        }
        #expect(server.requests.isEmpty)
    }

    @Test func `a name that leads to an address that is not allowed gets no request`() async throws {
        let server = try ScriptedServer { _ in Self.answer("200 OK") }
        defer { server.stop() }
        // Resolves to loopback, like a name of an attacker.
        let name = ProcessInfo.processInfo.hostName
        let strict = try settings(["HELIOGRAPH_WEBHOOK_PRIVATE_NETWORKS": "no"])
        let handler = try handler("https://\(name):\(server.port)/", settings: strict)
        let code = try await handle(handler).code
        // A machine whose name does not resolve, or leads to a public address.
        #expect(["webhook-refused", "webhook-unavailable"].contains(code ?? ""))
        #expect(server.requests.isEmpty)
    }

    @Test func `a webhook gets only the kinds that it asks for`() async throws {
        let server = try ScriptedServer { _ in Self.answer("200 OK") }
        defer { server.stop() }
        let handler = try handler("http://127.0.0.1:\(server.port)/", kinds: [.delivery], settings: settings())
        #expect(try await handle(handler).code == "webhook-unwanted")
        #expect(server.requests.isEmpty)
    }

    @Test func `a report of another app or kind, or without an id, is undecodable`() throws {
        let handler = try handler("https://hooks.example/", settings: settings())
        let cases: [(body: [UInt8], key: String?)] = try [
            (report(), "event.receipt.other"), (report(.delivery), "event.receipt.shop"),
            (Array("{}".utf8), nil), (Array("x".utf8), nil),
            (Array(#"{"specversion":"1.0","type":"heliograph.receipt.recorded","id":"1"}"#.utf8), nil),
            (Array(#"{"specversion":"1.0","type":"other","id":"6f1f8f5e-53f2-5b0c-9d0a-0b1de15c7c3a"}"#.utf8), nil),
        ]
        for (body, key) in cases {
            #expect(throws: WireError.self) { try handler.decode(inbound(body, key: key)) }
        }
    }

    @Test func `a new secret is used without a restart, and an invalid file keeps the former ones`() async throws {
        let server = try ScriptedServer { _ in Self.answer("200 OK") }
        defer { server.stop() }
        let handler = try handler("http://127.0.0.1:\(server.port)/", settings: settings())
        let other = "whsec_" + Data(repeating: 7, count: 32).base64EncodedString()
        func signatures() async throws -> Int {
            _ = try await handle(handler)
            let head = server.requests.last?.components(separatedBy: "\r\n\r\n").first ?? ""
            return head.components(separatedBy: "v1,").count - 1
        }
        #expect(try await signatures() == 1)
        _ = try folder.write("secrets", "\(Self.secret)\n\(other)\n")
        try await eventually("both secrets") { try await signatures() == 2 }
        _ = try folder.write("secrets", "oops")
        #expect(try await signatures() == 2)
    }

    @Test func `an invalid file of secrets is refused at the start`() throws {
        let settings = try settings()
        let file = try folder.write("bad", "password")
        let error = #expect(throws: ConfigurationError.self) {
            try Endpoints(settings: settings, logger: .silent).add(
                AppConfiguration(
                    id: Self.app,
                    webhooks: [
                        WebhookConfiguration(
                            name: Self.name, url: try OutboundURL("https://hooks.example/"), secretFile: file)
                    ]))
        }
        #expect(error?.problems.first?.hasPrefix("\(file): a webhook's secret is whsec_") == true)
        #expect(error.map { "\($0)".contains("password") } == false)
    }
}
