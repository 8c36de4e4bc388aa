import Foundation
import HTTP2
import HTTP2Server
import Logging
import NIOPosix
import PushProtocol
import ServiceKit
import Testing
import TestSupport

@testable import ProviderSimulator

/// The simulator on real ports, used by the senders' HTTP/2 client.
@Suite(.timeLimit(.minutes(2))) struct WireTests {
    /// A listening simulator and clients for one of its ports.
    struct Listening {
        let simulator: Simulator
        let endpoint: HTTP2Endpoint
        let ports: ProviderPorts

        func client(
            _ configuration: HTTP2ClientConfiguration = .init(),
            certificate: HTTP2Endpoint.ClientCertificate? = nil
        ) throws -> HTTP2Client {
            var endpoint = endpoint
            endpoint.tls.clientCertificate = certificate
            var configuration = configuration
            configuration.connectInterval = .zero
            configuration.maximumResends = 0
            return try HTTP2Client(
                endpoint: endpoint, configuration: configuration,
                eventLoopGroup: MultiThreadedEventLoopGroup.singleton, logger: Logger(label: "test"))
        }
    }

    static func withListener(
        _ role: ProviderPort, clientAuthorityFile: String? = nil, _ body: (Listening, HTTP2Client) async throws -> Void
    ) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "simulator-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        let identity = try ServerIdentity(authorityFile: folder.appending(path: "ca.pem").path)
        let simulator = Fixture.simulator { $0.readsTokenPrefixes = true }
        let listener = ProviderListener(
            role: role, simulator: simulator, host: "127.0.0.1", port: 0, portKey: .apnsPort,
            identity: identity, clientAuthorityFile: clientAuthorityFile, ports: ProviderPorts(),
            eventLoopGroup: MultiThreadedEventLoopGroup.singleton,
            logger: Logger(label: "test"),
            readiness: Readiness().condition("listener", .waiting("starting")))
        let server = try await listener.start()
        let listening = Listening(
            simulator: simulator,
            endpoint: try HTTP2Endpoint(url: "https://localhost:\(server.port)", caFile: identity.authorityFile),
            ports: listener.ports)
        let client = try listening.client()
        do {
            try await body(listening, client)
        } catch {
            await client.shutdown()
            await server.shutdown()
            throw error
        }
        await client.shutdown()
        await server.shutdown()
    }

    static func push(_ token: String = Fixture.token) -> HTTP2Request {
        let authorization = "bearer " + Self.providerToken
        return HTTP2Request(
            path: "/3/device/\(token)",
            headers: [
                HTTP2Header(name: "authorization", value: authorization),
                HTTP2Header(name: "apns-topic", value: Fixture.bundle),
                HTTP2Header(name: "apns-push-type", value: "alert"),
                HTTP2Header(name: "apns-id", value: Fixture.id, neverIndexed: true),
            ],
            body: Array(#"{"aps":{"alert":"hi"}}"#.utf8))
    }

    static let providerToken = Signing.providerToken(issuedAt: Timestamp.now.seconds)

    @Test func `a push is answered and logged`() async throws {
        try await Self.withListener(.apns(.development)) { listening, client async throws in
            let response = try await client.execute(Self.push(), deadline: .seconds(10))
            #expect(response.status == 200 && response.headers["apns-id"] == Fixture.id && response.body.isEmpty)
            let entry = try #require(listening.simulator.log.requests(of: .apns).first)
            #expect(entry.environment == .development && entry.request.connection == 1)
            #expect(entry.request.headers.filter(\.neverIndexed).map(\.name).contains("apns-id"))
        }
    }

    @Test func `a client certificate replaces the provider token; without either, the push is rejected`() async throws {
        let certificates = try TestCertificates.shared()
        try await Self.withListener(.apns(.production), clientAuthorityFile: certificates.authorityFile) {
            listening, otherAuthority async throws in
            let known = try listening.client(
                certificate: .init(
                    certificateFile: certificates.clientCertificateFile, keyFile: certificates.clientKeyFile))
            let push = HTTP2Request(
                path: "/3/device/\(Fixture.token)",
                headers: [HTTP2Header(name: "apns-topic", value: Fixture.bundle)],
                body: Array(#"{"aps":{"alert":"hi"}}"#.utf8))
            let taken = try await known.execute(push, deadline: .seconds(10)).status
            let refused = try await otherAuthority.execute(push, deadline: .seconds(10)).status
            await known.shutdown()
            #expect(taken == 200 && refused == 403)
        }
    }

    @Test func `a connection that starts with one stream carries hundreds of pushes`() async throws {
        try await Self.withListener(.apns(.production)) { listening, client async throws in
            let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 1...500 {
                    group.addTask { try await client.execute(Self.push(), deadline: .seconds(30)).status }
                }
                return try await group.reduce(into: [:]) { $0[$1, default: 0] += 1 }
            }
            #expect(statuses == [200: 500])
            let totals = listening.simulator.log.totals(of: .apns)
            #expect(totals.requests == 500)
        }
    }

    @Test func `rejections and faults reach the client as such`() async throws {
        try await Self.withListener(.apns(.production)) { _, client async throws in
            let gone = try await client.execute(Self.push("51030000"), deadline: .seconds(10))
            #expect(gone.status == 410)
            #expect(try ProviderJSON.value(of: gone.body)["reason"] == "Unregistered")
            let late = try await client.execute(Self.push("51170005"), deadline: .seconds(10))
            #expect(late.status == 400 && !late.body.isEmpty)
            let reset = await #expect(throws: HTTP2Error.self) {
                try await client.execute(Self.push("510c0002"), deadline: .seconds(10))
            }
            #expect(reset?.isSafeToResend == false)
            let refused = await #expect(throws: HTTP2Error.self) {
                try await client.execute(Self.push("510c0007"), deadline: .seconds(10))
            }
            #expect(refused?.isSafeToResend == true)
            let silence = await #expect(throws: HTTP2Error.self) {
                try await client.execute(Self.push("510b0000"), deadline: .milliseconds(300))
            }
            #expect(silence == .deadlineExceeded(written: true))
        }
    }

    @Test func `a GOAWAY before the stream leaves it unprocessed, and the next connection works`() async throws {
        try await Self.withListener(.apns(.production)) { _, client async throws in
            #expect(try await client.execute(Self.push(), deadline: .seconds(10)).status == 200)
            let error = await #expect(throws: HTTP2Error.self) {
                try await client.execute(Self.push("510d0000"), deadline: .seconds(10))
            }
            #expect(error?.isSafeToResend == true)
            #expect(try await client.execute(Self.push("510d0000"), deadline: .seconds(10)).status == 200)
            let dropped = await #expect(throws: HTTP2Error.self) {
                try await client.execute(Self.push("510f0000"), deadline: .seconds(10))
            }
            #expect(dropped?.isSafeToResend == false)
            #expect(try await client.execute(Self.push(), deadline: .seconds(10)).status == 200)
        }
    }

    @Test func `Google's port grants an access token and accepts a message with it`() async throws {
        try await Self.withListener(.google) { listening, client async throws in
            let now = Timestamp.now.seconds
            let assertion = Signing.rs256(
                TokenEndpointTests.header,
                TokenEndpointTests.claims.merging(["iat": .int(now), "exp": .int(now + 3600)]))
            let form = "grant_type=urn:ietf:params:oauth:grant-type:jwt-bearer&assertion=\(assertion)"
            let grant = try await client.execute(
                HTTP2Request(path: "/token", body: Array(form.utf8)), deadline: .seconds(10))
            let token = try #require(try ProviderJSON.value(of: grant.body)["access_token"]?.string)
            let answer = try await client.execute(
                HTTP2Request(
                    path: "/v1/projects/demo-project/messages:send",
                    headers: [HTTP2Header(name: "authorization", value: "Bearer \(token)")],
                    body: Array(#"{"message":{"token":"t","data":{"k":"v"}}}"#.utf8)),
                deadline: .seconds(10))
            #expect(answer.status == 200)
            #expect(listening.simulator.log.totals(of: .fcm).delivered == 1)
        }
    }

    @Test func `a port in use is reported`() async throws {
        try await Self.withListener(.google) { listening, _ async throws in
            let second = ProviderListener(
                role: .google, simulator: listening.simulator, host: "127.0.0.1", port: listening.endpoint.port,
                portKey: .fcmPort, identity: try Self.anyIdentity(), ports: ProviderPorts(),
                eventLoopGroup: MultiThreadedEventLoopGroup.singleton,
                logger: Logger(label: "test"), readiness: Readiness().condition("listener", .waiting("starting")))
            let error = await #expect(throws: ConfigurationError.self) { try await second.start() }
            #expect(error?.description.hasPrefix("SIMULATOR_FCM_PORT: 127.0.0.1:") == true)
        }
    }

    private static func anyIdentity() throws -> ServerIdentity {
        let file = FileManager.default.temporaryDirectory.appending(path: "simulator-\(UUID().uuidString)/ca.pem").path
        return try ServerIdentity(authorityFile: file)
    }
}
