package import Hummingbird
package import ServiceKit

extension ServiceContext {
    /// What serves these routes on a host and a port of the configuration. Clients that say nothing, and clients that do not
    /// read, give their sockets back after half a minute.
    package func server(
        _ router: Router<BasicRequestContext>, host: ConfigurationKey, port: ConfigurationKey
    ) throws(ConfigurationError) -> Application<RouterResponder<BasicRequestContext>> {
        Application(
            router: router,
            server: .http1(
                configuration: .init(additionalChannelHandlers: [SlowReaderGuard()], idleTimeout: .seconds(30))),
            configuration: .init(
                address: .hostname(try settings.string(host), port: try settings.integer(port)), serverName: nil),
            logger: logger)
    }
}
