import Messaging
import PushProtocol

struct CensusHandler: StageHandler {
    let store: CensusReportStore
    /// The time that processes share (``DatabaseClock``).
    let now: @Sendable () async throws -> Timestamp

    func decode(_ inbound: Inbound) throws(WireError) -> CensusReport {
        let report = try CensusReport.decode(wireBody: inbound.body)
        guard report.service == inbound.routingKey else {
            throw .misrouted("is not the service of the report")
        }
        return report
    }

    func handle(_ batch: [Delivery<CensusReport>]) async throws -> [Verdict] {
        try await store.keep(batch.map(\.message), now: try await now())
        return batch.map { _ in .done }
    }
}
