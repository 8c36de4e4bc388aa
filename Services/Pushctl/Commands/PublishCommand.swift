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

    func run() async throws {
        guard let id = AppID(rawValue: app), try apps.load()[id] != nil else {
            throw CommandError("no app “\(app)” is in the apps file")
        }
        let body = try Self.read(file)
        let event: DomainEvent
        do {
            event = try CloudEvents.decode(
                routingKey: "\(app).event", contentType: CloudEvents.structuredContentType, headers: [:], body: body)
        } catch {
            throw CommandError("\(file == "-" ? "standard input" : file): \(error)")
        }
        let message = AMQPMessage(
            exchange: ExchangeName.events.name, routingKey: "\(event.app).\(event.type)",
            properties: AMQPProperties(
                contentType: CloudEvents.structuredContentType, messageID: event.id, type: event.type),
            body: body)
        switch try await withBroker({ try await $0.publish(message) }) {
        case .confirmed: print("published \(event.type) \(event.id) as \(message.routingKey)")
        case .nacked: throw CommandError("the broker rejected the event: its queue is full; try again later")
        case .returned(_, let text):
            throw CommandError("no queue accepts \(message.routingKey) (\(text)); run pushctl topology apply")
        }
    }

    /// Reads a file, or standard input for `-`.
    static func read(_ file: String) throws -> [UInt8] {
        if file == "-" { return Array(try FileHandle.standardInput.readToEnd() ?? Data()) }
        guard let data = FileManager.default.contents(atPath: file) else {
            throw CommandError("\(file): cannot be read")
        }
        return Array(data)
    }
}
