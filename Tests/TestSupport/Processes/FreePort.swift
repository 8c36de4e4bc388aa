internal import Synchronization

/// TCP ports for servers that must be told theirs.
package enum FreePort {
    /// Below the range from which systems take the ports of outgoing connections: one of those could be gone before the
    /// server listens.
    private static let range = 10_000..<30_000
    /// What was given out is of this process until its end: its server may not listen yet, or shall come back.
    private static let given = Mutex<Set<Int>>([])

    /// A port of loopback that was free a moment ago, and that no other test of this process is told.
    package static func any() throws -> Int {
        for _ in 0..<1000 {
            let port = Int.random(in: range)
            guard given.withLock({ $0.insert(port).inserted }) else { continue }
            guard let (descriptor, _) = try? LoopbackSocket.listen(port: port) else { continue }
            LoopbackSocket.close(descriptor)
            return port
        }
        throw NoneFree()
    }

    private struct NoneFree: Error {}
}
