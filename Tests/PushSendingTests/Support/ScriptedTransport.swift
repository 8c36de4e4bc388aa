import PushProtocol
import PushSending
import Synchronization

/// Answers requests from a list, the last one for ever, and counts connections.
final class ScriptedTransport: ProviderTransport {
    private struct State {
        var answers: [TransportAnswer]
        var generation = 0
        var sent: [(request: ProviderRequest, authorization: String?, generation: Int)] = []
    }

    private let state: Mutex<State>
    private let after: @Sendable () -> Void

    /// `after` is called when requests were taken.
    init(_ answers: TransportAnswer..., after: @escaping @Sendable () -> Void = {}) {
        state = Mutex(State(answers: answers))
        self.after = after
    }

    var generation: Int { state.withLock(\.generation) }
    var sent: [(request: ProviderRequest, authorization: String?, generation: Int)] { state.withLock(\.sent) }

    func send(
        _ batch: RequestBatch, authorization: String?, deadline: Duration, conditions: SendConditions
    ) async -> [TransportAnswer] {
        defer { after() }
        return state.withLock { state in
            (0..<batch.count).map { index in
                state.sent.append((batch[index], authorization, state.generation))
                return state.answers.count > 1 ? state.answers.removeFirst() : state.answers[0]
            }
        }
    }

    func reconnect(from generation: Int) {
        state.withLock { state in
            if state.generation == generation { state.generation += 1 }
        }
    }
}

/// A wire whose answers say which consequence they have, by their status.
struct StatusWire: PushWire {
    let consequences: [Int: Consequence]

    var path: String? { nil }

    func render(_ push: Push, now: Timestamp) -> any PushRendering { BareRendering() }

    func goesOn(after status: Int) -> Bool { true }

    func consequence(of response: ProviderResponse, to sent: Sent) -> Consequence {
        consequences[response.status] ?? .settle(.accepted(id: nil))
    }
}

/// Requests with nothing but a path.
final class BareRendering: PushRendering {
    func begin(in batch: inout RequestBatch) { batch.begin(RequestBatch.Letter(shared: [])) }

    func add(_ target: Push.Target, to batch: inout RequestBatch) throws(LocalRejection) {
        guard !target.token.secret.isEmpty else { throw LocalRejection("malformed-token", suspectToken: true) }
        batch.write("/\(target.token.secret)")
        batch.endValue()
        batch.endRequest(body: [])
    }
}

/// Mints `bearer 1`, `bearer 2`, … or throws what it is told.
final class ScriptedMint: Sendable {
    private let state = Mutex<(count: Int, error: CredentialError?)>((0, nil))

    var count: Int { state.withLock(\.count) }
    func fail(with error: CredentialError?) { state.withLock { $0.error = error } }

    func cache(
        _ clock: SenderClock, renewAfter: Duration = .seconds(3000), usableFor: Duration = .seconds(3000),
        before: @escaping @Sendable () async -> Void = {}
    ) -> CredentialCache {
        CredentialCache(clock: clock) { () throws(CredentialError) in
            await before()
            let (count, error) = self.state.withLock { state in
                state.count += 1
                return state
            }
            if let error { throw error }
            return MintedCredential(
                authorization: "bearer \(count)", renewAfter: renewAfter, usableFor: usableFor)
        }
    }
}
