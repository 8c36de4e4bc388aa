import ArgumentParser
import Contracts
import Foundation
import PushProtocol
import ServiceKit

/// `pushctl contracts …`: the forms of all messages, for machines.
struct ContractsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "contracts", abstract: "Print the contracts of the bus: an AsyncAPI document and JSON Schemas.",
        subcommands: [AsyncAPI.self, Schemas.self])

    struct AsyncAPI: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "asyncapi", abstract: "Print the AsyncAPI 3.0 document of the bus.",
            discussion: "The document refers to the schemas in the folder “\(AsyncAPIDocument.schemaFolder)”.")

        @Option(help: "The apps file: lists its apps as the values of the parameter “app”.")
        var apps: String?
        @Option(help: "List only the operations of this user of the broker, such as “upstream”.")
        var user: String?
        @Option(help: "Write asyncapi.json and the schemas into this folder.")
        var folder: String?

        func run() throws {
            let role = try user.map { name in
                guard let role = BusRole(rawValue: name) else {
                    let names = BusRole.allCases.map(\.rawValue).joined(separator: ", ")
                    throw ValidationError("there is no user “\(name)”; the users are \(names)")
                }
                return role
            }
            let document = AsyncAPIDocument(
                release: Build.version, apps: try apps.map { try Environment.apps($0).ids } ?? [], user: role)
            let text = document.json.pretty
            guard let folder else { return print(text, terminator: "") }
            try ContractsCommand.write(text, "asyncapi.json", in: folder)
            try Schemas.write(to: "\(folder)/\(AsyncAPIDocument.schemaFolder)")
        }
    }

    struct Schemas: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "schemas", abstract: "Print the JSON Schema (2020-12) of each message version, by file name.")

        @Option(help: "Write each schema into a file in this folder.")
        var folder: String?

        func run() throws {
            if let folder { return try Self.write(to: folder) }
            let schemas = MessageContract.all.map { ($0.fileName, $0.schema) }
            print(JSONValue.object(Dictionary(schemas) { first, _ in first }).pretty, terminator: "")
        }

        static func write(to folder: String) throws {
            for contract in MessageContract.all {
                try ContractsCommand.write(contract.schema.pretty, contract.fileName, in: folder)
            }
        }
    }

    private static func write(_ text: String, _ name: String, in folder: String) throws {
        do {
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            try Data(text.utf8).write(to: URL(filePath: folder).appending(path: name))
        } catch {
            throw CommandError("\(folder)/\(name) cannot be written: \(error.localizedDescription)")
        }
    }
}
