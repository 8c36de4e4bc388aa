import Foundation

/// How every executable starts:
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
    /// Runs a service until it is told to stop, and ends the process: settings, logging, metrics, the build function,
    /// then every service together with `/metrics` and `/health`.
    ///
    /// Exit codes: 0 after a clean shutdown, 78 when something is misconfigured (one line each on standard error), 64
    /// for an unknown command line, 1 when a service failed or did not stop in time, 128 + n on a second signal n.
    ///
    /// - Parameters:
    ///   - name: the executable's name.
    ///   - summary: one sentence for `--help`.
    ///   - keys: the service's own keys, and the groups it uses (`.amqp + .postgres + …`).
    ///   - build: connections, then handlers, then the list of what runs. It does not wait for anything that may be
    ///     away: a broker or a database is a readiness condition, not a reason to stop.
    package static func run(
        _ name: String, summary: String = "", commands: [String] = [], keys: [ConfigurationKey],
        build: @Sendable (ServiceContext) async throws -> ServiceAssembly
    ) async -> Never {
        // A peer that went away is an error where it is written to, never the end of the process.
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
            complain(name, ["unknown arguments “\(arguments)”; --help lists what there is"])
            code = .usage
        case .healthcheck(let path):
            code = await healthcheck(name, keys, environment, path: path)
        case .serve:
            code = await serve(name, keys, environment, build)
        }
        end(code)
    }

    /// Ends the process without running what libraries registered for its exit: OpenSSL's clean-up would free what a
    /// thread that is just closing its last connection still uses. Nothing of ours waits for an exit handler.
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
            complain(name, error.problems)
            return .configuration
        } catch {
            complain(name, ["\(error)"])
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
                complain(name, [reason])
                return .failure
            }
        } catch {
            complain(name, error.problems)
            return .configuration
        }
    }

    /// One line each on standard error, before and after there is a log.
    private static func complain(_ name: String, _ problems: [String]) {
        let lines = problems.map { "\(name): \(Redaction.redacted($0))\n" }.joined()
        FileHandle.standardError.write(Data(lines.utf8))
    }
}
