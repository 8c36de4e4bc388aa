import PushProtocol
import Synchronization

/// What may go wrong before HTTP/2 begins.
enum HandshakeFault: String, Hashable, Sendable, CaseIterable {
    /// TCP is reset at the client's first byte.
    case refuse
    /// TCP is open and TLS is never answered.
    case ignore
    /// A certificate of the right authority that has ended.
    case expired
    /// A certificate of the right authority for another host.
    case wrongName = "wrong_name"
    /// A certificate of an authority that nobody knows.
    case unknownAuthority = "unknown_authority"
    /// ALPN offers HTTP/1.1 alone.
    case wrongProtocol = "wrong_protocol"
}

/// Which new connections shall fail before HTTP/2 begins. Safe from any thread.
final class HandshakeBook: Sendable {
    struct Script: Hashable, Sendable {
        var fault: HandshakeFault
        /// For so many connections; `nil` for all.
        var count: Int?
        /// Each so many-th connection only.
        var every = 1
    }

    private struct State {
        var script: Script
        var connections = 0
    }

    private let state = Mutex<[ProviderPort: [State]]>([:])

    /// Replaces what is left of the scripts for `port`; they are played in their order.
    func script(_ scripts: [Script], for port: ProviderPort) {
        state.withLock { $0[port] = scripts.map { State(script: $0) } }
    }

    func removeAll() { state.withLock { $0 = [:] } }

    /// What happens to the next connection; `nil` lets it in.
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

    /// Takes what was posted: one script or a list. What it says about a port replaces what was left for it.
    ///
    /// - Returns: how many there were.
    func play(_ value: JSONValue) throws(ControlProblem) -> Int {
        let elements = value.array ?? [value]
        var scripts: [ProviderPort: [Script]] = [:]
        for (index, element) in elements.enumerated() {
            let path = value.array == nil ? "" : "[\(index)]."
            let members = try MemberReader(element, at: path, known: ["port", "fault", "count", "every"])
            guard let fault = try members.choice("fault", of: HandshakeFault.self) else {
                throw members.problem("fault", "is missing")
            }
            let script = Script(
                fault: fault, count: try members.integer("count", in: 1...1_000_000_000),
                every: try members.integer("every", in: 1...1_000_000_000) ?? 1)
            for port in try members.ports("port") { scripts[port, default: []].append(script) }
        }
        for (port, scripts) in scripts { script(scripts, for: port) }
        return elements.count
    }
}
