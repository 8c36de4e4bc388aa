import Providers
import PushProtocol
import PushSending
import Synchronization

/// Answers requests from a list, then repeats the last answer. Counts reconnects.
final class ScriptedTransport: ProviderTransport {
    private struct State {
        var answers: [TransportResult]
        var generation = 0
        var sent: [(request: ProviderRequest, authorization: String?, generation: Int)] = []
    }

    private let state: Mutex<State>
    private let after: @Sendable () -> Void

    /// - Parameter after: called after each batch.
    init(_ answers: TransportResult..., after: @escaping @Sendable () -> Void = {}) {
        state = Mutex(State(answers: answers))
        self.after = after
    }

    var generation: Int { state.withLock(\.generation) }
    var sent: [(request: ProviderRequest, authorization: String?, generation: Int)] { state.withLock(\.sent) }

    func send(
        _ batch: ProviderRequestBatch, authorization: String?, deadline: Duration, conditions: SendConditions
    ) async -> [TransportResult] {
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

/// A codec that maps statuses to consequences.
struct StatusCodec: ProviderCodec {
    let consequences: [Int: Consequence]

    var path: String? { nil }

    func render(_ push: Push, now: Timestamp) -> any PushRendering { BareRendering() }

    func shouldContinue(after status: Int) -> Bool { true }

    func consequence(of response: ProviderResponse, to sent: ResponseContext) -> Consequence {
        consequences[response.status] ?? .settle(.accepted(id: nil))
    }
}

/// A rendering whose requests have only a path.
final class BareRendering: PushRendering {
    func begin(in batch: inout ProviderRequestBatch) { batch.begin(ProviderRequestBatch.HeaderTemplate(shared: [])) }

    func add(_ target: Push.Target, to batch: inout ProviderRequestBatch) throws(LocalRejection) {
        guard !target.token.secret.isEmpty else { throw LocalRejection("malformed-token", suspectToken: true) }
        batch.write("/\(target.token.secret)")
        batch.endValue()
        batch.endRequest(body: [])
    }
}

/// Mints `bearer 1`, `bearer 2`, …, or throws the given error.
final class ScriptedMinter: Sendable {
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
