import PushProtocol
import Synchronization

/// A fault before HTTP/2 starts.
enum HandshakeFault: String, Hashable, Sendable, CaseIterable {
    /// Resets TCP at the client's first byte.
    case refuse
    /// Accepts TCP and never answers the TLS handshake.
    case ignore
    /// Presents an expired certificate of the right authority.
    case expired
    /// Presents a certificate of the right authority for another host.
    case wrongName = "wrong_name"
    /// Presents a certificate of an unknown authority.
    case unknownAuthority = "unknown_authority"
    /// Offers only HTTP/1.1 in ALPN.
    case wrongProtocol = "wrong_protocol"
}

/// Scripted faults of new connections. Safe from any thread.
final class HandshakeFaults: Sendable {
    struct Script: Hashable, Sendable {
        var fault: HandshakeFault
        /// The number of connections affected; `nil` for all.
        var count: Int?
        /// Affects every n-th connection only.
        var every = 1
    }

    private struct State {
        var script: Script
        var connections = 0
    }

    private let state = Mutex<[ProviderPort: [State]]>([:])

    /// Replaces the remaining scripts of `port`. They are played in order.
    func script(_ scripts: [Script], for port: ProviderPort) {
        state.withLock { $0[port] = scripts.map { State(script: $0) } }
    }

    func removeAll() { state.withLock { $0 = [:] } }

    /// The fault of the next connection; `nil` accepts it.
    func take(_ port: ProviderPort) -> HandshakeFault? {
        state.withLock { state in
            guard var head = state[port]?.first else { return nil }
            head.connections += 1
            guard head.connections % head.script.every == 0 else {
                state[port]?[0] = head
                return nil
            }
            if let count = head.script.count { head.script.count = count - 1 }
            if head.script.count == 0 {
                state[port]?.removeFirst()
            } else {
                state[port]?[0] = head
            }
            return head.script.fault
        }
    }

    /// Reads one posted script or a list. Each replaces the remaining scripts of its port.
    ///
    /// - Returns: the number of scripts.
    func play(_ value: JSONValue) throws(ControlRequestError) -> Int {
        let posted = try MemberReader.elements(of: value) { (path, element) throws(ControlRequestError) in
            let members = try MemberReader(element, at: path, known: ["port", "fault", "count", "every"])
            guard let fault = try members.choice("fault", of: HandshakeFault.self) else {
                throw members.problem("fault", "is missing")
            }
            let script = Script(
                fault: fault, count: try members.integer("count", in: 1...1_000_000_000),
                every: try members.integer("every", in: 1...1_000_000_000) ?? 1)
            return (ports: try members.ports("port"), script: script)
        }
        var scripts: [ProviderPort: [Script]] = [:]
        for (ports, script) in posted { for port in ports { scripts[port, default: []].append(script) } }
        for (port, scripts) in scripts { script(scripts, for: port) }
        return posted.count
    }
}
