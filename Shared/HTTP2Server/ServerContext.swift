import Logging
import NIOCore
import Synchronization

/// State shared by all connections of a server: settings, handler and the table of open connections.
final class ServerContext: Sendable {
    enum Handler: Sendable {
        /// Called in one task for each request.
        case concurrent(@Sendable (HTTP2ServerRequest) async -> [HTTP2ServerStep])
        /// Called on the connection's event loop, in the order in which requests became complete.
        case inOrder(@Sendable (HTTP2ServerRequest) -> [HTTP2ServerStep])
    }

    struct OpenConnection {
        var snapshot: HTTP2ServerConnection
        /// Used on the channel's event loop only; `NIOLoopBound` checks it.
        let handler: NIOLoopBound<ServerChannelHandler>
        let channel: any Channel
    }

    private struct ConnectionTable {
        var entries: [Int: OpenConnection] = [:]
        var lastID = 0
        var isClosed = false
    }

    let settings: HTTP2ServerSettings
    let logger: Logger
    let handler: Handler
    private let events: (@Sendable (HTTP2ServerEvent) -> Void)?
    private let register = Mutex(ConnectionTable())

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
            register.entries[connection.id] = OpenConnection(snapshot: connection, handler: bound, channel: channel)
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

    var entries: [OpenConnection] {
        register.withLock { $0.entries.values.sorted { $0.snapshot.id < $1.snapshot.id } }
    }

    /// Refuses further connections; returns the open ones.
    func close() -> [OpenConnection] {
        register.withLock { $0.isClosed = true }
        return entries
    }
}
