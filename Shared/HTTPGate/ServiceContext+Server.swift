package import Hummingbird
package import NIOCore
package import ServiceKit

/// The bounds of a server: of each connection and of all together.
package enum HTTPServerLimits {
    /// The most open connections where a service does not say.
    package static let usualConnections = 2000
    /// The largest header field in bytes: a bearer token of 16 KiB, and room for the rest.
    static let headerField = 20 << 10
    /// All header fields of a request together, in bytes.
    static let headerList = 32 << 10
    static let headerFields = 100
}

extension ServiceContext {
    /// A server of these routes on a host and a port of the configuration. It bounds its connections, their headers, and
    /// the time in which a request must arrive. Silent clients and clients that do not read lose their connection after half
    /// a minute.
    ///
    /// - Parameters:
    ///   - connections: The most that are served at the same time; a further one gets 503.
    ///   - patience: how long a request may take to arrive.
    package func server(
        _ router: Router<BasicRequestContext>, host: ConfigurationKey, port: ConfigurationKey,
        connections: Int = HTTPServerLimits.usualConnections, patience: TimeAmount = ConnectionGuard.patience
    ) throws(ConfigurationError) -> Application<RouterResponder<BasicRequestContext>> {
        let open = OpenConnections()
        return Application(
            router: router,
            server: .http1(
                configuration: .init(
                    additionalChannelHandlers: [
                        ConnectionGuard(open, most: connections, patience: patience), SlowReaderGuard(),
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
