import ArgumentParser
import Foundation
import PushProtocol

/// `pushctl devices …`: what the registry knows.
struct DevicesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "devices", abstract: "The registry's devices.",
        subcommands: [
            List.self, Counts.self, Deactivate.self, Erase.self, FIDs.self, Import.self, Export.self,
        ])

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lists a user's devices with their states; tokens are masked.")
        @OptionGroup var user: UserOption
        @Flag(help: "Prints the registry's JSON as it is.") var json = false

        func run() async throws {
            let answer = try await user.ask("GET")
            if json { return print(String(decoding: try WireCoding.encode(answer), as: UTF8.self)) }
            let devices = answer["devices"]?.array ?? []
            if devices.isEmpty { return print("no device of \(user.user) is known in \(user.app)") }
            for device in devices { print(Self.line(device)) }
        }

        static func line(_ device: JSONValue) -> String {
            if let reason = device["unreadable"]?.string {
                return "\(device["device"]?.string ?? "–")  unreadable: \(reason)"
            }
            let columns = ["device", "provider", "environment", "kind", "token", "state", "registered_at"]
            let notes = [device["reason"]?.string, device["stale_since"]?.string.map { "stale since \($0)" }]
                .compactMap { $0 }
            return columns.map { device[$0]?.string ?? "–" }.joined(separator: "  ")
                + (notes.isEmpty ? "" : "  (\(notes.joined(separator: ", ")))")
        }
    }

    struct Erase: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Forgets a user: ends every registration, deletes its token, and tells the other services.",
            discussion: "It cannot be undone. The user's devices count again when they register anew.")
        @OptionGroup var user: UserOption
        @Flag(help: "Does it; without this, it is only told what would be done.") var yes = false

        func run() async throws {
            guard yes else {
                let known = try await user.ask("GET")["devices"]?.array ?? []
                let left = known.filter { $0["state"]?.string != "erased" }.count
                return print("\(left) of the registrations listed would be erased; add --yes to do it")
            }
            print("registrations erased: \(try await user.ask("DELETE")["erased"]?.int ?? 0)")
        }
    }

    struct Deactivate: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Ends one registration; the device counts again when it registers anew.")
        @Option(help: "The app.") var app: String
        @Argument(help: "The device, as `list` prints it.") var device: String

        func run() async throws {
            guard let id = UUID(uuidString: device) else { throw Refusal("“\(device)” is not a device's id") }
            let answer = try await OperatorClient.ask(
                "POST", "/v1/operator/devices/\(id.uuidString.lowercased())/deactivate", ["app": app])
            print(answer["deactivated"] == true ? "deactivated" : "it was not active")
        }
    }

    struct Counts: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Prints how many registrations there are, by app, kind, environment and state.")
        @Option(help: "Only this app's; every app's when it is not given.") var app: String?

        func run() async throws {
            let answer = try await OperatorClient.ask("GET", "/v1/operator/counts", app.map { ["app": $0] } ?? [:])
            for count in answer["counts"]?.array ?? [] {
                let words = ["app", "kind", "environment", "state"].map { count[$0]?.string ?? "–" }
                print("\(words.joined(separator: "  "))  \(count["count"]?.int ?? 0)")
            }
            print("counted at \(answer["counted_at"]?.string ?? "–")")
        }
    }

    /// One user of one app, and asking the registry's operator API about them.
    struct UserOption: ParsableArguments {
        @Option(help: "The app.") var app: String
        @Option(help: "The user.") var user: String

        func ask(_ method: String) async throws -> JSONValue {
            try await OperatorClient.ask(method, "/v1/operator/devices", ["app": app, "user": user])
        }
    }
}
