import ArgumentParser
import Foundation
import HTTPSFetch
import PushProtocol
import ServiceKit

/// `pushctl devices …`: what the registry knows.
struct DevicesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "devices", abstract: "The registry's devices.",
        subcommands: [List.self, Erase.self, Import.self, Export.self])

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

    /// One user of one app, and asking the registry's operator API about them.
    struct UserOption: ParsableArguments {
        @Option(help: "The app.") var app: String
        @Option(help: "The user.") var user: String

        func ask(_ method: String) async throws -> JSONValue {
            let settings = try Environment.settings([Environment.registryURL, Environment.operatorKey])
            var components = URLComponents(string: try settings.string(Environment.registryURL))
            components?.path = "/v1/operator/devices"
            components?.queryItems = [URLQueryItem(name: "app", value: app), URLQueryItem(name: "user", value: user)]
            guard let url = components?.string else { throw Refusal("REGISTRY_URL is not a URL") }
            let key = try settings.string(Environment.operatorKey)
            let response: FetchResponse
            do {
                response = try await HTTPSFetch().send(
                    FetchRequest(method: method, url: url, headers: [("authorization", "Bearer \(key)")]))
            } catch {
                throw Refusal("the registry at \(url): \(error)")
            }
            let answer = try WireCoding.decode(JSONValue.self, from: response.body)
            guard response.status == 200 else {
                throw Refusal("the registry answered \(response.status): \(answer["error"]?.string ?? "no reason")")
            }
            return answer
        }
    }
}
