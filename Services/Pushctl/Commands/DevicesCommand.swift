import ArgumentParser
import Foundation
import HTTPSFetch
import PushProtocol
import ServiceKit

/// `pushctl devices …`: what the registry knows.
struct DevicesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "devices", abstract: "The registry's devices.", subcommands: [List.self])

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lists a user's devices with their states; tokens are masked.")
        @Option(help: "The app.") var app: String
        @Option(help: "The user.") var user: String
        @Flag(help: "Prints the registry's JSON as it is.") var json = false

        func run() async throws {
            let answer = try await ask()
            if json { return print(String(decoding: try WireCoding.encode(answer), as: UTF8.self)) }
            let devices = answer["devices"]?.array ?? []
            if devices.isEmpty { return print("no device of \(user) is known in \(app)") }
            for device in devices { print(Self.line(device)) }
        }

        private func ask() async throws -> JSONValue {
            let settings = try Environment.settings([Environment.registryURL, Environment.operatorKey])
            var components = URLComponents(string: try settings.string(Environment.registryURL))
            components?.path = "/v1/operator/devices"
            components?.queryItems = [URLQueryItem(name: "app", value: app), URLQueryItem(name: "user", value: user)]
            guard let url = components?.string else { throw Refusal("REGISTRY_URL is not a URL") }
            let key = try settings.string(Environment.operatorKey)
            let response: FetchResponse
            do {
                response = try await HTTPSFetch().send(
                    FetchRequest(method: "GET", url: url, headers: [("authorization", "Bearer \(key)")]))
            } catch {
                throw Refusal("the registry at \(url): \(error)")
            }
            let answer = try WireCoding.decode(JSONValue.self, from: response.body)
            guard response.status == 200 else {
                throw Refusal("the registry answered \(response.status): \(answer["error"]?.string ?? "no reason")")
            }
            return answer
        }

        private static func line(_ device: JSONValue) -> String {
            let columns = ["device", "provider", "environment", "token", "state", "registered_at"]
            let reason = device["reason"]?.string.map { "  (\($0))" } ?? ""
            return columns.map { device[$0]?.string ?? "–" }.joined(separator: "  ") + reason
        }
    }
}
