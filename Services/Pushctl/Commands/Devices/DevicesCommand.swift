import ArgumentParser
import Foundation
import Primitives
import PushProtocol

/// `pushctl devices …`: the devices in the registry.
struct DevicesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "devices", abstract: "The registry's devices.",
        subcommands: [
            List.self, Counts.self, Deactivate.self, Erase.self, FIDs.self, Import.self, Export.self,
        ])

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List a user's devices with their states. Tokens are masked.")
        @OptionGroup var user: UserOption
        @OptionGroup var output: OutputOption

        func run() async throws {
            let answer = try await user.request("GET")
            try output.write(
                answer,
                text: Self.table(answer["devices"]?.array ?? []).lines(
                    orNone: "\(user.user) has no devices in \(user.app)"))
        }

        static func table(_ devices: [JSONValue]) -> TextTable {
            let columns = ["device", "provider", "environment", "kind", "token", "state", "registered_at"]
            var table = TextTable((columns + ["notes"]).map { TextTable.Column.left($0.replacing("_", with: " ")) })
            for device in devices {
                let notes = [
                    device["unreadable"]?.string.map { "unreadable: \($0)" }, device["reason"]?.string,
                    device["stale_since"]?.string.map { "stale since \($0)" },
                ].compactMap { $0 }
                table.add(columns.map { device[$0]?.string } + [notes.joined(separator: ", ")])
            }
            return table
        }
    }

    struct Erase: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Erase a user: end every registration, delete its token, and notify the other services.",
            discussion: "This cannot be undone. A device that registers again is a new registration.")
        @OptionGroup var user: UserOption
        @Flag(help: "Confirm. Without this, only count the registrations.") var yes = false
        @OptionGroup var output: OutputOption

        func run() async throws {
            guard yes else {
                let known = try await user.request("GET")["devices"]?.array ?? []
                let left = known.filter { $0["state"]?.string != "erased" }.count
                return try output.write(
                    ["erased": 0, "selected": .number(left)],
                    text: ["\(left) of the listed registrations would be erased; confirm with --yes"])
            }
            let count = try await user.request("DELETE")["erased"]?.int ?? 0
            try output.write(
                ["erased": .int(count), "selected": .int(count)], text: ["registrations erased: \(count)"])
        }
    }

    struct Deactivate: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Deactivate one registration. The device may register again.")
        @Option(help: "The app.") var app: String
        @Argument(help: "The device id, as `list` prints it.") var device: String
        @OptionGroup var output: OutputOption

        func run() async throws {
            let id = try UUID(device: device)
            let answer = try await OperatorClient.request(
                "POST", "/v1/operator/devices/\(id.uuidString.lowercased())/deactivate", ["app": app])
            let isDone = answer["deactivated"] == true
            try output.write(
                ["device": .id(id), "deactivated": .bool(isDone)],
                text: [isDone ? "deactivated" : "it was not active"])
        }
    }

    struct Counts: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print the number of registrations by app, kind, environment and state.")
        @Option(help: "Only registrations of this app.") var app: String?
        @OptionGroup var output: OutputOption

        func run() async throws {
            let answer = try await OperatorClient.request("GET", "/v1/operator/counts", app.map { ["app": $0] } ?? [:])
            let columns = ["app", "kind", "environment", "state"]
            var table = TextTable(columns.map(TextTable.Column.left) + [TextTable.Column.right("count")])
            for count in answer["counts"]?.array ?? [] {
                table.add(columns.map { count[$0]?.string } + ["\(count["count"]?.int ?? 0)"])
            }
            try output.write(
                answer,
                text: table.lines(orNone: "no registrations") + ["counted at \(answer["counted_at"]?.string ?? "-")"])
        }
    }

    /// One user of one app in the registry's operator API.
    struct UserOption: ParsableArguments {
        @Option(help: "The app.") var app: String
        @Option(help: "The user.") var user: String

        func request(_ method: String) async throws -> JSONValue {
            try await OperatorClient.request(method, "/v1/operator/devices", ["app": app, "user": user])
        }
    }
}
