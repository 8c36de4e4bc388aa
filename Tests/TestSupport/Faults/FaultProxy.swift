internal import Foundation
internal import Synchronization

/// A TCP proxy on loopback that can fall silent, break its connections, or break them at a chosen moment: what networks
/// and frozen servers do to their clients.
///
/// Two threads carry each connection, one for each direction, since they block.
package final class FaultProxy: Sendable {
    /// Where clients connect, on 127.0.0.1.
    package let port: Int

    private let listener: Int32
    private let target: Int
    private let valve = Valve()
    private let connections = Mutex<[Sockets]>([])
    private let counted = Mutex(0)

    private struct Sockets {
        let client: Int32
        let server: Int32
    }

    /// How many connections clients have made through here.
    package var accepted: Int { counted.withLock { $0 } }

    /// Listens on a free port and carries everything to `target` on loopback.
    package init(target: Int) throws {
        (listener, port) = try LoopbackSocket.listen()
        self.target = target
        Thread { [self] in accept() }.start()
    }

    /// Carries nothing any more, in either direction, while all connections stay open.
    package func freeze() { valve.set(.frozen) }

    /// Carries what clients send, and holds back what they are answered.
    package func holdAnswers() { valve.set(.answersHeld) }

    package func thaw() { valve.set(.open) }

    /// Sends `bytes` to all clients as if the server had. Only while the server itself is quiet.
    package func inject(_ bytes: [UInt8]) {
        connections.withLock { for sockets in $0 { _ = LoopbackSocket.write(bytes, to: sockets.client) } }
    }

    /// From now on, carries what a client sends until `marker` has passed, then breaks all connections without carrying
    /// an answer to it.
    package func cut(after marker: String) { valve.set(.cutting(after: Array(marker.utf8))) }

    /// Breaks all connections; new ones are accepted.
    package func cut() {
        // Under the lock, beyond which a closed descriptor's number may be another's.
        connections.withLock { all in
            for sockets in all {
                LoopbackSocket.shutDown(sockets.client)
                LoopbackSocket.shutDown(sockets.server)
            }
        }
    }

    /// Breaks all connections and accepts no more.
    package func stop() {
        LoopbackSocket.shutDown(listener)
        valve.set(.open)
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
            Thread { [self] in carry(from: client, to: server, pair, isRequest: true) }.start()
            Thread { [self] in carry(from: server, to: client, pair, isRequest: false) }.start()
        }
        LoopbackSocket.close(listener)
    }

    private func carry(from source: Int32, to sink: Int32, _ pair: ProxiedPair, isRequest: Bool) {
        loop: while let bytes = LoopbackSocket.read(source) {
            switch valve.pass(bytes, isRequest: isRequest) {
            case .carry: guard LoopbackSocket.write(bytes, to: sink) else { break loop }
            case .carryAndCut:
                _ = LoopbackSocket.write(bytes, to: sink)
                cut()
            case .swallow: continue
            }
        }
        pair.end()
    }
}

/// What is let through.
private final class Valve: Sendable {
    enum State {
        case open
        case frozen
        case answersHeld
        case cutting(after: [UInt8])
        /// The marker has passed; nothing is answered any more.
        case silent

        func holds(isRequest: Bool) -> Bool {
            switch self {
            case .open, .cutting, .silent: false
            case .frozen: true
            case .answersHeld: !isRequest
            }
        }
    }

    enum Passage {
        case carry, carryAndCut, swallow
    }

    private let state = Mutex(State.open)
    private let changed = NSCondition()

    func set(_ new: State) {
        changed.withLock {
            state.withLock { $0 = new }
            changed.broadcast()
        }
    }

    /// Waits while held.
    func pass(_ bytes: [UInt8], isRequest: Bool) -> Passage {
        changed.withLock {
            while state.withLock({ $0.holds(isRequest: isRequest) }) { changed.wait() }
            return state.withLock { state in
                switch state {
                case .open, .frozen, .answersHeld: return .carry
                case .silent: return isRequest ? .carry : .swallow
                case .cutting(let marker):
                    guard isRequest, bytes.firstRange(of: marker) != nil else { return .carry }
                    state = .silent
                    return .carryAndCut
                }
            }
        }
    }
}

/// Both sockets of one connection, closed when neither direction uses them any more.
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
