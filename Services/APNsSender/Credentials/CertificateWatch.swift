import Logging
import PushProtocol
import PushSending
import ServiceLifecycle

/// Looks after the push certificates while the sender runs: takes up changed files, records how long each lasts, and
/// ends their connections after the stage has drained.
struct CertificateWatch: Service {
    static let interval = Duration.seconds(60)

    let lanes: [LaneKey: CertifiedConnection]
    let clock: SenderClock
    let logger: Logger

    func run() async throws {
        let gauges = lanes.keys.map { ($0, CertificateExpiry(provider: .apns, lane: $0)) }
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                for (lane, gauge) in gauges { look(after: lane, gauge) }
                // Cancelled only when the process stops.
                try? await clock.sleep(Self.interval)
            }
        }
        for connection in lanes.values { await connection.shutdown() }
    }

    private func look(after lane: LaneKey, _ gauge: CertificateExpiry) {
        guard let connection = lanes[lane] else { return }
        let name: Logger.Metadata = ["app": "\(lane.app)", "environment": "\(lane.environment.rawValue)"]
        switch connection.reload() {
        case .none: break
        case .taken: logger.notice("took up a changed push certificate", metadata: name)
        case .refused(let reason):
            logger.error(
                "a changed push certificate is of no use; the one before stays, if there was one",
                metadata: name.merging(["reason": "\(reason)"]) { $1 })
        }
        if let expiresAt = connection.certificate?.expiresAt { gauge.record(expiresAt, now: clock.now()) }
    }
}
