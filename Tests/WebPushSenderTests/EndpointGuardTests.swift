import HTTP2
import HTTP2Server
import Providers
import Primitives
import PushProtocol
import Synchronization
import Testing
import TestSupport

@testable import WebPushSender

/// A switch that tests set.
private final class Flag: Sendable {
    private let value = Mutex(false)
    var isSet: Bool { value.withLock { $0 } }
    func set() { value.withLock { $0 = true } }
}

/// Endpoints that lead into networks of the operator. A server on this machine stands for the networks: no request and
/// no connection reaches it.
@Suite(.timeLimit(.minutes(2))) struct EndpointGuardTests {
    /// `PORT` is the server's port.
    static let corpus = [
        "https://localhost:PORT/", "https://LOCALHOST:PORT/", "https://localhost.:PORT/", "https://a.localhost:PORT/",
        "https://127.0.0.1:PORT/", "https://127.1:PORT/", "https://127.0.0.2:PORT/", "https://2130706433:PORT/",
        "https://0x7f000001:PORT/", "https://0x7f.0.0.1:PORT/", "https://0177.0.0.1:PORT/", "https://0.0.0.0:PORT/",
        "https://[::1]:PORT/", "https://[::]:PORT/", "https://[::ffff:127.0.0.1]:PORT/", "https://[::127.0.0.1]:PORT/",
        "https://[64:ff9b::7f00:1]:PORT/", "https://[fe80::1%25lo]:PORT/", "https://10.0.0.1:PORT/",
        "https://172.16.0.1:PORT/", "https://192.168.0.1:PORT/", "https://169.254.169.254:PORT/latest/meta-data",
        "https://100.64.0.1:PORT/", "https://[fd00::1]:PORT/", "https://metadata.google.internal:PORT/",
        "https://router.local:PORT/", "https://user@127.0.0.1:PORT/", "https://push.example@127.0.0.1:PORT/",
        "https://127.0.0.1%00.example:PORT/", "http://127.0.0.1:PORT/", "https://single-label:PORT/",
        "https://127.0.0.1:PORT\\@push.example/", "file:///etc/passwd", "gopher://127.0.0.1:PORT/",
    ]

    @Test(arguments: corpus) func `an endpoint inside is never asked`(endpoint: String) async throws {
        try await WebPushSenderUnderTest.run(privateNetworks: false) { _ in
            HTTP2ServerStep.answer(201)
        } _: {
            sender, services in
            let port = services[0].url.split(separator: ":").last ?? ""
            let sent = try await sender.send(to: [endpoint.replacing("PORT", with: String(port))])
            #expect(sent.answers == [.rejected(reason: "malformed-subscription", suspectToken: true)])
            #expect(services[0].requests.isEmpty && sender.pool.count == 0)
        }
    }

    /// The setting for tests opens the operator's networks, and neither metadata services nor unusual forms.
    @Test(arguments: [
        "https://169.254.169.254/latest/meta-data", "https://[fe80::1]/", "https://0.0.0.0:PORT/", "https://[::]:PORT/",
        "https://[::ffff:127.0.0.1]:PORT/", "https://[64:ff9b::7f00:1]:PORT/", "https://2130706433:PORT/",
        "https://127.1:PORT/", "https://0x7f000001:PORT/", "http://127.0.0.1:PORT/", "https://user@localhost:PORT/",
        "https://224.0.0.1:PORT/",
    ]) func `an endpoint is refused also where private networks are permitted`(endpoint: String) async throws {
        try await WebPushSenderUnderTest.run(privateNetworks: true) { _ in
            HTTP2ServerStep.answer(201)
        } _: {
            sender, services in
            let port = services[0].url.split(separator: ":").last ?? ""
            let sent = try await sender.send(to: [endpoint.replacing("PORT", with: String(port))])
            #expect(sent.answers == [.rejected(reason: "malformed-subscription", suspectToken: true)])
            #expect(services[0].requests.isEmpty && sender.pool.count == 0)
        }
    }

    /// The name passes, and the address that it resolves to when the connection is opened does not (DNS rebinding).
    @Test func `a name that resolves to an address inside is refused when the connection is opened`() async throws {
        let server = try await FakeProvider.start { _ in HTTP2ServerStep.answer(201) }
        let client = try HTTP2Client(
            endpoint: HTTP2Endpoint(url: server.url, caFile: try TestCertificates.shared().authorityFile),
            mayConnect: { AddressClass($0).isAllowed(privateNetworks: false) }, logger: .silent)
        let request = HTTP2Request(path: "/")
        let error = await #expect(throws: HTTP2Error.self) { try await client.execute(request, deadline: .seconds(5)) }
        guard case .notProcessed(let failure)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(failure.code == .addressRefused && server.requests.isEmpty)
        await client.shutdown()
        await server.stop()
    }

    @Test func `each new connection is checked again`() async throws {
        let server = try await FakeProvider.start { _ in HTTP2ServerStep.answer(201) }
        let isInside = Flag()
        let client = try HTTP2Client(
            endpoint: HTTP2Endpoint(url: server.url, caFile: try TestCertificates.shared().authorityFile),
            mayConnect: { _ in !isInside.isSet }, logger: .silent)
        #expect(try await client.execute(HTTP2Request(path: "/"), deadline: .seconds(5)).status == 201)
        isInside.set()
        client.retireConnections()
        await #expect(throws: HTTP2Error.self) {
            // The retired connection may take a request that was sent before it drained.
            for _ in 0..<20 { _ = try await client.execute(HTTP2Request(path: "/"), deadline: .seconds(5)) }
        }
        await client.shutdown()
        await server.stop()
    }
}
