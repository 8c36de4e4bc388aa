import Hummingbird
import HummingbirdTesting
import Logging
import Metrics
import PushProtocol
import Testing

@testable import ServiceKit

@Suite struct AdminServerTests {
    private let registry = PrometheusRegistry()
    private let readiness = Readiness()
    private let samples = MetricSamples()

    private var admin: AdminServer {
        AdminServer(
            host: "127.0.0.1", port: 0,
            exposition: Exposition(
                service: "sample", registry: registry, samples: samples, logs: LogSink(descriptor: -1),
                readiness: readiness),
            readiness: readiness, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    }

    private func get(_ path: String) async throws -> (status: Int, type: String?, body: String) {
        try await admin.application.test(.router) { client in
            try await client.execute(uri: path, method: .get) { response in
                (response.status.code, response.headers[.contentType], String(buffer: response.body))
            }
        }
    }

    @Test func `ready names each condition and its reason, and is 503 until all hold`() async throws {
        let database = readiness.condition("database", .waiting("connection refused"))
        readiness.register("broker") { .holds }
        let before = try await get("/health/ready")
        #expect(before.status == 503)
        #expect(
            before.body == #"{"conditions":[{"holds":false,"name":"database","reason":"connection refused"},"#
                + #"{"holds":true,"name":"broker"}],"draining":false,"ready":false}"#)
        database.set(.holds)
        let after = try await get("/health/ready")
        #expect(after.status == 200)
        #expect(after.type == "application/json")
    }

    @Test func `ready is 503 while draining, and live stays 200`() async throws {
        #expect(try await get("/health/ready").status == 200)
        readiness.drain()
        let ready = try await get("/health/ready")
        #expect(ready.status == 503)
        #expect(ready.body.contains(#""draining":true"#))
        #expect(try await get("/health/live").status == 200)
    }

    @Test func `live does not check the conditions`() async throws {
        readiness.register("broker") { .waiting("away") }
        #expect(try await get("/health/live").status == 200)
    }

    @Test func `metrics contain the process and the build in the text format`() async throws {
        Counter(label: "hits", factory: registry).increment()
        let answer = try await get("/metrics")
        #expect(answer.status == 200)
        #expect(answer.type == "text/plain; version=0.0.4; charset=utf-8")
        #expect(answer.body.contains("\nheliograph_hits_total 1\n"))
        #expect(answer.body.contains("heliograph_build_info{service=\"sample\",version=\"\(Build.version)\"} 1\n"))
        #expect(answer.body.contains("\nprocess_resident_memory_bytes "))
        #expect(answer.body.hasSuffix("\n"))
        let names = answer.body.split(separator: "\n").filter { $0.hasPrefix("# TYPE") }
        #expect(Set(names).count == names.count)
    }

    @Test func `metrics contain each condition of readiness, and a help text for each family`() async throws {
        let database = readiness.condition("database", .waiting("connection refused"))
        readiness.register("apps") { .degraded("not watched") }
        readiness.register("broker-in") { .holds }
        samples.register("heliograph_broker_blocked") { 1 }
        let body = try await get("/metrics").body
        for line in [
            #"heliograph_ready_condition{condition="database"} 0"#, #"heliograph_ready_condition{condition="apps"} 0"#,
            #"heliograph_ready_condition{condition="broker-in"} 1"#, "heliograph_ready 0",
            "heliograph_broker_blocked 1",
        ] {
            #expect(body.contains("\n\(line)\n"), "\(line)")
        }
        let families = body.split(separator: "\n").filter { $0.hasPrefix("# TYPE ") }
            .map { $0.split(separator: " ")[2] }
        for family in families { #expect(body.contains("# HELP \(family) "), "\(family)") }
        database.set(.holds)
        #expect(try await get("/metrics").body.contains("\nheliograph_ready 1\n"))
    }

    @Test func `other paths are 404`() async throws {
        #expect(try await get("/").status == 404)
    }
}
