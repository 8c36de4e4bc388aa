import Foundation
import Testing
import TestSupport

@testable import ServiceKit

/// Compares each container's environment with its executable.
@Suite(.timeLimit(.minutes(3))) struct EnvironmentTests {
    /// Set by the image for all services.
    static let image = ["HELIOGRAPH_ADMIN_HOST": "0.0.0.0"]

    static func containers() throws -> [Container] { try Container.compose() + Container.kubernetes() }

    @Test func `every executable is deployed, in compose and in the cluster`() throws {
        #expect(Set(try Container.compose().map(\.product)) == (try Repository.products()))
        #expect(Set(try Container.kubernetes().map(\.product)) == (try Repository.products()))
    }

    @Test func `every variable that is set is read by the executable, and required ones are set`()
        async throws
    {
        for product in try Repository.products().sorted() {
            let help = try await HelpOutput.of(product)
            for container in try Self.containers() where container.product == product {
                var names = Set(container.environment.keys)
                // The scripts `credentials` and `demo` read it.
                if product == "pushctl", container.arguments.isEmpty { names.remove("PROVIDERS") }
                #expect(
                    names.subtracting(help.variables) == [],
                    "\(container) sets a variable that \(product) does not read")
                let missing = help.required.filter { !names.contains($0) && !names.contains("\($0)_FILE") }
                #expect(missing == [], "\(container) lacks what \(product) requires")
            }
        }
    }

    @Test func `each job of pushctl has the settings of its command`() throws {
        let needs = ["topology": ["AMQP_URL_FILE", "HELIOGRAPH_APPS"], "migrate": ["DATABASE_URL_FILE"]]
        var found: Set<String> = []
        for container in try Self.containers() where container.product == "pushctl" {
            // Other jobs run a script.
            guard let command = container.arguments.first else { continue }
            let variables = try #require(needs[command], "\(container): pushctl \(command)")
            #expect(Set(variables).isSubset(of: container.environment.keys), "\(container)")
            found.insert(command)
        }
        #expect(found == Set(needs.keys))
    }

    @Test func `no variable holds a secret`() throws {
        for container in try Self.containers() {
            for (name, value) in container.environment {
                let isAddress = value.contains("://")
                #expect(!isAddress || !value.contains("@"), "\(container): \(name)")
                #expect(!["AMQP_URL", "DATABASE_URL", "REGISTRY_OPERATOR_KEY"].contains(name), "\(container): \(name)")
            }
        }
    }

    @Test func `a service without TLS to broker or database does not start unless plaintext is allowed`()
        async throws
    {
        let credentials = try await Credentials.make()
        for container in try Container.compose() where !["pushctl", "provider-simulator"].contains(container.product) {
            var environment = Self.image.merging(container.environment) { $1 }.mapValues(credentials.translate)
            environment["HELIOGRAPH_ALLOW_PLAINTEXT"] = nil
            environment["HELIOGRAPH_ADMIN_PORT"] = "0"
            let process = try ChildProcess(product: container.product, environment: environment)
            #expect(await process.exit(within: .seconds(30)) == 78, "\(container): \(process.errors)")
            #expect(process.errors.contains("HELIOGRAPH_ALLOW_PLAINTEXT"), "\(container): \(process.errors)")
        }
        for arguments in [["dead", "list"], ["topology", "verify"], ["migrate"], ["campaigns", "list"]] {
            let environment = [
                "AMQP_URL": "amqp://svc:s3cret@broker.example/x",
                "DATABASE_URL": "postgresql://svc:s3cret@db.example/x",
                "HELIOGRAPH_APPS": "\(credentials.folder.path)/apps.yaml",
            ]
            let process = try ChildProcess(product: "pushctl", arguments, environment: environment)
            #expect(await process.exit(within: .seconds(30)) == 78, "pushctl \(arguments): \(process.errors)")
            #expect(process.errors.contains("HELIOGRAPH_ALLOW_PLAINTEXT"), "\(process.errors)")
            #expect(!process.errors.contains("s3cret"))
        }
    }

    @Test func `a weak operator key is refused`() async throws {
        let credentials = try await Credentials.make()
        let container = try #require(try Container.compose().first { $0.product == "token-registry" })
        var environment = container.environment.mapValues(credentials.translate)
        environment["REGISTRY_OPERATOR_KEY_FILE"] = try credentials.folder.write("short-key", "correct horse")
        let process = try ChildProcess(product: "token-registry", environment: environment)
        #expect(await process.exit(within: .seconds(30)) == 78)
        #expect(process.errors.contains("REGISTRY_OPERATOR_KEY: its value is not a secret of at least 32 bytes"))
        #expect(!process.errors.contains("correct horse"))
    }

    @Test(arguments: ["check", "preview", "diff"])
    func `both executables print the help of rule commands`(verb: String) async throws {
        for (product, arguments) in [("rules", [verb, "--help"]), ("pushctl", ["rules", verb, "--help"])] {
            let process = try ChildProcess(product: product, arguments)
            #expect(await process.exit() == 0, "\(process.errors)")
            #expect(process.output.contains("rules \(verb) "), "\(product): \(process.output)")
            #expect(process.output.contains("Exit codes: 0 "))
            #expect(process.errors == "")
        }
        let process = try ChildProcess(product: "rules", ["--help"])
        #expect(await process.exit() == 0)
        #expect(process.output.contains("rules \(verb) "))
    }

    @Test func `every executable prints its name and version`() async throws {
        for product in try Repository.products().sorted() {
            let process = try ChildProcess(product: product, ["--version"])
            #expect(await process.exit() == 0, "\(product): \(process.errors)")
            #expect(process.output == "\(product) \(Build.version)\n")
        }
    }

    /// With demonstration credentials and free ports, each service starts, is live but not ready without broker and
    /// database (unless it uses neither), and stops cleanly.
    @Test func `each service starts with its environment`() async throws {
        let credentials = try await Credentials.make()
        for container in try Container.compose() where container.product != "pushctl" {
            let port = try FreePort.any()
            var environment = Self.image.merging(container.environment) { $1 }.mapValues(credentials.translate)
            for name in environment.keys where name.hasSuffix("_PORT") { environment[name] = "0" }
            for name in environment.keys where name.hasSuffix("_HOST") { environment[name] = "127.0.0.1" }
            environment["HELIOGRAPH_ADMIN_PORT"] = "\(port)"
            let process = try ChildProcess(product: container.product, environment: environment)
            try? await eventually("\(container)", within: .seconds(30)) {
                await HealthProbe.get(host: "127.0.0.1", port: port, path: "/health/live")
                    == .answered(200, #"{"live":true}"#)
            }
            if case .answered(let status, let body) = await HealthProbe.get(
                host: "127.0.0.1", port: port, path: "/health/ready")
            {
                let isAlone = ["provider-simulator", "console"].contains(container.product)
                #expect(status == (isAlone ? 200 : 503), "\(container): \(body)")
            } else {
                Issue.record("\(container) did not start: \(process.errors)")
            }
            process.signal(SIGTERM)
            #expect(await process.exit(within: .seconds(40)) == 0, "\(container): \(process.errors)")
        }
    }
}
