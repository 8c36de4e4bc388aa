import Logging
import NIOCore
import Synchronization

/// What all connections of one server share: the handler, and the register of who is connected.
final class ServerContext: Sendable {
    /// Who decides about requests.
    enum Handler: Sendable {
        /// Each request in a task of its own.
        case concurrent(@Sendable (HTTP2ServerRequest) async -> [HTTP2ServerStep])
        /// On the connection's event loop, one request after the other in the order they became whole.
        case inOrder(@Sendable (HTTP2ServerRequest) -> [HTTP2ServerStep])
    }

    struct Entry {
        var snapshot: HTTP2ServerConnection
        /// Touched only on the channel's event loop, which it checks.
        let handler: NIOLoopBound<ServerChannelHandler>
        let channel: any Channel
    }

    private struct Register {
        var entries: [Int: Entry] = [:]
        var lastID = 0
        var isClosed = false
    }

    let settings: HTTP2ServerSettings
    let logger: Logger
    let handler: Handler
    private let events: (@Sendable (HTTP2ServerEvent) -> Void)?
    private let register = Mutex(Register())

    init(
        settings: HTTP2ServerSettings, logger: Logger, events: (@Sendable (HTTP2ServerEvent) -> Void)?,
        handler: Handler
    ) {
        self.settings = settings
        self.logger = logger
        self.events = events
        self.handler = handler
    }

    /// Registers a connection on its event loop; nil when the server is closing.
    func opened(_ handler: ServerChannelHandler, channel: any Channel, hasCertificate: Bool) -> HTTP2ServerConnection? {
        let bound = NIOLoopBound(handler, eventLoop: channel.eventLoop)
        let connection = register.withLock { register -> HTTP2ServerConnection? in
            guard !register.isClosed else { return nil }
            register.lastID += 1
            let connection = HTTP2ServerConnection(id: register.lastID, hasClientCertificate: hasCertificate)
            register.entries[connection.id] = Entry(snapshot: connection, handler: bound, channel: channel)
            return connection
        }
        if let connection { report(.connectionOpened(connection)) }
        return connection
    }

    func changed(_ connection: HTTP2ServerConnection) {
        register.withLock { $0.entries[connection.id]?.snapshot = connection }
    }

    func closed(_ connection: HTTP2ServerConnection) {
        register.withLock { $0.entries[connection.id] = nil }
        report(.connectionClosed(connection))
    }

    func report(_ event: HTTP2ServerEvent) {
        events?(event)
    }

    var entries: [Entry] {
        register.withLock { $0.entries.values.sorted { $0.snapshot.id < $1.snapshot.id } }
    }

    /// Refuses connections from now on and returns those there are.
    func close() -> [Entry] {
        register.withLock { $0.isClosed = true }
        return entries
    }
}
