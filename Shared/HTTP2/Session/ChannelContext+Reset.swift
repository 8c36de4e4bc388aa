package import NIOCore
package import NIOSSL

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

extension ChannelHandlerContext {
    /// Resets the TCP connection: sets SO_LINGER to 0 and bypasses the TLS handler, which would send close_notify.
    package func resetConnection<TLS: NIOSSLHandler>(bypassing tls: TLS.Type) {
        if let provider = channel as? any SocketOptionProvider {
            // Best effort: on failure the connection ends with FIN instead of RST.
            provider.setSoLinger(linger(l_onoff: 1, l_linger: 0)).whenFailure { _ in }
        }
        let tls = try? pipeline.syncOperations.context(handlerType: TLS.self)
        (tls ?? self).close(promise: nil)
    }
}
