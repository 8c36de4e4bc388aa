import Foundation
import HTTP2
import HTTP2Server
import Logging
import Messaging
import Providers
import PushProtocol
import PushSending
import ServiceKit
import ServiceLifecycle
import Testing
import TestSupport

@testable import APNsSender

/// A route that authenticates with a certificate.
@Suite(.timeLimit(.minutes(2))) struct CertificateWireTests {
    private let catalogs: AppCatalogs
    private let certificates: PushCertificates

    init() throws {
        catalogs = try AppCatalogs()
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

    @Test func `A27: the client certificate is presented and no provider token is sent`() async throws {
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
        // The sandbox has no certificate, so the app is unconfigured there.
        let sandbox = try await sender.send(.sample(environment: .development))
        #expect(sandbox.answers == [.skipped(reason: "unconfigured")])
        await sender.stop()
        await apns.server.shutdown()
    }

    @Test func `the one-stream rule applies to provider tokens only`() async throws {
        try certificates.issue("mine")
        let gate = Gate()
        let apns = try await ScriptedAPNs.start(
            clientCertificates: .required(caFile: try TestCertificates.shared().authorityFile)
        ) { _, _ in
            await gate.pass()
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

    @Test func `A15: a location push and a topic outside the certificate are rejected`() async throws {
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

    @Test func `given another app's certificate, then the route starts paused, names it, and keeps its queue`()
        async throws
    {
        try certificates.issue("theirs", topics: ["com.example.other"])
        let apns = try await server()
        let sender = try await apns.sender(try catalog("theirs"))
        let reason = "\(certificates.path("theirs.pem")): is for com.example.other, not for com.example.app"
        #expect(sender.trouble() == .misconfigured(reason: reason))
        let result = try await sender.send(.sample())
        #expect(result.outcomes.isEmpty && result.held != nil)
        await sender.stop()
        await apns.server.shutdown()
    }

    @Test(arguments: ["", "-----BEGIN CERTIFICATE-----\nc2VjcmV0LWJ5dGVz\n-----END CERTIFICATE-----\n"])
    func `given an invalid certificate, then the route is paused until the named file is replaced`(
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
        await sender.watch.reload()
        #expect(try await sender.send(.sample()).answers.map(\.disposition) == [.accepted])
        #expect(sender.trouble() == nil)
        await sender.stop()
        await apns.server.shutdown()
    }

    @Test func `a new certificate is used on new connections, and an invalid one is reported by name`()
        async throws
    {
        try certificates.issue("mine", topics: ["com.example.app"])
        try certificates.issue("theirs", topics: ["com.example.other"])
        try certificates.issue("next", topics: ["com.example.app"], days: 90)
        let apns = try await server()
        let log = CapturingLogger()
        let sender = try await apns.sender(try catalog("mine"), logger: log.logger)
        _ = try await sender.send(.sample())
        await sender.watch.reload()
        #expect(log.notable.isEmpty)

        try certificates.folder.write("mine.pem", "nonsense")
        await sender.watch.reload()
        try certificates.replace("mine", with: "theirs")
        await sender.watch.reload()
        #expect(log.notable.map(\.level) == [.error, .error])
        let reasons = log.notable.map { "\($0.metadata["reason"] ?? "")" }
        #expect(reasons.allSatisfy { $0.contains("mine.pem: ") })
        #expect(reasons.last?.contains("is for com.example.other, not for com.example.app") == true)
        #expect(sender.watch.problem?.contains("mine.pem") == true)
        #expect(try await sender.send(.sample()).answers.map(\.disposition) == [.accepted])
        #expect(apns.opened == 1)

        try certificates.replace("mine", with: "next")
        await sender.watch.reload()
        #expect(log.notable.last?.level == .notice && sender.watch.problem == nil)
        #expect(try await sender.send(.sample()).answers.map(\.disposition) == [.accepted])
        #expect(apns.opened == 2)
        try await eventually("the old connection ends", within: .seconds(30)) { apns.closed.count == 1 }
        await sender.stop()
        try await eventually("all connections end", within: .seconds(30)) { apns.closed.count == 2 }
        await apns.server.shutdown()
    }

    @Test func `a certificate without its key is rejected until the key follows`() async throws {
        try certificates.issue("mine")
        try certificates.issue("next", days: 90)
        let apns = try await server()
        let sender = try await apns.sender(try catalog("mine"))
        // As operators replace files: one, then the other.
        let (certificate, key) = try certificates.texts("next")
        try certificates.folder.write("mine.pem", certificate)
        await sender.watch.reload()
        #expect(sender.watch.problem?.contains("is not the private key of") == true)
        #expect(try await sender.send(.sample()).answers.map(\.disposition) == [.accepted])
        try certificates.folder.write("mine.key", key)
        await sender.watch.reload()
        #expect(sender.watch.problem == nil)
        #expect(try await sender.send(.sample()).answers.map(\.disposition) == [.accepted])
        #expect(apns.opened == 2)
        await sender.stop()
        await apns.server.shutdown()
    }

    @Test func `the topics are those of the current certificate`() async throws {
        try certificates.issue("mine", topics: ["com.example.app"])
        try certificates.issue("next", topics: ["com.example.app", "com.example.app.voip"])
        let apns = try await server()
        let sender = try await apns.sender(try catalog("mine"))
        let call = Push.sample(RequestVector.override("voip", ["q": 1]))
        let refused = LocalRejection("topic-not-in-certificate").answer
        #expect(try await sender.send(call).answers == [refused])
        try certificates.replace("mine", with: "next")
        await sender.watch.reload()
        #expect(try await sender.send(.sample(call.content)).answers.map(\.disposition) == [.accepted])
        await sender.stop()
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

extension CapturingLogger {
    /// Log lines of level notice and above.
    fileprivate var notable: [Line] { lines.filter { $0.level >= .notice } }
}
