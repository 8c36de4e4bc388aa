/// The parsed command line.
enum Invocation: Hashable, Sendable {
    case serve
    case help
    case version
    /// The path to request on the admin port.
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

    /// Returns the help text. `commands` are lines about further commands of the executable.
    static func help(name: String, summary: String, commands: [String] = [], keys: [ConfigurationKey]) -> String {
        """
        \(name) \(Build.version)\(summary.isEmpty ? "" : ": \(summary)")

        usage: \(name)                            serve until SIGTERM or SIGINT; a second signal exits at once
               \(name) healthcheck [ready|live]   probe the running process; exit code 0 or 1
               \(name) --help | --version
        \(commands.isEmpty ? "" : "\n" + commands.joined(separator: "\n") + "\n")
        Settings are environment variables, then lines of the file named by HELIOGRAPH_CONFIG:

        \(keys.help)
        """
    }
}

/// The exit codes; 64 and 78 are those of sysexits.h.
enum ExitCode: Int32, Sendable {
    case success = 0
    case failure = 1
    case usage = 64
    case configuration = 78
}
