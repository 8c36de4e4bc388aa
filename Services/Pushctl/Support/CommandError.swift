import AMQP
import Postgres
import ServiceKit

/// The exit codes of `pushctl`, after `sysexits.h`. The README lists them.
enum CommandStatus: Int32, CaseIterable, Sendable {
    /// The command ran and found a problem, or the request has no effect.
    case findings = 1
    /// An option or argument is missing, unknown or has an invalid value.
    case usage = 64
    /// The content of an input file is invalid.
    case input = 65
    /// A named thing does not exist: an app, an event, a campaign, a key, a queue, a file.
    case notFound = 66
    /// The broker, the database, a service or a provider cannot be reached.
    case unavailable = 69
    /// A server's answer is unexpected.
    case unexpected = 70
    /// The request may succeed later, such as a publish to a full queue.
    case temporary = 75
    /// The credentials are wrong, or lack a right.
    case permission = 77
    /// A setting is missing or invalid.
    case configuration = 78
}

/// An error with a message for the operator, and the exit code of the command.
struct CommandError: Error, CustomStringConvertible {
    let description: String
    let status: CommandStatus

    init(_ description: String, _ status: CommandStatus = .findings) {
        self.description = description
        self.status = status
    }
}

extension CommandError {
    /// A setting that is missing or invalid.
    init(_ error: ConfigurationError) { self.init("\(error)", .configuration) }

    init(_ error: PostgresError) {
        // 42P01 and 3F000: no such table or schema. 42703: no such column.
        let isOutdated = ["42P01", "3F000", "42703"].contains { error.code == .sqlState($0) }
        self.init(
            "the database: \(error)" + (isOutdated ? "; run pushctl migrate" : ""), error.exitStatus(isOutdated))
    }

    init(_ error: AMQPError) { self.init("the broker: \(error)", error.exitStatus) }
}

extension PostgresError {
    fileprivate func exitStatus(_ isOutdated: Bool) -> CommandStatus {
        switch code {
        case .invalidConfiguration: .configuration
        case _ where isOutage || isTimeout: .unavailable
        case _ where isOutdated: .configuration
        case .sqlState(let state) where state == "42501" || state.hasPrefix("28"): .permission
        default: .unexpected
        }
    }
}

extension AMQPError {
    fileprivate var exitStatus: CommandStatus {
        switch code {
        case .configuration: .configuration
        case .unreachable, .tls, .connectionClosed, .connectionLost, .timeout, .closed, .cancelled: .unavailable
        case .refused, .channelClosed(replyCode: 403): .permission
        case .channelClosed(replyCode: 404): .notFound
        case .channelClosed: .findings
        case .protocolViolation: .unexpected
        }
    }
}
