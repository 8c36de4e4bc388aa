import Glibc
import HTTP2
import Logging
import NIOCore
import PushProtocol
import ServiceKit
import ServiceLifecycle

/// One provider's port: TLS and HTTP/2 in front of the simulator, from the start of the process to its shutdown.
struct ProviderListener: Service {
    let role: ProviderPort
    let simulator: Simulator
    let host: String
    /// 0 takes any free port.
    let port: Int
    /// Named when the port is taken.
    let portKey: ConfigurationKey
    let identity: ServerIdentity
    /// Of client certificates that APNs takes in place of provider tokens, in PEM; `nil` when it takes none.
    var clientAuthorityFile: String?
    let ports: ProviderPorts
    let eventLoopGroup: any EventLoopGroup
    let logger: Logger
    let readiness: Readiness.Condition

    /// FCM allows 100 streams a connection (push-protocols B.4).
    private static let googleStreams = 100

    func run() async throws {
        let server = try await start()
        defer { ports.stopped(role) }
        logger.info("Listening", metadata: ["role": "\(role.name)", "address": "\(host):\(server.port)"])
        readiness.set(.holds)
        // Cancellation is an order to stop as well.
        try? await gracefulShutdown()
        readiness.set(.waiting("shut down"))
        await server.shutdown()
    }

    /// The listening server, for the caller to shut down.
    func start() async throws -> HTTP2Server {
        do {
            let server = try await HTTP2Server.start(
                host: host, port: port, tls: usualFace, settings: settings, eventLoopGroup: eventLoopGroup,
                logger: logger,
                events: { [role, simulator, ports] event in
                    ports.record(event, on: role)
                    if role == .google, case .pingReceived(let connection) = event {
                        Self.police(connection, simulator.world.allowances, ports)
                    }
                    guard case .apns(let environment) = role, case .connectionClosed(let connection) = event else {
                        return
                    }
                    simulator.apnsConnectionClosed(connection.id, in: environment)
                }, admission: { [self] in admission() },
                inOrder: { [role, simulator] request in
                    let request = ProviderRequest(request, at: .now)
                    return switch role {
                    case .apns(let environment): simulator.answerAPNs(request, in: environment).steps
                    case .google: simulator.answerGoogle(request).steps
                    }
                })
            ports.listens(server, as: role)
            return server
        } catch let error as IOError where error.errnoCode == EADDRINUSE {
            throw ConfigurationError(
                "\(portKey.name): \(host):\(port) is in use by another process; choose another port")
        }
    }

    /// Google hangs up on clients that ping (push-protocols B.4).
    private static func police(_ connection: Int, _ allowances: Allowances, _ ports: ProviderPorts) {
        let spent = allowances.spend(
            \.fcmPingsPerMinute, per: .seconds(60), on: "pings \(connection)", at: .now)
        guard spent != nil else { return }
        let goAway = GoAway(lastStream: .included, code: 11, debugData: Array("too_many_pings".utf8))
        ports.perform([.goAway(goAway)], onConnection: connection, of: .google)
    }

    /// What was scripted for the next connection.
    private func admission() -> HTTP2ServerAdmission {
        guard let fault = simulator.world.handshakes.take(role) else { return .serve }
        ports.recordHandshake(fault, on: role)
        return switch fault {
        case .refuse: .refuse
        case .ignore: .ignore
        case .expired: .present(identity.expiredFace)
        case .wrongName: .present(identity.misnamedFace)
        case .unknownAuthority: .present(identity.unknownFace)
        case .wrongProtocol: .present(identity.face.offering(["http/1.1"]))
        }
    }

    private var usualFace: HTTP2ServerTLS {
        var face = identity.face
        if case .apns = role, let clientAuthorityFile {
            face.clientCertificates = .optional(caFile: clientAuthorityFile)
        }
        return face
    }

    /// An APNs connection starts with a single stream (A.3); the provider raises it.
    private var settings: HTTP2ServerSettings {
        switch role {
        case .apns: HTTP2ServerSettings(maximumConcurrentStreams: 1)
        case .google: HTTP2ServerSettings(maximumConcurrentStreams: Self.googleStreams)
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
