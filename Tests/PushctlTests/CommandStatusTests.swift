import AMQP
import Postgres
import ServiceKit
import Testing

@testable import Pushctl

/// The exit codes distinguish “not found”, “unavailable”, “not allowed” and “not configured”.
@Suite struct CommandStatusTests {
    @Test(arguments: [
        (PostgresError.Code.connectionFailed, CommandStatus.unavailable), (.connectionLost, .unavailable),
        (.deadlineExceeded, .unavailable), (.invalidConfiguration, .configuration), (.sqlState("42501"), .permission),
        (.sqlState("28P01"), .permission), (.sqlState("42P01"), .configuration), (.sqlState("23505"), .unexpected),
        (.decoding, .unexpected),
    ])
    func `a database error has the code of its cause`(code: PostgresError.Code, status: CommandStatus) {
        let error = CommandError(PostgresError(code, operation: "SELECT 1", detail: "no"))
        #expect(error.status == status)
        #expect(error.description.hasPrefix("the database: "))
        #expect(error.description.hasSuffix("; run pushctl migrate") == (code == .sqlState("42P01")))
    }

    @Test(arguments: [
        (AMQPError.Code.unreachable, CommandStatus.unavailable), (.tls, .unavailable), (.timeout, .unavailable),
        (.refused(replyCode: 403), .permission), (.channelClosed(replyCode: 403), .permission),
        (.channelClosed(replyCode: 404), .notFound), (.channelClosed(replyCode: 406), .findings),
        (.configuration, .configuration), (.protocolViolation, .unexpected),
    ])
    func `a broker error has the code of its cause`(code: AMQPError.Code, status: CommandStatus) {
        #expect(CommandError(AMQPError(code, operation: "connect", detail: "no")).status == status)
    }

    @Test(arguments: [
        (400, CommandStatus.findings), (401, .permission), (403, .permission), (404, .notFound), (429, .temporary),
        (500, .unexpected), (503, .unavailable),
    ])
    func `an HTTP status of the registry has the code of its cause`(answer: Int, status: CommandStatus) {
        #expect(OperatorClient.exitStatus(answer) == status)
    }

    @Test func `colours are for terminals only, and NO_COLOR switches them off`() {
        #expect(Terminal.hasColors(isTerminal: true, environment: [:]))
        #expect(Terminal.hasColors(isTerminal: true, environment: ["NO_COLOR": ""]))
        #expect(!Terminal.hasColors(isTerminal: false, environment: [:]))
        #expect(!Terminal.hasColors(isTerminal: true, environment: ["NO_COLOR": "1"]))
        #expect(!Terminal.hasColors(isTerminal: true, environment: ["TERM": "dumb"]))
    }
}
