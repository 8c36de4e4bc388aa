import AMQP
import ArgumentParser
import Foundation
import Messaging
import PushProtocol
import ServiceConnections
import ServiceKit

/// `pushctl topology …`: the exchanges, queues, bindings and users on the broker.
struct TopologyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "topology", abstract: "Manage the exchanges, queues, bindings and users on the broker.",
        subcommands: [Apply.self, Verify.self, Definitions.self, Roles.self, KEDA.self])

    struct Apply: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Declare every exchange, queue and binding for the configured apps. Safe to repeat. "
                + "In a cluster, run it when all nodes have joined: a queue gets its members when it is declared.")
        @OptionGroup var apps: AppsOption
        @OptionGroup var output: OutputOption

        func run() async throws {
            let topology = try apps.load().topology
            try await withBroker { try await topology.apply(using: $0) }
            try output.write(
                [
                    "exchanges": .number(topology.exchanges.count), "queues": .number(topology.queues.count),
                    "bindings": .number(topology.bindings.count),
                ],
                text: [
                    "applied: \(topology.exchanges.count) exchanges, \(topology.queues.count) queues, "
                        + "\(topology.bindings.count) bindings"
                ])
        }
    }

    struct Verify: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print the exchanges and queues that are missing on the broker; exit code 1 if any is. "
                + "AMQP cannot read arguments and bindings: `apply` fails on those that differ.")
        @OptionGroup var apps: AppsOption
        @Option(help: "Also require this number of members of each queue, all running. Needs --queues.")
        var members: Int?
        @Option(help: "The output of `\(QueueMembership.listCommand)`: a file, or - for standard input.")
        var queues: String?
        @OptionGroup var output: OutputOption

        func validate() throws {
            guard (members == nil) == (queues == nil), members ?? 1 > 0 else {
                throw ValidationError("--members NUMBER and --queues FILE belong together; NUMBER is at least 1")
            }
        }

        func run() async throws {
            let topology = try apps.load().topology
            var problems = try await withBroker { try await topology.verify(using: $0) }.map { "\($0)" }
            if let members, let queues {
                let membership = try QueueMembership(json: PublishCommand.read(queues))
                problems += membership.problems(of: topology, members: members)
            }
            let (exchangeCount, queueCount) = (topology.exchanges.count, topology.queues.count)
            try output.write(
                [
                    "complete": .bool(problems.isEmpty), "problems": .strings(problems),
                    "exchanges": .number(exchangeCount), "queues": .number(queueCount),
                ],
                text: problems.isEmpty
                    ? ["the broker has all \(exchangeCount) exchanges and \(queueCount) queues"] : problems)
            guard problems.isEmpty else { throw ExitCode(CommandStatus.findings.rawValue) }
        }
    }

    struct Definitions: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print the broker's vhost, users, permissions and policies for RabbitMQ's load_definitions.")
        @OptionGroup var apps: AppsOption
        @Option(help: "A folder with a file broker-<user> for each user that `topology roles` prints.")
        var passwords: String

        func run() throws {
            let definitions = try BrokerDefinitions(apps: apps.load().ids).json { user in
                let path = "\(passwords)/broker-\(user)"
                guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
                    throw CommandError("\(path): no password for the user \(user); create the file", .notFound)
                }
                return text.trimmingCharacters(in: .whitespacesAndNewlines)
            }
            print(try WireCoding.text(definitions))
        }
    }

    struct Roles: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Print the broker's users, one per line.")
        @OptionGroup var apps: AppsOption
        @OptionGroup var output: OutputOption

        func run() throws {
            let names = BrokerDefinitions(apps: try apps.load().ids).users.map(\.name)
            try output.write(["users": .strings(names)], text: names)
        }
    }
}

/// Runs `body` on a short-lived connection to the broker in `AMQP_URL`.
func withBroker<Result: Sendable>(
    _ body: @Sendable (AMQPAdministrator) async throws -> Result
) async throws -> Result {
    do {
        return try await AMQPAdministrator.with(try brokerConfiguration(), logger: Environment.logger, body)
    } catch let error as AMQPError {
        throw CommandError(error)
    }
}

/// Publishes a message, and returns after the broker's confirm.
///
/// - Parameter kind: the kind of the message, for errors.
func publish(_ message: AMQPMessage, _ kind: String) async throws {
    switch try await withBroker({ try await $0.publish(message) }) {
    case .confirmed: break
    case .nacked:
        throw CommandError("the broker rejected the \(kind): its queue is full; try again later", .temporary)
    case .returned(let code, let text):
        throw CommandError(
            "no queue accepts \(message.routingKey) (\(text)); run pushctl topology apply",
            code == 403 ? .permission : .notFound)
    }
}

/// The connection settings of the broker.
func brokerConfiguration() throws -> AMQPConfiguration {
    let settings = try Environment.settings(.amqp)
    do {
        return try settings.amqp(connectionName: "pushctl", logger: Environment.logger)
    } catch {
        throw CommandError(error)
    }
}
