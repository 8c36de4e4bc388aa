import Logging
import ServiceKit
import ServiceLifecycle

/// An executable with the same start-up as every service, for tests that need a process.
@main
struct SampleService {
    static let behaviour = ConfigurationKey(
        "SAMPLE_BEHAVIOUR", .choice(["serve", "wait-for-broker", "drain-slowly", "ignore-shutdown", "fail", "refuse"]),
        default: "serve", summary: "What this process does.")
    static let password = ConfigurationKey("SAMPLE_PASSWORD", secret: true, summary: "A secret value.")
    static let count = ConfigurationKey("SAMPLE_COUNT", .integer(1...10), default: "3", summary: "A number.")

    static func main() async {
        await ServiceMain.run(
            "sample", summary: "starts as every service does", keys: [behaviour, password, count], build: build)
    }

    static func build(_ context: ServiceContext) async throws -> ServiceAssembly {
        let behaviour = try context.settings.string(behaviour)
        switch behaviour {
        case "refuse": throw ConfigurationError(["rules.yaml:3: first problem", "rules.yaml:9: second problem"])
        case "wait-for-broker":
            context.readiness.register("broker") { .waiting("connection refused: amqp://sample:hunter2@127.0.0.1/") }
        default: break
        }
        let password = try context.settings.optionalString(password) ?? "none"
        context.logger.info("Assembled", metadata: ["password": "\(password)", "behaviour": "\(behaviour)"])
        return ServiceAssembly([Worker(behaviour: behaviour, logger: context.logger)])
    }
}

private struct Worker: Service {
    struct Broken: Error {}

    let behaviour: String
    let logger: Logger

    func run() async throws {
        if behaviour == "fail" { throw Broken() }
        try await gracefulShutdown()
        logger.info("Worker stopping")
        if behaviour == "drain-slowly" { try await Task.sleep(for: .seconds(600)) }
        if behaviour == "ignore-shutdown" { await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in } }
    }
}
