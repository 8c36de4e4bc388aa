internal import Foundation
internal import Synchronization

/// A TCP proxy on loopback that can freeze traffic or cut connections, also at a given point in a request.
///
/// Uses two blocking threads per connection, one per direction.
package final class FaultProxy: Sendable {
    /// The port for clients on 127.0.0.1.
    package let port: Int

    private let listener: Int32
    private let target: Int
    private let traffic = TrafficControl()
    private let connections = Mutex<[Sockets]>([])
    private let counted = Mutex(0)

    private struct Sockets {
        let client: Int32
        let server: Int32
    }

    /// The number of accepted connections.
    package var accepted: Int { counted.withLock { $0 } }

    /// Listens on a free port and forwards to `target` on loopback.
    package init(target: Int) throws {
        (listener, port) = try LoopbackSocket.listen()
        self.target = target
        Thread { [self] in accept() }.start()
    }

    /// Stops forwarding in both directions. All connections stay open.
    package func freeze() { traffic.set(.frozen) }

    /// Forwards requests and holds responses.
    package func holdResponses() { traffic.set(.responsesHeld) }

    package func resumeTraffic() { traffic.set(.open) }

    /// Sends `bytes` to all clients as if from the server. Only while the server is quiet.
    package func inject(_ bytes: [UInt8]) {
        connections.withLock { for sockets in $0 { _ = LoopbackSocket.write(bytes, to: sockets.client) } }
    }

    /// Forwards requests until `marker` has passed, then cuts all connections without a response.
    package func cut(after marker: String) { traffic.set(.cutting(after: Array(marker.utf8))) }

    /// Cuts all connections. New ones are accepted.
    package func cut() {
        // Under the lock: the number of a closed descriptor may be reused.
        connections.withLock { all in
            for sockets in all {
                LoopbackSocket.shutDown(sockets.client)
                LoopbackSocket.shutDown(sockets.server)
            }
        }
    }

    /// Cuts all connections and accepts no more.
    package func stop() {
        LoopbackSocket.shutDown(listener)
        traffic.set(.open)
        cut()
    }

    private func accept() {
        while let client = LoopbackSocket.accept(listener) {
            counted.withLock { $0 += 1 }
            guard let server = LoopbackSocket.connect(port: target) else {
                LoopbackSocket.close(client)
                continue
            }
            connections.withLock { $0.append(Sockets(client: client, server: server)) }
            let pair = ProxiedPair(client: client, server: server) { [self] in
                connections.withLock { $0.removeAll { $0.client == client } }
            }
            Thread { [self] in forward(from: client, to: server, pair, isRequest: true) }.start()
            Thread { [self] in forward(from: server, to: client, pair, isRequest: false) }.start()
        }
        LoopbackSocket.close(listener)
    }

    private func forward(from source: Int32, to sink: Int32, _ pair: ProxiedPair, isRequest: Bool) {
        loop: while let bytes = LoopbackSocket.read(source) {
            switch traffic.pass(bytes, isRequest: isRequest) {
            case .forward: guard LoopbackSocket.write(bytes, to: sink) else { break loop }
            case .forwardThenCut:
                _ = LoopbackSocket.write(bytes, to: sink)
                cut()
            case .drop: continue
            }
        }
        pair.end()
    }
}

/// Decides whether traffic is forwarded.
private final class TrafficControl: Sendable {
    enum State {
        case open
        case frozen
        case responsesHeld
        case cutting(after: [UInt8])
        /// The marker has passed; responses are dropped.
        case silent

        func holds(isRequest: Bool) -> Bool {
            switch self {
            case .open, .cutting, .silent: false
            case .frozen: true
            case .responsesHeld: !isRequest
            }
        }
    }

    enum TrafficAction {
        case forward, forwardThenCut, drop
    }

    private let state = Mutex(State.open)
    private let changed = NSCondition()

    func set(_ new: State) {
        changed.withLock {
            state.withLock { $0 = new }
            changed.broadcast()
        }
    }

    /// Blocks while traffic is held.
    func pass(_ bytes: [UInt8], isRequest: Bool) -> TrafficAction {
        changed.withLock {
            while state.withLock({ $0.holds(isRequest: isRequest) }) { changed.wait() }
            return state.withLock { state in
                switch state {
                case .open, .frozen, .responsesHeld: return .forward
                case .silent: return isRequest ? .forward : .drop
                case .cutting(let marker):
                    guard isRequest, bytes.firstRange(of: marker) != nil else { return .forward }
                    state = .silent
                    return .forwardThenCut
                }
            }
        }
    }
}

/// Both sockets of one connection. Closed when both directions have ended.
private final class ProxiedPair: Sendable {
    private let client: Int32
    private let server: Int32
    private let ended = Mutex(0)
    private let onClose: @Sendable () -> Void

    init(client: Int32, server: Int32, onClose: @escaping @Sendable () -> Void) {
        (self.client, self.server, self.onClose) = (client, server, onClose)
    }

    func end() {
        LoopbackSocket.shutDown(client)
        LoopbackSocket.shutDown(server)
        let isLast = ended.withLock { ended in
            ended += 1
            return ended == 2
        }
        guard isLast else { return }
        onClose()
        LoopbackSocket.close(client)
        LoopbackSocket.close(server)
    }
}
