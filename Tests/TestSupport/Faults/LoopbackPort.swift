/// Ports on 127.0.0.1.
package enum LoopbackPort {
    /// Whether somebody accepts connections there.
    package static func isOpen(_ port: Int) -> Bool {
        guard let descriptor = LoopbackSocket.connect(port: port) else { return false }
        LoopbackSocket.close(descriptor)
        return true
    }
}
