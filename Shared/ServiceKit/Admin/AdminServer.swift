import Foundation
import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import ServiceLifecycle

/// Serves `/metrics`, `/health/live` and `/health/ready` on a separate port.
///
/// The first service of the group and therefore the last to shut down: a draining process still answers probes.
struct AdminServer: Service {
    let host: String
    let port: Int
    let exposition: Exposition
    let readiness: Readiness
    let logger: Logger

    func run() async throws {
        do {
            try await application.run()
        } catch let error as IOError where error.errnoCode == EADDRINUSE {
            throw ConfigurationError(
                "\(ConfigurationKey.adminPort.name): \(host):\(port) is in use by another process; choose another port")
        } catch let error as IOError where error.errnoCode == EACCES || error.errnoCode == EADDRNOTAVAIL {
            throw ConfigurationError(
                "\(ConfigurationKey.adminHost.name): cannot listen on \(host):\(port): \(error)")
        }
    }

    var application: some ApplicationProtocol {
        Application(
            router: router,
            configuration: ApplicationConfiguration(address: .hostname(host, port: port), serverName: nil),
            onServerRunning: { [logger] channel in
                logger.info(
                    "Serving /metrics and /health", metadata: ["address": "\(channel.localAddress?.description ?? "?")"]
                )
            },
            logger: quiet)
    }

    /// Suppresses Hummingbird's messages below warning.
    private var quiet: Logger {
        var quiet = logger
        quiet.logLevel = max(logger.logLevel, .warning)
        return quiet
    }

    private var router: Router<BasicRequestContext> {
        let router = Router()
        router.get("metrics") { [exposition] _, _ in
            Response(status: .ok, type: Exposition.contentType, body: exposition.render())
        }
        // A response proves that the event loop and the thread pool run. An unreachable broker or database must not
        // make the orchestrator kill the process.
        router.get("health/live") { _, _ in
            Response(status: .ok, type: "application/json", body: #"{"live":true}"#)
        }
        router.get("health/ready") { [readiness] _, _ in
            let report = readiness.report
            return Response(
                status: report.isReady ? .ok : .serviceUnavailable, type: "application/json", body: report.json)
        }
        return router
    }
}

extension Response {
    fileprivate init(status: HTTPResponse.Status, type: String, body: String) {
        self.init(
            status: status, headers: [.contentType: type, .cacheControl: "no-store"],
            body: ResponseBody(byteBuffer: ByteBuffer(string: body)))
    }
}
