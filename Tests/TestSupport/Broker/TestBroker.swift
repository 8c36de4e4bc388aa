internal import Foundation

/// The RabbitMQ node for tests. `deploy/local/test` starts one and sets the environment variables.
package enum TestBroker {
    /// `amqp://user:password@host:port/vhost` of a user with all permissions.
    package static var url: String? { ProcessInfo.processInfo.environment["HELIOGRAPH_TEST_AMQP_URL"] }

    /// The command prefix that runs `rabbitmqctl` on the node.
    private static var controlCommand: [String]? {
        ProcessInfo.processInfo.environment["HELIOGRAPH_TEST_RABBITMQCTL"]?.split(separator: " ").map(String.init)
    }

    /// Whether a broker is available, for `.enabled(if:)`.
    package static var isAvailable: Bool { url != nil && controlCommand != nil }

    /// Runs `body` with the URL of a new virtual host, and deletes it afterwards.
    package static func withVirtualHost<Result>(
        isolation: isolated (any Actor)? = #isolation, _ body: (_ url: String) async throws -> Result
    ) async throws -> Result {
        guard let url, let components = URLComponents(string: url), let user = components.user else {
            throw TestBrokerError("HELIOGRAPH_TEST_AMQP_URL is not set to amqp://user:password@host:port/vhost")
        }
        let name = "test-\(UUID().uuidString.lowercased())"
        try await control("add_vhost", name)
        var own = components
        own.percentEncodedPath = "/\(name)"
        let outcome: Swift.Result<Result, any Error>
        do {
            try await control("set_permissions", "-p", name, user, ".*", ".*", ".*")
            outcome = .success(try await body(own.string ?? url))
        } catch {
            outcome = .failure(error)
        }
        try await control("delete_vhost", name)
        return try outcome.get()
    }

    /// Runs `rabbitmqctl` with `arguments` and returns its output.
    @discardableResult
    package static func control(_ arguments: String...) async throws -> String {
        guard let command = controlCommand, !command.isEmpty else {
            throw TestBrokerError("HELIOGRAPH_TEST_RABBITMQCTL is not set")
        }
        return try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async {
                continuation.resume(with: Swift.Result { try run(command + ["-q"] + arguments) })
            }
        }
    }

    private static func run(_ command: [String]) throws -> String {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = command
        let output = Pipe()
        process.standardOutput = output
        process.standardError = output
        process.standardInput = FileHandle.nullDevice
        try process.run()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            throw TestBrokerError("\(command.joined(separator: " ")) failed: \(text)")
        }
        return text
    }
}

package struct TestBrokerError: Error, CustomStringConvertible {
    package let description: String

    init(_ description: String) { self.description = description }
}
