package import PushProtocol

/// The way to one app's devices on one of a provider's environments.
package protocol PushGateway: Sendable {
    associatedtype Rendering: Sendable

    /// Renders what the targets of `push` share.
    func render(_ push: Push) -> Rendering

    /// Sends to one target and tries every remedy that needs no waiting. Never throws: what is known is the answer.
    ///
    /// `delivery` decides about what may or may not have been taken.
    func send(to target: Push.Target, from rendering: Rendering, delivery: DeliveryPolicy) async -> GatewayAnswer
}

/// The gateway over a provider's wire: request, credential, exchange, consequence.
package struct ProviderGateway<Wire: PushWire>: PushGateway {
    /// How long one request may take, from asking for a stream to the end of the answer.
    package static var deadline: Duration { .seconds(15) }

    private let wire: Wire
    private let credentials: any CredentialSource
    private let transport: any ProviderTransport
    private let clock: SenderClock

    package init(
        wire: Wire, credentials: any CredentialSource, transport: any ProviderTransport, clock: SenderClock = .system
    ) {
        self.wire = wire
        self.credentials = credentials
        self.transport = transport
        self.clock = clock
    }

    package func render(_ push: Push) -> Wire.Rendering { wire.render(push, now: clock.now()) }

    package func send(
        to target: Push.Target, from rendering: Wire.Rendering, delivery: DeliveryPolicy
    ) async -> GatewayAnswer {
        do throws(LocalRejection) {
            return try await send(
                wire.request(to: target, from: rendering), to: target, Remedies(delivery: delivery))
        } catch {
            return .refusedHere(error)
        }
    }

    private func send(
        _ request: ProviderRequest, to target: Push.Target, _ remedies: Remedies
    ) async -> GatewayAnswer {
        var remedies = remedies
        var refused: Credential?
        do throws(CredentialError) {
            while true {
                let credential =
                    if let refused { try await credentials.replacing(refused) } else {
                        try await credentials.current()
                    }
                let generation = transport.generation
                let finding = await exchange(request, target, credential)
                switch remedies.next(after: finding) {
                case .answer(let answer): return answer
                case .resend: continue
                case .resendOnNewConnection: transport.reconnect(from: generation)
                case .resendWithNewCredential:
                    refused = credential
                    transport.reconnect(from: generation)
                case .answerAndLeave(let answer):
                    transport.reconnect(from: generation)
                    return answer
                }
            }
        } catch {
            return error.answer
        }
    }

    /// One request and what its answer, or the lack of one, means.
    private func exchange(
        _ request: ProviderRequest, _ target: Push.Target, _ credential: Credential
    ) async -> Remedies.Finding {
        do throws(TransportError) {
            let response = try await transport.send(
                request, authorization: credential.authorization, deadline: Self.deadline)
            let sent = Sent(
                target: target, now: clock.now(), credentialAge: clock.uptime() - credential.mintedAt)
            return .answered(wire.consequence(of: response, to: sent))
        } catch {
            return .lost(error)
        }
    }
}
