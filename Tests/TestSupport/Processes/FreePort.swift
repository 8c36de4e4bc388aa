internal import Synchronization

/// Free TCP ports for servers whose port is configured.
package enum FreePort {
    /// Below the range of ephemeral ports, so that no outgoing connection takes the port before the server listens.
    private static let range = 10_000..<30_000
    /// Ports stay reserved until the process ends: the server may start later or restart.
    private static let given = Mutex<Set<Int>>([])

    /// A loopback port that is free now and not given to another test of this process.
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
