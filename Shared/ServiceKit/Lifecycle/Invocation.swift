/// What the command line asks for.
enum Invocation: Hashable, Sendable {
    case serve
    case help
    case version
    /// The path to ask for on the admin port.
    case healthcheck(path: String)
    case unknown(String)

    init(_ arguments: some Sequence<String>) {
        switch Array(arguments) {
        case []: self = .serve
        case ["--help"], ["-h"], ["help"]: self = .help
        case ["--version"], ["version"]: self = .version
        case ["healthcheck"], ["healthcheck", "ready"]: self = .healthcheck(path: "/health/ready")
        case ["healthcheck", "live"]: self = .healthcheck(path: "/health/live")
        case let other: self = .unknown(other.joined(separator: " "))
        }
    }

    /// - Parameter commands: lines about what else the executable does than serve.
    static func help(name: String, summary: String, commands: [String] = [], keys: [ConfigurationKey]) -> String {
        """
        \(name) \(Build.version)\(summary.isEmpty ? "" : ": \(summary)")

        usage: \(name)                            serve until SIGTERM or SIGINT; a second one ends at once
               \(name) healthcheck [ready|live]   ask the running process; exit code 0 or 1
               \(name) --help | --version
        \(commands.isEmpty ? "" : "\n" + commands.joined(separator: "\n") + "\n")
        Settings are environment variables, then lines of the file named by HELIOGRAPH_CONFIG:

        \(ConfigurationReference.help(for: keys))
        """
    }
}

/// How the process ends; the codes of sysexits.h where it has one.
enum ExitCode: Int32, Sendable {
    case success = 0
    case failure = 1
    case usage = 64
    case configuration = 78
}
