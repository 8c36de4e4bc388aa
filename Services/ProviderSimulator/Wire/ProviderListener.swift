import Glibc
import HTTP2
import HTTP2Server
import Logging
import NIOCore
import PushProtocol
import ServiceKit
import ServiceLifecycle

/// One provider port: TLS and HTTP/2 in front of the simulator, until the process shuts down.
struct ProviderListener: Service {
    let role: ProviderPort
    let simulator: Simulator
    let host: String
    /// 0 picks a free port.
    let port: Int
    /// Named in the error when the port is in use.
    let portKey: ConfigurationKey
    let identity: ServerIdentity
    /// The CA (PEM) of client certificates that APNs accepts instead of provider tokens; `nil` accepts none.
    var clientAuthorityFile: String?
    let ports: ProviderPorts
    let eventLoopGroup: any EventLoopGroup
    let logger: Logger
    let readiness: Readiness.Condition

    /// FCM's limit of streams per connection (ProviderFacts.md §B.4). The push service of browsers has the same.
    private static let commonStreams = 100

    func run() async throws {
        let server = try await start()
        defer { ports.stopped(role) }
        logger.info("Listening", metadata: ["role": "\(role.name)", "address": "\(host):\(server.port)"])
        readiness.set(.holds)
        // Task cancellation also shuts the server down.
        try? await gracefulShutdown()
        readiness.set(.waiting("shut down"))
        await server.shutdown()
    }

    /// Starts the server; the caller shuts it down.
    func start() async throws -> HTTP2Server {
        do {
            let server = try await HTTP2Server.start(
                host: host, port: port, tls: portTLS, settings: settings, eventLoopGroup: eventLoopGroup,
                logger: logger,
                events: { [role, simulator, ports] event in
                    ports.record(event, on: role)
                    if role == .google, case .pingReceived(let connection) = event {
                        Self.limitPings(connection, simulator.state.rateLimits, ports)
                    }
                    guard case .apns(let environment) = role, case .connectionClosed(let connection) = event else {
                        return
                    }
                    simulator.apnsConnectionClosed(connection.id, in: environment)
                }, admission: { [self] in admission() },
                inOrder: { [role, simulator] request in
                    let request = ProviderRequest(request, at: .now)
                    return switch role {
                    case .apns(let environment): simulator.respondAPNs(request, in: environment).steps
                    case .google: simulator.respondGoogle(request).steps
                    case .webPush: simulator.respondWebPush(request).steps
                    }
                })
            ports.listens(server, as: role)
            return server
        } catch let error as IOError where error.errnoCode == EADDRINUSE {
            throw ConfigurationError(
                "\(portKey.name): \(host):\(port) is in use by another process; choose another port")
        }
    }

    /// Google closes connections that send many PINGs (ProviderFacts.md §B.4).
    private static func limitPings(_ connection: Int, _ rateLimits: RateLimits, _ ports: ProviderPorts) {
        let exceeded = rateLimits.consume(
            \.fcmPingsPerMinute, per: .seconds(60), on: "pings \(connection)", at: .now)
        guard exceeded != nil else { return }
        let goAway = GoAway(lastStream: .included, code: 11, debugData: Array("too_many_pings".utf8))
        ports.perform([.goAway(goAway)], onConnection: connection, of: .google)
    }

    /// The scripted handshake fault of the next connection.
    private func admission() -> HTTP2ServerAdmission {
        guard let fault = simulator.state.handshakes.take(role) else { return .serve }
        ports.recordHandshake(fault, on: role)
        return switch fault {
        case .refuse: .refuse
        case .ignore: .ignore
        case .expired: .present(identity.expiredTLS)
        case .wrongName: .present(identity.misnamedTLS)
        case .unknownAuthority: .present(identity.unknownAuthorityTLS)
        case .wrongProtocol: .present(identity.tls.offering(["http/1.1"]))
        }
    }

    private var portTLS: HTTP2ServerTLS {
        var tls = identity.tls
        if case .apns = role, let clientAuthorityFile {
            tls.clientCertificates = .optional(caFile: clientAuthorityFile)
        }
        return tls
    }

    /// An APNs connection starts with one stream; the provider raises the limit later.
    private var settings: HTTP2ServerSettings {
        switch role {
        case .apns: HTTP2ServerSettings(maximumConcurrentStreams: 1)
        case .google, .webPush: HTTP2ServerSettings(maximumConcurrentStreams: Self.commonStreams)
        }
    }
}

extension HTTP2ServerTLS {
    fileprivate func offering(_ protocols: [String]) -> HTTP2ServerTLS {
        var copy = self
        copy.applicationProtocols = protocols
        return copy
    }
}
