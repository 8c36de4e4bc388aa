/// TCP ports for servers that must be told theirs.
package enum FreePort {
    /// Below the range from which systems take the ports of outgoing connections: one of those could be gone before the
    /// server listens.
    private static let range = 10_000..<30_000

    /// A port of loopback that was free a moment ago. Drawn, so that tests that run at once get different ones.
    package static func any() throws -> Int {
        for _ in 0..<100 {
            let port = Int.random(in: range)
            guard let (descriptor, _) = try? LoopbackSocket.listen(port: port) else { continue }
            LoopbackSocket.close(descriptor)
            return port
        }
        throw NoneFree()
    }

    private struct NoneFree: Error {}
}
