import Foundation
import PushProtocol
import Testing
import TestSupport

@testable import ServiceKit

/// A real process, from its start to its exit code.
@Suite(.timeLimit(.minutes(2))) struct ServiceMainTests {
    private func started(_ environment: [String: String] = [:], logging line: String = "Serving") async throws
        -> SampleProcess
    {
        let process = try SampleProcess(environment: environment)
        try await eventually(line) { process.errors.contains(line) }
        return process
    }

    private func probe(_ process: SampleProcess, _ path: String) async -> HealthProbe.ProbeResult {
        await HealthProbe.get(host: "127.0.0.1", port: process.adminPort, path: path)
    }

    @Test func `the process serves until SIGTERM and exits with 0`() async throws {
        let process = try await started()
        #expect(
            await probe(process, "/health/ready") == .answered(200, #"{"conditions":[],"draining":false,"ready":true}"#)
        )
        process.signal(SIGTERM)
        #expect(await process.exit() == 0)
        #expect(process.errors.contains("Draining"))
        #expect(process.errors.contains("Stopped"))
    }

    @Test func `the log is JSON lines with service and instance, and without secrets`() async throws {
        let process = try await started(["SAMPLE_PASSWORD": "hunter2", "HELIOGRAPH_INSTANCE": "seven"])
        process.signal(SIGINT)
        #expect(await process.exit() == 0)
        let lines = process.errors.split(separator: "\n")
        #expect(lines.count >= 4)
        for line in lines {
            let value = try WireCoding.decode(JSONValue.self, from: Array(line.utf8))
            #expect(value["service"] == "sample")
            #expect(value["instance"] == "seven")
        }
        #expect(!process.errors.contains("hunter2"))
    }

    @Test func `all configuration errors are printed at once, and the exit code is 78`() async throws {
        let process = try SampleProcess(environment: ["SAMPLE_COUNT": "eleven", "HELIOGRAPH_ADMIN_HOTS": "x"])
        #expect(await process.exit() == 78)
        #expect(
            process.errors == """
                sample: HELIOGRAPH_ADMIN_HOTS: unknown variable; did you mean HELIOGRAPH_ADMIN_HOST?
                sample: SAMPLE_COUNT: “eleven” is not a whole number from 1 to 10

                """)
    }

    @Test func `a build function that rejects the configuration exits with 78 and its lines`() async throws {
        let process = try SampleProcess(environment: ["SAMPLE_BEHAVIOUR": "refuse"])
        #expect(await process.exit() == 78)
        #expect(process.errors.hasSuffix("sample: rules.yaml:3: first problem\nsample: rules.yaml:9: second problem\n"))
    }

    @Test func `an admin port in use is reported with its setting`() async throws {
        let first = try await started()
        let second = try SampleProcess(adminPort: first.adminPort)
        #expect(await second.exit() == 78)
        #expect(second.errors.contains("HELIOGRAPH_ADMIN_PORT: 127.0.0.1:\(first.adminPort) is in use"))
        first.signal(SIGTERM)
        #expect(await first.exit() == 0)
    }

    @Test func `a failed service exits with 1`() async throws {
        let process = try SampleProcess(environment: ["SAMPLE_BEHAVIOUR": "fail"])
        #expect(await process.exit() == 1)
        #expect(process.errors.contains("sample: Broken()"))
    }

    @Test func `an unreachable broker makes the process unready but running, and its password is not logged`()
        async throws
    {
        let process = try await started(["SAMPLE_BEHAVIOUR": "wait-for-broker"])
        guard case .answered(503, let body) = await probe(process, "/health/ready") else {
            Issue.record("\(await probe(process, "/health/ready"))")
            return
        }
        #expect(body.contains("connection refused"))
        #expect(!body.contains("hunter2"))
        #expect(await probe(process, "/health/live") == .answered(200, #"{"live":true}"#))
        process.signal(SIGTERM)
        #expect(await process.exit() == 0)
    }

    @Test func `a draining process is live and not ready, and the second signal exits at once`() async throws {
        let process = try await started(["SAMPLE_BEHAVIOUR": "drain-slowly"])
        process.signal(SIGTERM)
        try await eventually("draining") { process.errors.contains("Worker stopping") }
        guard case .answered(503, let body) = await probe(process, "/health/ready") else {
            Issue.record("\(await probe(process, "/health/ready"))")
            return
        }
        #expect(body.contains(#""draining":true"#))
        #expect(await probe(process, "/health/live") == .answered(200, #"{"live":true}"#))
        process.signal(SIGTERM)
        #expect(await process.exit() == 128 + SIGTERM)
    }

    @Test func `work beyond the deadline is cancelled, and the exit code is 1`() async throws {
        let process = try await started(
            ["SAMPLE_BEHAVIOUR": "drain-slowly", "HELIOGRAPH_SHUTDOWN_DEADLINE": "1s"])
        process.signal(SIGTERM)
        #expect(await process.exit() == 1)
        #expect(process.errors.contains("Stopped after the deadline"))
    }

    @Test func `work that ignores cancellation does not prevent the exit`() async throws {
        let process = try await started(
            ["SAMPLE_BEHAVIOUR": "ignore-shutdown", "HELIOGRAPH_SHUTDOWN_DEADLINE": "1s"])
        process.signal(SIGTERM)
        #expect(await process.exit() == 1)
        #expect(process.errors.contains("did not stop in time"))
    }

    @Test func `healthcheck probes the running process`() async throws {
        let process = try await started()
        let asked = try SampleProcess(["healthcheck"], adminPort: process.adminPort)
        #expect(await asked.exit() == 0)
        #expect(asked.output.contains(#""ready":true"#))
        process.signal(SIGTERM)
        #expect(await process.exit() == 0)
        let afterwards = try SampleProcess(["healthcheck", "live"], adminPort: process.adminPort)
        #expect(await afterwards.exit() == 1)
        #expect(afterwards.errors.contains("nothing listens"))
    }

    @Test func `help lists every key, and needs no configuration`() async throws {
        let process = try SampleProcess(["--help"], environment: ["HELIOGRAPH_NONSENSE": "x"])
        #expect(await process.exit() == 0)
        for name in ["SAMPLE_COUNT", "SAMPLE_PASSWORD_FILE", "HELIOGRAPH_ADMIN_PORT", "LOG_FORMAT", "healthcheck"] {
            #expect(process.output.contains(name))
        }
    }

    @Test func `an unknown command line exits with 64`() async throws {
        let process = try SampleProcess(["--port", "80"])
        #expect(await process.exit() == 64)
        #expect(process.errors == "sample: unknown arguments “--port 80”; --help lists the commands\n")
    }

    @Test func `version is one line`() async throws {
        let process = try SampleProcess(["--version"])
        #expect(await process.exit() == 0)
        #expect(process.output == "sample \(Build.version)\n")
    }
}
