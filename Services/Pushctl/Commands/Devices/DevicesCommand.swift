import ArgumentParser
import Foundation
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
        @Flag(help: "Print the registry's JSON.") var json = false

        func run() async throws {
            let answer = try await user.request("GET")
            if json { return print(String(decoding: try WireCoding.encode(answer), as: UTF8.self)) }
            let devices = answer["devices"]?.array ?? []
            if devices.isEmpty { return print("\(user.user) has no devices in \(user.app)") }
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
            abstract: "Erase a user: end every registration, delete its token, and notify the other services.",
            discussion: "This cannot be undone. A device that registers again is a new registration.")
        @OptionGroup var user: UserOption
        @Flag(help: "Confirm. Without this, only count the registrations.") var yes = false

        func run() async throws {
            guard yes else {
                let known = try await user.request("GET")["devices"]?.array ?? []
                let left = known.filter { $0["state"]?.string != "erased" }.count
                return print("\(left) of the listed registrations would be erased; confirm with --yes")
            }
            print("registrations erased: \(try await user.request("DELETE")["erased"]?.int ?? 0)")
        }
    }

    struct Deactivate: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Deactivate one registration. The device may register again.")
        @Option(help: "The app.") var app: String
        @Argument(help: "The device id, as `list` prints it.") var device: String

        func run() async throws {
            guard let id = UUID(uuidString: device) else { throw CommandError("“\(device)” is not a device's id") }
            let answer = try await OperatorClient.request(
                "POST", "/v1/operator/devices/\(id.uuidString.lowercased())/deactivate", ["app": app])
            print(answer["deactivated"] == true ? "deactivated" : "it was not active")
        }
    }

    struct Counts: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print the number of registrations by app, kind, environment and state.")
        @Option(help: "Only registrations of this app.") var app: String?

        func run() async throws {
            let answer = try await OperatorClient.request("GET", "/v1/operator/counts", app.map { ["app": $0] } ?? [:])
            for count in answer["counts"]?.array ?? [] {
                let words = ["app", "kind", "environment", "state"].map { count[$0]?.string ?? "–" }
                print("\(words.joined(separator: "  "))  \(count["count"]?.int ?? 0)")
            }
            print("counted at \(answer["counted_at"]?.string ?? "–")")
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
