/// Ports on 127.0.0.1.
package enum LoopbackPort {
    /// Whether a server accepts connections on the port.
    package static func isOpen(_ port: Int) -> Bool {
        guard let descriptor = LoopbackSocket.connect(port: port) else { return false }
        LoopbackSocket.close(descriptor)
        return true
    }
}
