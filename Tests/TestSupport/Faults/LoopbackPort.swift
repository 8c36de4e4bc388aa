/// Ports on 127.0.0.1, for servers that must be told theirs.
package enum LoopbackPort {
    /// A port that was free a moment ago.
    package static func free() throws -> Int {
        let (descriptor, port) = try LoopbackSocket.listen()
        LoopbackSocket.close(descriptor)
        return port
    }

    /// Whether somebody accepts connections there.
    package static func isOpen(_ port: Int) -> Bool {
        guard let descriptor = LoopbackSocket.connect(port: port) else { return false }
        LoopbackSocket.close(descriptor)
        return true
    }
}
