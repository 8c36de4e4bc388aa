package import Hummingbird
package import NIOCore
package import ServiceKit

package enum HTTPServerLimits {
    /// The default maximum of open connections.
    package static let defaultConnections = 2000
    /// The largest header field in bytes: a bearer token of 16 KiB, and a reserve.
    static let headerField = 20 << 10
    /// The total size of a request's header fields, in bytes.
    static let headerList = 32 << 10
    static let headerFields = 100
}

extension ServiceContext {
    /// Creates a server on the configured host and port. It limits connections, header sizes and the time to receive a
    /// request. Idle clients and clients that do not read are disconnected after 30 s.
    ///
    /// - Parameters:
    ///   - connections: The maximum of concurrent connections; a further one gets 503.
    ///   - requestTimeout: The time to receive a request.
    package func server(
        _ router: Router<BasicRequestContext>, host: ConfigurationKey, port: ConfigurationKey,
        connections: Int = HTTPServerLimits.defaultConnections, requestTimeout: TimeAmount = ConnectionGuard.timeout
    ) throws(ConfigurationError) -> Application<RouterResponder<BasicRequestContext>> {
        let open = ConnectionCounter()
        return Application(
            router: router,
            server: .http1(
                configuration: .init(
                    additionalChannelHandlers: [
                        ConnectionGuard(open, limit: connections, timeout: requestTimeout), SlowReaderGuard(),
                    ],
                    idleTimeout: .seconds(30),
                    httpDecoderConfiguration: .init(
                        maxHeaderFieldSize: HTTPServerLimits.headerField,
                        maxHeaderListSize: HTTPServerLimits.headerList,
                        maxHeaderFieldCount: HTTPServerLimits.headerFields))),
            configuration: .init(
                address: .hostname(try settings.string(host), port: try settings.integer(port)), serverName: nil),
            logger: logger)
    }
}
