import Foundation

/// The entry point of every executable:
///
///     @main struct RulesApp {
///         static let keys: [ConfigurationKey] = .amqp + .postgres + [rulesDirectory]
///
///         static func main() async {
///             await ServiceMain.run("rules", summary: "…", keys: keys, build: build)
///         }
///
///         static func build(_ context: ServiceContext) async throws -> ServiceAssembly { … }
///     }
package enum ServiceMain {
    /// Runs a service until a signal, and exits: loads settings, sets up logging and metrics, calls the build function,
    /// and runs its services with `/metrics` and `/health`.
    ///
    /// Exit codes: 0 after a clean shutdown, 78 for a configuration error (one line each on standard error), 64 for an
    /// unknown command line, 1 if a service failed or did not stop in time, 128 + n on a second signal n.
    ///
    /// - Parameters:
    ///   - name: the executable's name.
    ///   - summary: one sentence for `--help`.
    ///   - keys: the service's own keys, and the groups it uses (`.amqp + .postgres + …`).
    ///   - build: creates connections, handlers and the list of services. Must not wait for broker or database: they
    ///     are readiness conditions, not reasons to stop.
    package static func run(
        _ name: String, summary: String = "", commands: [String] = [], keys: [ConfigurationKey],
        build: @Sendable (ServiceContext) async throws -> ServiceAssembly
    ) async -> Never {
        // Writing to a closed socket must return an error, not kill the process.
        signal(SIGPIPE, SIG_IGN)
        let environment = ProcessInfo.processInfo.environment
        let code: ExitCode
        switch Invocation(CommandLine.arguments.dropFirst()) {
        case .help:
            print(Invocation.help(name: name, summary: summary, commands: commands, keys: .process + keys))
            code = .success
        case .version:
            print("\(name) \(Build.version)")
            code = .success
        case .unknown(let arguments):
            printErrors(name, ["unknown arguments “\(arguments)”; --help lists the commands"])
            code = .usage
        case .healthcheck(let path):
            code = await healthcheck(name, keys, environment, path: path)
        case .serve:
            code = await serve(name, keys, environment, build)
        }
        end(code)
    }

    /// Exits without exit handlers: OpenSSL's handler would free memory that a thread closing its last connection still
    /// uses.
    private static func end(_ code: ExitCode) -> Never {
        fflush(nil)
        _exit(code.rawValue)
    }

    private static func serve(
        _ name: String, _ keys: [ConfigurationKey], _ environment: [String: String],
        _ build: @Sendable (ServiceContext) async throws -> ServiceAssembly
    ) async -> ExitCode {
        do {
            let settings = try Settings.load(keys: keys, environment: environment)
            return try await ServiceProcess(name: name, settings: settings).run(build)
        } catch let error as ConfigurationError {
            printErrors(name, error.problems)
            return .configuration
        } catch {
            printErrors(name, ["\(error)"])
            return .failure
        }
    }

    private static func healthcheck(
        _ name: String, _ keys: [ConfigurationKey], _ environment: [String: String], path: String
    ) async -> ExitCode {
        do {
            let settings = try Settings.load(keys: keys, environment: environment)
            let answer = await HealthProbe.get(
                host: try settings.string(.adminHost), port: try settings.integer(.adminPort), path: path)
            switch answer {
            case .answered(let status, let body):
                print(body)
                return status == 200 ? .success : .failure
            case .unreachable(let reason):
                printErrors(name, [reason])
                return .failure
            }
        } catch {
            printErrors(name, error.problems)
            return .configuration
        }
    }

    /// Prints problems to standard error, one line each, independent of the log.
    private static func printErrors(_ name: String, _ problems: [String]) {
        let lines = problems.map { "\(name): \(Redaction.redacted($0))\n" }.joined()
        FileHandle.standardError.write(Data(lines.utf8))
    }
}
