/// TCP ports for processes that a test starts.
package enum FreePort {
    /// A port of loopback that was free a moment ago.
    package static func any() throws -> Int {
        let (descriptor, port) = try LoopbackSocket.listen()
        LoopbackSocket.close(descriptor)
        return port
    }
}
