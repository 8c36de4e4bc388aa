import HTTP2Server
import Synchronization

/// The listening provider ports and counts of their connections. Safe from any thread.
final class ProviderPorts: Sendable {
    private struct PortState {
        var server: HTTP2Server?
        var opened = 0
        var closed = 0
        var pings = 0
        var resets = 0
        var peakStreams = 0
        var brokenHandshakes: [HandshakeFault: Int] = [:]
    }

    private let entries = Mutex<[ProviderPort: PortState]>([:])

    func listens(_ server: HTTP2Server, as port: ProviderPort) {
        entries.withLock { $0[port, default: PortState()].server = server }
    }

    func stopped(_ port: ProviderPort) {
        entries.withLock { $0[port]?.server = nil }
    }

    func record(_ event: HTTP2ServerEvent, on port: ProviderPort) {
        entries.withLock { entries in
            var entry = entries[port] ?? PortState()
            switch event {
            case .connectionOpened: entry.opened += 1
            case .pingReceived: entry.pings += 1
            case .streamReset: entry.resets += 1
            case .connectionClosed(let connection):
                entry.closed += 1
                entry.peakStreams = max(entry.peakStreams, connection.peakStreams)
            }
            entries[port] = entry
        }
    }

    func recordHandshake(_ fault: HandshakeFault, on port: ProviderPort) {
        entries.withLock { $0[port, default: PortState()].brokenHandshakes[fault, default: 0] += 1 }
    }

    /// Performs `actions` on selected open connections of `ports`.
    ///
    /// - Returns: the number of connections.
    @discardableResult
    func perform(_ actions: [WireAction], on selection: ConnectionFault.Selection, of ports: [ProviderPort]) -> Int {
        let servers = entries.withLock { entries in ports.compactMap { entries[$0]?.server } }
        var count = 0
        for server in servers {
            let connections = server.connections
            let chosen: [HTTP2ServerConnection] =
                switch selection {
                case .all: connections
                case .oldest: Array(connections.prefix(1))
                case .newest: Array(connections.suffix(1))
                case .random: connections.randomElement().map { [$0] } ?? []
                }
            for connection in chosen { server.perform(actions.steps, on: connection.id) }
            count += chosen.count
        }
        return count
    }

    func perform(_ actions: [WireAction], onConnection connection: Int, of port: ProviderPort) {
        entries.withLock { $0[port]?.server }?.perform(actions.steps, on: connection)
    }

    /// The open connections of a port, oldest first.
    func connections(of port: ProviderPort) -> [HTTP2ServerConnection] {
        entries.withLock { $0[port]?.server }?.connections ?? []
    }

    /// Writes each port with its counters and open connections.
    func write(to writer: inout JSONWriter) {
        let entries = entries.withLock { $0 }
        writer.object { writer in
            for port in ProviderPort.allCases {
                guard let entry = entries[port] else { continue }
                let open = entry.server?.connections ?? []
                writer.name(port.name)
                writer.object { writer in
                    writer.member("opened", entry.opened)
                    writer.member("closed", entry.closed)
                    writer.member("pings", entry.pings)
                    writer.member("resets", entry.resets)
                    writer.member("peakStreams", open.map(\.peakStreams).reduce(entry.peakStreams, max))
                    writer.counts(
                        "brokenHandshakes",
                        Dictionary(uniqueKeysWithValues: entry.brokenHandshakes.map { ($0.key.rawValue, $0.value) }))
                    writer.name("open")
                    writer.array(open) { $1.write(to: &$0) }
                }
            }
        }
    }
}

extension HTTP2ServerConnection {
    fileprivate func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("connection", id)
            writer.member("requests", requests)
            writer.member("openStreams", openStreams)
            writer.member("peakStreams", peakStreams)
            writer.member("pings", pings)
        }
    }
}
