/// Selects the host of each connection attempt, in turn. Pure.
struct HostRotation {
    private var attempts = 0
    /// The failed attempts and lost connections since the last stable connection.
    private(set) var failures = 0

    mutating func next(of hosts: [AMQPConfiguration.Host]) -> AMQPConfiguration.Host {
        defer { attempts += 1 }
        return hosts[attempts % hosts.count]
    }

    mutating func failed() { failures += 1 }

    /// Call for a connection that lasted, before ``failed()``. A short connection counts as a failure of its host: a
    /// broker that accepts connections and then closes them must not be reconnected to without a pause.
    mutating func wasStable() { failures = 0 }

    /// Whether every one of `count` hosts failed since the last pause, so that a pause precedes the next attempt.
    func needsPause(hosts count: Int) -> Bool { failures.isMultiple(of: count) }
}
