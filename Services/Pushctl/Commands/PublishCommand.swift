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
        let app = try apps.app(app).id
        let event = try UpstreamEvent(try Self.read(file), app: app, name: Self.name(file))
        try await event.publish()
        try output.write(event.receipt, text: [event.line, "next: \(event.explainCommand)"])
    }

    /// Reads a file, or standard input for `-`.
    static func read(_ file: String) throws -> [UInt8] {
        if file == "-" { return Array(try FileHandle.standardInput.readToEnd() ?? Data()) }
        guard let data = FileManager.default.contents(atPath: file) else {
            throw CommandError("\(file): cannot be read", .notFound)
        }
        return Array(data)
    }

    /// Reads JSON from a file, or from standard input for `-`.
    static func json(_ file: String) throws -> JSONValue {
        let bytes = try read(file)
        do { return try WireCoding.decode(JSONValue.self, from: bytes) } catch {
            throw CommandError("\(name(file)): \(error)", .input)
        }
    }

    /// The name of a file in errors.
    static func name(_ file: String) -> String { file == "-" ? "standard input" : file }
}
