import AMQP
import ArgumentParser
import Foundation
import PushProtocol
import ServiceKit

/// `pushctl publish`: publishes an event like an upstream service.
struct PublishCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "publish",
        abstract: "Publish a CloudEvent from a file or standard input, and wait for the broker's confirm.")
    @Option(help: "The app that publishes.") var app: String
    @Argument(help: "A file with a structured CloudEvent, or - for standard input.") var file: String

    @OptionGroup var apps: AppsOption
    @OptionGroup var output: OutputOption

    func run() async throws {
        _ = try apps.app(app)
        let body = try Self.read(file)
        let event: DomainEvent
        do {
            event = try CloudEvents.decode(
                routingKey: "\(app).event", contentType: CloudEvents.structuredContentType, headers: [:], body: body)
        } catch {
            throw CommandError("\(file == "-" ? "standard input" : file): \(error)", .input)
        }
        let message = AMQPMessage(
            exchange: ExchangeName.events.name, routingKey: "\(event.app).\(event.type)",
            properties: AMQPProperties(
                contentType: CloudEvents.structuredContentType, messageID: event.id, type: event.type),
            body: body)
        switch try await withBroker({ try await $0.publish(message) }) {
        case .confirmed:
            try output.write(
                [
                    "id": .string(event.id), "source": .string(event.source), "type": .string(event.type),
                    "routing_key": .string(message.routingKey),
                ], text: ["published \(event.type) \(event.id) as \(message.routingKey)"])
        case .nacked:
            throw CommandError("the broker rejected the event: its queue is full; try again later", .temporary)
        case .returned(let code, let text):
            throw CommandError(
                "no queue accepts \(message.routingKey) (\(text)); run pushctl topology apply",
                code == 403 ? .permission : .notFound)
        }
    }

    /// Reads a file, or standard input for `-`.
    static func read(_ file: String) throws -> [UInt8] {
        if file == "-" { return Array(try FileHandle.standardInput.readToEnd() ?? Data()) }
        guard let data = FileManager.default.contents(atPath: file) else {
            throw CommandError("\(file): cannot be read", .notFound)
        }
        return Array(data)
    }
}
