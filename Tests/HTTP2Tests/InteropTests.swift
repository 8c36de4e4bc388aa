import Foundation
import HTTP2
import HTTP2Server
import NIOCore
import NIOPosix
import Testing
import TestSupport

/// Interoperability with the clients and servers of the nghttp2 project.
@Suite(.timeLimit(.minutes(2)))
struct InteropTests {
    @Test func `nghttp gets a response from our server`() async throws {
        let log = RequestLog()
        try await Harness.run(handler: {
            log.begin($0); return [.respond(status: 200, body: Array("héllo".utf8))]
        }) { harness in
            let output = try await Command(
                "nghttp", ["-H", ":method: POST", "-H", "x-a: 1", "https://127.0.0.1:\(harness.server.port)/a?b=c"]
            ).run()
            #expect(output.status == 0, "\(output.text)")
            #expect(output.text.contains("héllo"))
            let request = try #require(log.requests.first)
            #expect(request.method == "POST")
            #expect(request.path == "/a?b=c")
            #expect(request.headers["x-a"] == "1")
        }
    }

    @Test func `h2load gets all responses from our server`() async throws {
        let log = RequestLog()
        try await Harness.run(handler: {
            log.begin($0); return [.respond(status: 200, body: [1, 2, 3])]
        }) { harness in
            let output = try await Command(
                "h2load",
                [
                    "-n", "4000", "-c", "4", "-m", "100", "-t", "1",
                    "https://127.0.0.1:\(harness.server.port)/load",
                ]
            ).run()
            #expect(output.text.contains("4000 succeeded, 0 failed, 0 errored, 0 timeout"), "\(output.text)")
            #expect(log.count == 4000)
        }
    }

    @Test func `our client uploads to nghttpd and gets the echo`() async throws {
        let certificates = try TestCertificates.shared()
        let port = try await freePort()
        let nghttpd = Command(
            "nghttpd",
            [
                "--address=127.0.0.1", "--echo-upload", "--max-concurrent-streams=20",
                "-d", certificates.directory, "\(port)", certificates.serverKeyFile, certificates.serverCertificateFile,
            ])
        try await nghttpd.whileRunning {
            let client = try HTTP2Client(
                endpoint: certificates.endpoint(port: port, host: "127.0.0.1"), configuration: .testing,
                logger: testLogger())
            try await eventually("it listens") {
                (try? await client.execute(HTTP2Request(path: "/"), deadline: .seconds(5))) != nil
            }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for index in 0..<300 {
                    group.addTask {
                        let body = Array(repeating: UInt8(truncatingIfNeeded: index), count: 100 + index * 50)
                        let response = try await client.execute(
                            HTTP2Request(path: "/upload/\(index)", body: body), deadline: .seconds(30))
                        #expect(response.status == 200)
                        #expect(response.body == body)
                    }
                }
                try await group.waitForAll()
            }
            #expect(await client.settledStatistics().streamLimit == 20)
            #expect(await client.settledStatistics().connectionsOpened == 1)
            await client.shutdown()
        }
    }

    /// Returns a port that is currently free; nghttpd cannot choose one and report it.
    private func freePort() async throws -> Int {
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .bind(host: "127.0.0.1", port: 0).get()
        let port = channel.localAddress?.port ?? 0
        try await channel.close().get()
        return port
    }
}
