import NIOCore

/// Whether a connection's peer is still there: when to ask with a PING and when to give up.
///
/// Only a connection with open requests is watched. Anything read counts as a sign of life, not just the answer.
struct Liveness {
    enum Action: Hashable {
        case check(at: NIODeadline)
        case ping(thenCheckAt: NIODeadline)
        case giveUp
    }

    private let pingAfter: TimeAmount
    private let pingTimeout: TimeAmount
    /// Since when nothing was read while requests were open.
    private var quietSince: NIODeadline
    private var pingSent: NIODeadline?

    init(pingAfter: TimeAmount, pingTimeout: TimeAmount, now: NIODeadline) {
        self.pingAfter = pingAfter
        self.pingTimeout = pingTimeout
        quietSince = now
    }

    /// Something was read, or the first request was opened on an idle connection.
    mutating func wake(now: NIODeadline) {
        quietSince = now
        pingSent = nil
    }

    /// What to do now that the time to look has come.
    mutating func check(now: NIODeadline) -> Action {
        if let pingSent {
            let end = pingSent + pingTimeout
            return now < end ? .check(at: min(end, now + pingAfter)) : .giveUp
        }
        let due = quietSince + pingAfter
        guard now >= due else { return .check(at: due) }
        pingSent = now
        // Not later than an answered PING would have to be followed by the next one.
        return .ping(thenCheckAt: now + min(pingAfter, pingTimeout))
    }
}
