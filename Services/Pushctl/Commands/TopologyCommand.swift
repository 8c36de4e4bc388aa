import AMQP
import ArgumentParser
import Foundation
import Messaging
import PushProtocol
import ServiceKit

/// `pushctl topology …`: what must be on the broker.
struct TopologyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "topology", abstract: "The bus: exchanges, queues, bindings, and who may use them.",
        subcommands: [Apply.self, Verify.self, Definitions.self, Roles.self])

    struct Apply: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Declares every exchange, queue and binding for the configured apps. Safe to repeat.")
        @OptionGroup var apps: AppsOption

        func run() async throws {
            let topology = Topology(apps: try apps.load().ids)
            try await withBroker { try await topology.apply(using: $0) }
            print(
                "applied: \(topology.exchanges.count) exchanges, \(topology.queues.count) queues, "
                    + "\(topology.bindings.count) bindings")
        }
    }

    struct Verify: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Says which exchanges and queues are missing on the broker; exit code 1 if any is. "
                + "Arguments and bindings cannot be asked for over AMQP: `apply` refuses what differs.")
        @OptionGroup var apps: AppsOption

        func run() async throws {
            let topology = Topology(apps: try apps.load().ids)
            let problems = try await withBroker { try await topology.verify(using: $0) }
            for problem in problems { print(problem) }
            guard problems.isEmpty else { throw ExitCode(1) }
            print("the broker has all \(topology.exchanges.count) exchanges and \(topology.queues.count) queues")
        }
    }

    struct Definitions: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Prints the broker's vhost, users, permissions and policies, for RabbitMQ's load_definitions.")
        @OptionGroup var apps: AppsOption
        @Option(help: "A folder with a file broker-<user> for each user that `topology roles` lists.")
        var passwords: String

        func run() throws {
            let definitions = try BrokerDefinitions(apps: apps.load().ids).json { user in
                let path = "\(passwords)/broker-\(user)"
                guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
                    throw Refusal("\(path): no password for the user \(user); write one there")
                }
                return text.trimmingCharacters(in: .whitespacesAndNewlines)
            }
            print(String(decoding: try WireCoding.encode(definitions), as: UTF8.self))
        }
    }

    struct Roles: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Lists the broker's users, one a line.")
        @OptionGroup var apps: AppsOption

        func run() throws {
            for user in BrokerDefinitions(apps: try apps.load().ids).users { print(user.name) }
        }
    }
}

/// Runs `body` on a short-lived connection to the broker that `AMQP_URL` names.
func withBroker<Result: Sendable>(
    _ body: @Sendable (AMQPAdministrator) async throws -> Result
) async throws -> Result {
    do {
        return try await AMQPAdministrator.with(try brokerConfiguration(), logger: Environment.logger, body)
    } catch let error as AMQPError {
        throw Refusal("the broker: \(error)")
    }
}

/// How to get to that broker.
func brokerConfiguration() throws -> AMQPConfiguration {
    let settings = try Environment.settings(.amqp)
    do {
        return try settings.amqp(connectionName: "pushctl", logger: Environment.logger)
    } catch {
        throw Refusal("\(error)")
    }
}
