import NIOCore

/// Decides when to send a PING and when to close an unresponsive connection.
///
/// Only connections with open requests are watched. Any bytes read count as activity, not just a PING's ACK.
struct KeepAlive {
    enum Action: Hashable {
        case check(at: NIODeadline)
        case ping(thenCheckAt: NIODeadline)
        case close
    }

    private let pingAfter: TimeAmount
    private let pingTimeout: TimeAmount
    /// The last read, or the moment when the first request opened on an idle connection.
    private var idleSince: NIODeadline
    private var pingSent: NIODeadline?

    init(pingAfter: TimeAmount, pingTimeout: TimeAmount, now: NIODeadline) {
        self.pingAfter = pingAfter
        self.pingTimeout = pingTimeout
        idleSince = now
    }

    /// Restarts the idle time: after a read, or when the first request opens on an idle connection.
    mutating func noteActivity(now: NIODeadline) {
        idleSince = now
        pingSent = nil
    }

    mutating func check(now: NIODeadline) -> Action {
        if let pingSent {
            let end = pingSent + pingTimeout
            return now < end ? .check(at: min(end, now + pingAfter)) : .close
        }
        let due = idleSince + pingAfter
        guard now >= due else { return .check(at: due) }
        pingSent = now
        // Checks again no later than the next PING would be due if this one is answered.
        return .ping(thenCheckAt: now + min(pingAfter, pingTimeout))
    }
}
