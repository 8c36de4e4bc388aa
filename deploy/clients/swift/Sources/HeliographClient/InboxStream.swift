import Foundation

/// An event of the live inbox.
public enum InboxEvent: Sendable {
    /// The stream is open. If `isComplete` is false, items may have been missed: read the inbox again.
    case connected(isComplete: Bool)
    /// A new item, for a banner and for the list.
    case item(InboxItem)
    /// An item was taken back or deleted: remove it from the list.
    case removed(UUID)
}

/// The data of an event `removed`.
private struct RemovedItem: Decodable {
    var id: UUID
}

extension HeliographClient {
    /// New items of the user's inbox, live. Reconnects with the id of the last item, until the iteration ends or the
    /// server refuses the user.
    ///
    /// Run it while the app is in the foreground:
    ///
    ///     for try await event in client.inboxEvents() { … }
    public func inboxEvents() -> AsyncThrowingStream<InboxEvent, any Error> {
        let (events, writer) = AsyncThrowingStream<InboxEvent, any Error>.makeStream()
        let reader = InboxStreamReader(
            connection: connection, url: configuration.rules.api("v1", "inbox", "stream"), events: writer)
        let task = Task { await reader.run() }
        writer.onTermination = { _ in task.cancel() }
        return events
    }
}

/// Reads the stream, and reconnects.
private actor InboxStreamReader {
    /// The time in seconds after which the server forgets events, less a margin.
    static let memory: TimeInterval = 3300
    /// The time in seconds without data after which the connection counts as lost. The server sends a comment every 15 s.
    static let silence: TimeInterval = 60

    private let connection: APIConnection
    private let url: URL
    private let events: AsyncThrowingStream<InboxEvent, any Error>.Continuation
    private var parser = EventStreamParser()
    private var lastID: String?
    private var lastContact: Date?
    private var failures = 0

    init(
        connection: APIConnection, url: URL, events: AsyncThrowingStream<InboxEvent, any Error>.Continuation
    ) {
        self.connection = connection
        self.url = url
        self.events = events
    }

    func run() async {
        do {
            while true {
                try Task.checkCancellation()
                let retryAfter = try await readOnce()
                let pause = Backoff(base: parser.retry ?? 2, limit: 60)
                let delay = pause.delay(
                    after: failures + 1, retryAfter: retryAfter, random: connection.clock.random())
                try await connection.clock.sleep(delay)
            }
        } catch {
            events.finish(throwing: Task.isCancelled ? nil : error)
        }
    }

    /// Reads one connection to its end. Throws when the server refuses the user. Returns the server's `Retry-After`.
    private func readOnce() async throws -> TimeInterval? {
        do {
            if let lastContact, connection.clock.now().timeIntervalSince(lastContact) > Self.memory { lastID = nil }
            var headers = ["Accept": "text/event-stream"]
            headers["Last-Event-ID"] = lastID
            let (head, bytes) = try await connection.open("GET", url, headers: headers, timeout: Self.silence)
            guard head.status == 200 else { return try await refuse(head, bytes) }
            events.yield(.connected(isComplete: lastID != nil))
            parser = EventStreamParser(lastID: lastID)
            for try await chunk in bytes { try take(chunk) }
        } catch {
            guard APIConnection.transient(error) != nil else { throw error }
            failures += 1
        }
        return nil
    }

    private func take(_ chunk: Data) throws {
        failures = 0
        lastContact = connection.clock.now()
        for event in try parser.append(chunk) {
            let data = Data(event.data.utf8)
            switch event.name {
            case "item": events.yield(.item(try APIConnection.decode(InboxItem.self, from: data)))
            case "removed": events.yield(.removed(try APIConnection.decode(RemovedItem.self, from: data).id))
            default: break
            }
        }
        lastID = parser.lastID
    }

    private func refuse(_ head: HTTPHead, _ bytes: AsyncThrowingStream<Data, any Error>) async throws -> TimeInterval? {
        failures += 1
        let error = APIConnection.error(head.status, try await APIConnection.collect(bytes))
        switch error {
        case .refused(status: 400, _) where lastID != nil:
            // The server does not know the id, for example after its database was restored.
            lastID = nil
            return nil
        case .unavailable: return head.headers["retry-after"].flatMap(TimeInterval.init)
        default: throw error
        }
    }
}
