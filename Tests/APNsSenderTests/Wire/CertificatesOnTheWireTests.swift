import Foundation
import HTTP2
import Logging
import Messaging
import PushProtocol
import PushSending
import ServiceKit
import ServiceLifecycle
import TestSupport
import Testing
@testable import APNsSender

/// A lane that proves itself by a certificate.
@Suite(.timeLimit(.minutes(2))) struct CertificatesOnTheWireTests {
    private let catalogs: Catalogs
    private let certificates: PushCertificates

    init() throws {
        catalogs = try Catalogs()
        certificates = try PushCertificates()
    }

    private func server() async throws -> ScriptedAPNs {
        try await ScriptedAPNs.start(
            clientCertificates: .required(caFile: try TestCertificates.shared().authorityFile)
        ) { _, _ in [.respond(status: 200)] }
    }

    private func catalog(_ name: String) throws -> AppCatalog {
        try catalogs.certificate(certificates.path("\(name).pem"), key: certificates.path("\(name).key"))
    }

    @Test func `A27: the certificate is shown, and no token is sent`() async throws {
        try certificates.issue("mine", topics: ["com.example.app", "com.example.app.voip"])
        let apns = try await server()
        let sender = try await apns.sender(try catalog("mine"))
        let target = Push.Target.sample()
        let result = try await sender.send(.sample(targets: [target]))
        #expect(result.answers.map(\.disposition) == [.accepted])
        let request = try #require(apns.requests.first)
        #expect(request.hasClientCertificate)
        #expect(request.headers["authorization"] == nil)
        let fields = Dictionary(
            request.headers.filter { $0.name.hasPrefix("apns-") }.map { ($0.name, $0.value) }
        ) { first, _ in first }
        let vector = try #require(RequestVector.all.first { $0.name == "A01" })
        #expect(fields == vector.headers(to: target, now: sender.time.now))
        #expect(String(decoding: request.body, as: UTF8.self) == vector.body)
        // Sandbox has no certificate, so there the app is unconfigured.
        let sandbox = try await sender.send(.sample(environment: .development))
        #expect(sandbox.answers == [.skipped(reason: "unconfigured")])
        await sender.stop()
        await apns.server.shutdown()
    }

    @Test func `the one-stream rule is for provider tokens alone`() async throws {
        try certificates.issue("mine")
        let gate = Gate()
        let apns = try await ScriptedAPNs.start(
            clientCertificates: .required(caFile: try TestCertificates.shared().authorityFile)
        ) { _, _ in
            await gate.wait()
            return [.respond(status: 200)]
        }
        let sender = try await apns.sender(try catalog("mine"))
        let targets = (0..<20).map { Push.Target.sample(token: String($0 + 0x1000_0000, radix: 16)) }
        async let result = sender.send(.sample(targets: targets))
        try await eventually("all at once", within: .seconds(30)) { apns.requests.count == 20 }
        gate.open()
        #expect(try await result.answers.count == 20)
        await sender.stop()
        await apns.server.shutdown()
    }

    @Test func `A15: a location push is rejected, and so is a topic that the certificate is not for`() async throws {
        try certificates.issue("mine", topics: ["com.example.app"])
        let apns = try await server()
        let sender = try await apns.sender(try catalog("mine"))
        for (type, reason) in [("location", "location-needs-a-provider-token"), ("voip", "topic-not-in-certificate")] {
            let result = try await sender.send(.sample(RequestVector.override(type, ["q": 1])))
            #expect(result.answers == [.rejected(reason: reason, suspectToken: false)])
        }
        #expect(apns.requests.isEmpty)
        await sender.stop()
        await apns.server.shutdown()
    }

    @Test func `a certificate for another app shuts the lane from the start, by name, and keeps its queue`()
        async throws
    {
        try certificates.issue("theirs", topics: ["com.example.other"])
        let apns = try await server()
        let sender = try await apns.sender(try catalog("theirs"))
        #expect(
            sender.trouble()
                == .misconfigured(reason: "the push certificate is for com.example.other, not for com.example.app"))
        let result = try await sender.send(.sample())
        #expect(result.outcomes.isEmpty && result.held != nil)
        await sender.stop()
        await apns.server.shutdown()
    }

    @Test(arguments: ["", "-----BEGIN CERTIFICATE-----\nc2VjcmV0LWJ5dGVz\n-----END CERTIFICATE-----\n"])
    func `one that is no certificate shuts the lane, is told by file, and is taken up once it is put right`(
        text: String
    ) async throws {
        try certificates.issue("good")
        try certificates.folder.write("mine.pem", text)
        try certificates.folder.write("mine.key", text)
        let apns = try await server()
        let sender = try await apns.sender(try catalog("mine"))
        let reason = sender.trouble()?.reason ?? ""
        #expect(reason.contains("mine.pem") && !reason.contains("c2VjcmV0"))
        #expect(try await sender.send(.sample()).held != nil)
        try certificates.replace("mine", with: "good")
        sender.time.advance(by: .seconds(30))
        #expect(try await sender.send(.sample()).answers.map(\.disposition) == [.accepted])
        #expect(sender.trouble() == nil)
        await sender.stop()
        await apns.server.shutdown()
    }

    @Test func `a changed certificate is taken up on new connections, and one of no use is not`() async throws {
        try certificates.issue("mine", days: 2)
        try certificates.issue("next", days: 90)
        let apns = try await server()
        let sender = try await apns.sender(try catalog("mine"))
        let connection = try #require(sender.gateways.certified.values.first)
        _ = try await sender.send(.sample())
        let first = try #require(connection.certificate?.expiresAt)
        #expect(connection.reload() == .none)

        try certificates.folder.write("mine.pem", "nonsense")
        guard case .refused(let reason) = connection.reload() else {
            Issue.record("nonsense was taken up")
            return
        }
        #expect(reason.contains("mine.pem"))
        #expect(connection.certificate?.expiresAt == first)
        #expect(try await sender.send(.sample()).answers.map(\.disposition) == [.accepted])
        #expect(apns.opened == 1)

        try certificates.replace("mine", with: "next")
        #expect(connection.reload() == .taken)
        #expect(try #require(connection.certificate?.expiresAt) > first)
        #expect(try await sender.send(.sample()).answers.map(\.disposition) == [.accepted])
        #expect(apns.opened == 2)
        await sender.stop()
        await apns.server.shutdown()
    }

    @Test func `the watch takes a changed certificate up by itself, and ends its connections with the process`()
        async throws
    {
        try certificates.issue("mine")
        try certificates.issue("next", days: 90)
        let apns = try await server()
        let sender = try await apns.sender(try catalog("mine"))
        _ = try await sender.send(.sample())
        let connection = try #require(sender.gateways.certified.values.first)
        let first = try #require(connection.certificate?.expiresAt)
        try certificates.replace("mine", with: "next")
        let log = CapturingLogger()
        let clock = SenderClock(
            now: { .now }, uptime: { .zero }, sleep: { _ in try await Task.sleep(for: .milliseconds(1)) })
        let watch = CertificateWatch(lanes: sender.gateways.certified, clock: clock, logger: log.logger)
        let group = ServiceGroup(services: [watch], logger: log.logger)
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await group.run() }
            try await eventually("the change is taken up", within: .seconds(30)) {
                connection.certificate.map { $0.expiresAt > first } ?? false
            }
            await group.triggerGracefulShutdown()
            try await tasks.waitForAll()
        }
        #expect(log.lines.contains { $0.metadata["app"] == "demo" && $0.level == .notice })
        try await eventually("the connections end", within: .seconds(30)) { apns.closed.count == apns.opened }
        await apns.server.shutdown()
    }

    @Test func `the topics are read from Apple's extension`() throws {
        try certificates.issue("mine", topics: ["com.example.app", "com.example.app.voip"])
        let pem = Array(try Data(contentsOf: URL(filePath: certificates.path("mine.pem"))))
        #expect(try PushCertificate(pem: pem, file: "x").topics == ["com.example.app", "com.example.app.voip"])
        try certificates.issue("bare")
        let bare = Array(try Data(contentsOf: URL(filePath: certificates.path("bare.pem"))))
        #expect(try PushCertificate(pem: bare, file: "x").topics == nil)
    }
}
