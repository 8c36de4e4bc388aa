import FoundationEssentials
import Logging
import Messaging
import Metrics
import PushProtocol
import ServiceKit

/// Answers requests of rules about broadcast channels.
///
/// A request that APNs does not answer is dropped, because rules asks again. A redelivered request to create can create
/// two channels; rules keeps both.
struct ChannelRequestHandler: StageHandler {
    /// The age at which a request is dropped. Rules has repeated it since then, and each repetition to create would make
    /// another channel.
    static let patience = Duration.seconds(300)

    let channels: ChannelManagement
    let logger: Logger
    var now: @Sendable () -> Timestamp = { .now }

    func decode(_ inbound: Inbound) throws(WireError) -> ChannelRequest {
        let request = try ChannelRequest.decode(wireBody: inbound.body)
        try request.check(routingKey: inbound.routingKey)
        return request
    }

    func handle(_ batch: [Delivery<ChannelRequest>]) async throws -> [Verdict] {
        try await withThrowingTaskGroup(of: (Int, Verdict).self) { group in
            for (index, delivery) in batch.enumerated() { group.addTask { (index, try await verdict(on: delivery)) } }
            var verdicts = batch.map { _ in Verdict.done }
            for try await (index, verdict) in group { verdicts[index] = verdict }
            return verdicts
        }
    }

    private func verdict(on delivery: Delivery<ChannelRequest>) async throws -> Verdict {
        let request = delivery.message
        guard now() - delivery.inbound.publishedAt <= Self.patience else {
            count(request, "outdated")
            return Verdict(.discard(Reason(code: "channels-outdated", detail: "rules has asked again")))
        }
        var metadata: Logger.Metadata = [
            LogKey.app: "\(request.app)", LogKey.environment: "\(request.environment.rawValue)",
            "operation": "\(request.operation.word)",
        ]
        let result: ChannelAnswer.Result
        do throws(ChannelManagement.Unavailable) {
            result = try await channels.perform(request)
        } catch {
            count(request, "unavailable")
            metadata[LogKey.reason] = "\(error.reason)"
            logger.warning("Channel management does not answer; rules asks again", metadata: metadata)
            return Verdict(.discard(Reason(code: "channels-unavailable", detail: "rules asks again")))
        }
        count(request, result.word)
        if case .refused(let reason) = result {
            metadata[LogKey.reason] = "\(reason)"
            logger.warning(
                "APNs refuses to manage a broadcast channel; check the app's broadcast capability and its channels",
                metadata: metadata)
        }
        let id =
            if case .created(let channel) = result {
                DerivedID.uuid5(request.id, ["created", channel.rawValue])
            } else {
                DerivedID.caused(by: request.trace.id, result.word)
            }
        let answer = ChannelAnswer(
            trace: request.trace.next(id: id), app: request.app, environment: request.environment, id: request.id,
            result: result)
        return .done([try Outbound(answer, to: .channels, routingKey: RoutingKey.channelAnswer(request.app))])
    }

    private func count(_ request: ChannelRequest, _ result: String) {
        Counter(
            label: "heliograph_channel_requests_total",
            dimensions: [
                ("app", request.app.rawValue), ("environment", request.environment.rawValue),
                ("operation", request.operation.word), ("result", result),
            ]
        ).increment()
    }
}

extension ChannelRequest.Operation {
    fileprivate var word: String {
        switch self {
        case .create: "create"
        case .delete: "delete"
        }
    }
}

extension ChannelAnswer.Result {
    fileprivate var word: String {
        switch self {
        case .created: "created"
        case .deleted: "deleted"
        case .refused: "refused"
        }
    }
}
