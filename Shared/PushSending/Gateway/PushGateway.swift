package import PushProtocol

/// The way to one app's devices on one of a provider's environments.
package protocol PushGateway: Sendable {
    /// What the provider allows all who send where this gateway sends; `nil` where it sets no limit, or while it is not
    /// known yet whose it is.
    var quota: QuotaGate? { get }

    /// Renders what the targets of `push` share.
    func render(_ push: Push) -> any PushRendering

    /// Sends all of `copies` at once and tries every remedy that needs no waiting. Never throws: what is known of each
    /// copy is its answer, in the same order. Where requests wait for the provider, those of the bulk lane let others go
    /// first.
    ///
    /// `mayStart` is asked about each copy on any thread, right before its request gets a stream. After a no, the answer
    /// is ``GatewayAnswer/withheld``.
    func send(
        _ copies: [Copy], of renderings: [any PushRendering], in lane: Lane,
        mayStart: @escaping @Sendable (Copy) -> Bool
    ) async -> [GatewayAnswer]
}

extension PushGateway {
    package var quota: QuotaGate? { nil }

    /// Sends all of `copies`, however long they wait for streams.
    package func send(
        _ copies: [Copy], of renderings: [any PushRendering], in lane: Lane
    ) async -> [GatewayAnswer] {
        await send(copies, of: renderings, in: lane) { _ in true }
    }
}

/// What goes to one target. Copies of the same rendering stand next to each other.
package struct Copy: Hashable, Sendable {
    /// The index of what it is a copy of.
    package var rendering: Int
    package var target: Push.Target
    /// Decides about what may or may not have been taken.
    package var delivery: DeliveryPolicy
    /// From when on it may not be sent any more; `nil` for never.
    package var expiresAt: Timestamp?

    package init(
        of rendering: Int, to target: Push.Target, delivery: DeliveryPolicy = .atLeastOnce, expiresAt: Timestamp? = nil
    ) {
        self.rendering = rendering
        self.target = target
        self.delivery = delivery
        self.expiresAt = expiresAt
    }
}

/// The gateway over a provider's wire: requests, credential, exchange, consequences.
package struct ProviderGateway: PushGateway {
    private let wire: any PushWire
    private let credentials: any CredentialSource
    private let transport: any ProviderTransport
    private let clock: SenderClock
    private let deadline: Duration

    /// - Parameter deadline: how long one request may wait for a stream, and then for its answer.
    package init(
        wire: any PushWire, credentials: any CredentialSource, transport: any ProviderTransport,
        clock: SenderClock = .system,
        deadline: Duration = .seconds(15)
    ) {
        self.wire = wire
        self.credentials = credentials
        self.transport = transport
        self.clock = clock
        self.deadline = deadline
    }

    package func render(_ push: Push) -> any PushRendering { wire.render(push, now: clock.now()) }

    package func send(
        _ copies: [Copy], of renderings: [any PushRendering], in lane: Lane,
        mayStart: @escaping @Sendable (Copy) -> Bool
    ) async -> [GatewayAnswer] {
        var round = GatewayRound(copies.map(\.delivery))
        var refused: (credential: Credential, generation: Int)?
        while !round.pending.isEmpty {
            let batch = write(copies, of: renderings, in: lane, &round)
            guard batch.count > 0 else { break }
            do throws(CredentialError) {
                let credential = try await credential(after: refused)
                let generation = transport.generation
                let places = round.pending
                let answers = await transport.send(
                    batch, authorization: credential.authorization, deadline: deadline,
                    conditions: SendConditions(
                        goesOn: wire.goesOn, mayStart: { mayStart(copies[places[$0]]) }, now: clock.now))
                let (now, age) = (clock.now(), clock.uptime() - credential.mintedAt)
                let orders = round.take(answers) { place, response in
                    wire.consequence(
                        of: response, to: Sent(target: copies[place].target, now: now, credentialAge: age))
                }
                if orders.contains(.newCredential) { refused = (credential, generation) }
                if orders == .newConnection { transport.reconnect(from: generation) }
            } catch {
                round.answerPending(error.answer)
            }
        }
        return round.answers
    }

    /// The credential to send with now. In the place of one that was refused there is another before the connections that saw
    /// it are replaced: who waits for them asks for a credential anew then, and is not to get the same.
    private func credential(
        after refused: (credential: Credential, generation: Int)?
    ) async throws(CredentialError) -> Credential {
        guard let refused else { return try await credentials.current() }
        defer { transport.reconnect(from: refused.generation) }
        return try await credentials.replacing(refused.credential)
    }

    /// The requests of everything that is pending; what may not reach the wire is answered.
    private func write(
        _ copies: [Copy], of renderings: [any PushRendering], in lane: Lane, _ round: inout GatewayRound
    ) -> RequestBatch {
        var batch = RequestBatch(path: wire.path, lane: lane, expecting: round.pending.count)
        var letter: Int?
        round.keepPending { place in
            let rendering = copies[place].rendering
            if letter != rendering {
                renderings[rendering].begin(in: &batch)
                letter = rendering
            }
            do throws(LocalRejection) {
                try renderings[rendering].add(copies[place].target, to: &batch)
                return nil
            } catch {
                return .refusedHere(error)
            }
        }
        return batch
    }
}
