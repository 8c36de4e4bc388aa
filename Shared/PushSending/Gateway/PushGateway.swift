package import FoundationEssentials
package import Providers
package import PushProtocol
import Messaging

/// Sends to one app's devices in one environment of a provider.
package protocol PushGateway: Sendable {
    /// The quota shared with the project's other senders; `nil` without a quota, or while the project is unknown.
    var quota: QuotaLimiter? { get }

    /// Renders the content that all targets of `push` share.
    func render(_ push: Push) -> any PushRendering

    /// Sends `requests` concurrently, with all retries that need no delay.
    ///
    /// Waiting requests of the bulk lane are sent after interactive ones.
    ///
    /// - Parameters:
    ///   - requests: the requests; those of one rendering are adjacent.
    ///   - mayStart: called on any thread right before a request gets a stream. False ends the request as
    ///     ``SendResult/withheld``.
    /// - Returns: The result of each request, in their order.
    func send(
        _ requests: [TargetRequest], of renderings: [any PushRendering], in lane: Lane,
        mayStart: @escaping @Sendable (TargetRequest) -> Bool
    ) async -> [SendResult]
}

extension PushGateway {
    package var quota: QuotaLimiter? { nil }

    /// Sends `requests` without a check before they get a stream.
    package func send(
        _ requests: [TargetRequest], of renderings: [any PushRendering], in lane: Lane
    ) async -> [SendResult] {
        await send(requests, of: renderings, in: lane) { _ in true }
    }
}

/// The request to send one rendering to one target.
package struct TargetRequest: Hashable, Sendable {
    /// The index of the rendering.
    package var rendering: Int
    package var target: Push.Target
    /// Decides whether to resend a request that may have been processed.
    package var delivery: DeliveryPolicy
    /// When the push expires; `nil` for never.
    package var expiresAt: Timestamp?
    /// The campaign of the push; `nil` for others.
    package var campaign: UUID?

    package init(
        of rendering: Int, to target: Push.Target, delivery: DeliveryPolicy = .atLeastOnce, expiresAt: Timestamp? = nil,
        campaign: UUID? = nil
    ) {
        self.rendering = rendering
        self.target = target
        self.delivery = delivery
        self.expiresAt = expiresAt
        self.campaign = campaign
    }
}

/// Sends with a provider's codec, a credential and a transport.
package struct ProviderGateway: PushGateway {
    private let codec: any ProviderCodec
    private let credentials: any CredentialSource
    private let transport: any ProviderTransport
    private let clock: SenderClock
    private let deadline: Duration

    /// - Parameter deadline: the longest wait of a request for a stream, and again for its response.
    package init(
        codec: any ProviderCodec, credentials: any CredentialSource, transport: any ProviderTransport,
        clock: SenderClock = .system,
        deadline: Duration = .seconds(15)
    ) {
        self.codec = codec
        self.credentials = credentials
        self.transport = transport
        self.clock = clock
        self.deadline = deadline
    }

    package func render(_ push: Push) -> any PushRendering { codec.render(push, now: clock.now()) }

    package func send(
        _ requests: [TargetRequest], of renderings: [any PushRendering], in lane: Lane,
        mayStart: @escaping @Sendable (TargetRequest) -> Bool
    ) async -> [SendResult] {
        var progress = SendProgress(requests.map(\.delivery))
        let trace = SendTrace.current
        var refused: (credential: Credential, generation: Int)?
        while !progress.pending.isEmpty {
            let batch = write(requests, of: renderings, in: lane, &progress)
            guard batch.count > 0 else { break }
            do throws(CredentialError) {
                let credential = try await credential(after: refused)
                let generation = transport.generation
                let indices = progress.pending
                let start = trace == nil ? 0 : MessageSpan.now
                let results = await transport.send(
                    batch, authorization: credential.authorization, deadline: deadline,
                    conditions: SendConditions(
                        shouldContinue: codec.shouldContinue, mayStart: { mayStart(requests[indices[$0]]) },
                        now: clock.now))
                let (now, age) = (clock.now(), clock.uptime() - credential.mintedAt)
                let renewals = progress.apply(results) { index, response in
                    let consequence = codec.consequence(
                        of: response, to: ResponseContext(target: requests[index].target, now: now, credentialAge: age))
                    trace?.record(response, consequence, to: requests[index].target, from: start)
                    return consequence
                }
                trace?.recordFailures(results, to: { requests[indices[$0]].target }, from: start)
                if renewals.contains(.newCredential) { refused = (credential, generation) }
                if renewals == .newConnection { transport.reconnect(from: generation) }
            } catch {
                progress.finishPending(error.result)
            }
        }
        return progress.results
    }

    /// The credential for the next batch.
    ///
    /// Replaces a refused credential before the connections that used it. Requests that wait for those connections then
    /// get the new credential.
    private func credential(
        after refused: (credential: Credential, generation: Int)?
    ) async throws(CredentialError) -> Credential {
        guard let refused else { return try await credentials.current() }
        defer { transport.reconnect(from: refused.generation) }
        return try await credentials.replacing(refused.credential)
    }

    /// Encodes the pending requests. Finishes those that cannot be encoded.
    private func write(
        _ requests: [TargetRequest], of renderings: [any PushRendering], in lane: Lane, _ progress: inout SendProgress
    ) -> ProviderRequestBatch {
        var batch = ProviderRequestBatch(path: codec.path, lane: lane, expecting: progress.pending.count)
        var template: Int?
        progress.finishRejected { index in
            let rendering = requests[index].rendering
            if template != rendering {
                renderings[rendering].begin(in: &batch)
                template = rendering
            }
            do throws(LocalRejection) {
                try renderings[rendering].add(requests[index].target, to: &batch)
                return nil
            } catch {
                return .rejectedLocally(error)
            }
        }
        return batch
    }
}
