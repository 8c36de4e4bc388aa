package import PushProtocol
internal import Foundation
internal import HTTPSFetch

/// A client of the provider simulator's control API, on a free port.
package struct SimulatorControl: Sendable {
    package let port: Int
    private let fetch = HTTPSFetch()

    package init() throws { port = try FreePort.any() }

    /// Scripts the responses.
    package func script(_ outcomes: JSONValue) async throws {
        let body = Array(try JSONEncoder().encode(outcomes))
        try await ask("POST", "outcomes", body: body)
    }

    /// Sets the existing tokens and their environments.
    package func pin(_ tokens: JSONValue) async throws {
        try await ask("POST", "tokens", body: Array(try JSONEncoder().encode(tokens)))
    }

    /// Deletes the state at `path`, such as `outcomes` or `requests`.
    package func delete(_ path: String) async throws { try await ask("DELETE", path) }

    /// The recorded requests of `party` (`apns`, `fcm` or `oauth`), oldest first.
    package func requests(of party: String) async throws -> [JSONValue] {
        let answer = try await ask("GET", "\(party)/requests")
        return try JSONDecoder().decode(JSONValue.self, from: Data(answer))["requests"]?.array ?? []
    }

    @discardableResult
    private func ask(_ method: String, _ path: String, body: [UInt8] = []) async throws -> [UInt8] {
        let response = try await fetch.send(
            FetchRequest(
                method: method, url: "http://127.0.0.1:\(port)/\(path)",
                headers: body.isEmpty ? [] : [(name: "content-type", value: "application/json")], body: body))
        guard (200..<300).contains(response.status) else {
            throw Refused(description: "\(response.status): \(String(decoding: response.body, as: UTF8.self))")
        }
        return response.body
    }

    private struct Refused: Error, CustomStringConvertible { let description: String }
}
