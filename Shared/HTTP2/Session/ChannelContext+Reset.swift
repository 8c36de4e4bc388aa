import NIOCore
import NIOSSL

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

extension ChannelHandlerContext {
    /// Resets the TCP connection: lingering is switched off and the TLS handler, which would say goodbye, passed by.
    func resetConnection<TLS: NIOSSLHandler>(passing tls: TLS.Type) {
        if let provider = channel as? any SocketOptionProvider {
            // Best effort: without it the connection ends with FIN instead of RST.
            provider.setSoLinger(linger(l_onoff: 1, l_linger: 0)).whenFailure { _ in }
        }
        let tls = try? pipeline.syncOperations.context(handlerType: TLS.self)
        (tls ?? self).close(promise: nil)
    }
}
