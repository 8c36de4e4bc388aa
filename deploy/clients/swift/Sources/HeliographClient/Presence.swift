import Foundation

extension HeliographClient {
    /// Reports that the app is open, and the thread on the screen, and renews the report until ``disappear()``. Call it
    /// when the app becomes active and when the thread changes.
    ///
    /// - Throws: The error of the first report. Later ones are repeated.
    public func appear(viewing thread: String? = nil) async throws {
        try await presenceKeeper.start(device: await installation, viewing: thread)
    }

    /// Reports that the app is closed. Without it, the last report expires after 45 seconds.
    public func disappear() async throws {
        try await presenceKeeper.end(device: await installation)
    }
}

/// Renews the presence of this device.
actor PresenceKeeper {
    /// The lease in seconds, and the time between renewals.
    static let lease = 45
    static let interval: TimeInterval = 30

    private let connection: APIConnection
    private let configuration: HeliographClient.Configuration
    private var renewal: Task<Void, Never>?
    /// The last request. Each one waits for its predecessor, so that the server gets them in order.
    private var last: Task<Void, any Error>?

    init(connection: APIConnection, configuration: HeliographClient.Configuration) {
        self.connection = connection
        self.configuration = configuration
    }

    func start(device: String, viewing thread: String?) async throws {
        stop()
        let body: JSONValue = ["viewing": thread.map(JSONValue.string) ?? .null, "for": .integer(Self.lease)]
        let clock = connection.clock
        renewal = Task {
            while (try? await clock.sleep(Self.interval)) != nil {
                try? await self.send("PUT", device, body: body, attempts: 1)
            }
        }
        try await send("PUT", device, body: body, attempts: configuration.attempts)
    }

    func end(device: String) async throws {
        stop()
        try await send("DELETE", device, body: nil, attempts: configuration.attempts)
    }

    func stop() {
        renewal?.cancel()
        renewal = nil
    }

    private func send(_ method: String, _ device: String, body: JSONValue?, attempts: Int) async throws {
        // A renewal that was cancelled before its turn is obsolete.
        try Task.checkCancellation()
        let url = configuration.rules.api("v1", "presence", device)
        let task = Task { [connection, last] in
            _ = try? await last?.value
            _ = try await connection.send(method, url, body: body, attempts: attempts)
        }
        last = task
        try await task.value
    }
}
