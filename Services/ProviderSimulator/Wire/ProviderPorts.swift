import HTTP2
import Synchronization

/// The provider ports that are listening, and what happened on their connections. Safe from any thread.
final class ProviderPorts: Sendable {
    /// What is counted of one port.
    private struct Entry {
        var server: HTTP2Server?
        var opened = 0
        var closed = 0
        var pings = 0
        var resets = 0
        var peakStreams = 0
        var brokenHandshakes: [HandshakeFault: Int] = [:]
    }

    private let entries = Mutex<[ProviderPort: Entry]>([:])

    func listens(_ server: HTTP2Server, as port: ProviderPort) {
        entries.withLock { $0[port, default: Entry()].server = server }
    }

    func stopped(_ port: ProviderPort) {
        entries.withLock { $0[port]?.server = nil }
    }

    func record(_ event: HTTP2ServerEvent, on port: ProviderPort) {
        entries.withLock { entries in
            var entry = entries[port] ?? Entry()
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
        entries.withLock { $0[port, default: Entry()].brokenHandshakes[fault, default: 0] += 1 }
    }

    /// Does `acts` to open connections of `ports`.
    ///
    /// - Returns: to how many.
    @discardableResult
    func perform(_ acts: [Act], on selection: Disturbance.Selection, of ports: [ProviderPort]) -> Int {
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
            for connection in chosen { server.perform(acts.steps, on: connection.id) }
            count += chosen.count
        }
        return count
    }

    /// Does `acts` to one connection.
    func perform(_ acts: [Act], onConnection connection: Int, of port: ProviderPort) {
        entries.withLock { $0[port]?.server }?.perform(acts.steps, on: connection)
    }

    /// The open connections of a port, oldest first.
    func connections(of port: ProviderPort) -> [HTTP2ServerConnection] {
        entries.withLock { $0[port]?.server }?.connections ?? []
    }

    /// Each port with its totals and its open connections.
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
