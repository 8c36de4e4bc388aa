import Providers
import PushProtocol

/// The results of one `send`, and its requests still to be sent. Pure.
struct SendProgress {
    /// The renewals needed before the next batch.
    struct RequiredRenewals: OptionSet {
        let rawValue: Int
        static let newConnection = RequiredRenewals(rawValue: 1)
        static let newCredential = RequiredRenewals(rawValue: 2)
    }

    /// The result of each request; `withdrawn` until it is sent.
    private(set) var results: [SendResult]
    /// The indices of the requests to be sent next.
    private(set) var pending: [Int]
    /// The retries of requests that needed any, by index.
    private var retries: [Int: ImmediateRetries] = [:]

    private let deliveries: [DeliveryPolicy]

    init(_ deliveries: [DeliveryPolicy]) {
        self.deliveries = deliveries
        results = Array(repeating: .withdrawn, count: deliveries.count)
        pending = Array(deliveries.indices)
    }

    mutating func finishRejected(_ reject: (Int) -> SendResult?) {
        pending.removeAll { index in
            guard let result = reject(index) else { return false }
            results[index] = result
            return true
        }
    }

    mutating func finishPending(_ result: SendResult) {
        for index in pending { results[index] = result }
        pending = []
    }

    /// Applies the responses to the pending requests, in their order.
    mutating func apply(
        _ received: [TransportResult], _ consequence: (Int, ProviderResponse) -> Consequence
    ) -> RequiredRenewals {
        var renewals: RequiredRenewals = []
        var again: [Int] = []
        for (index, answer) in zip(pending, received) {
            let exchange: ImmediateRetries.ExchangeResult =
                switch answer {
                case .success(let response): .answered(consequence(index, response))
                case .failure(let error): .lost(error)
                }
            // Most requests are settled by their first response and need no record of retries.
            if case .answered(.settle(let answer)) = exchange {
                results[index] = .settled(answer)
                continue
            }
            switch retries[index, default: ImmediateRetries(delivery: deliveries[index])].nextStep(after: exchange) {
            case .finish(let result): results[index] = result
            case .finishAndReconnect(let result):
                results[index] = result
                renewals.insert(.newConnection)
            case .resend: again.append(index)
            case .resendOnNewConnection:
                again.append(index)
                renewals.insert(.newConnection)
            case .resendWithNewCredential:
                again.append(index)
                renewals.formUnion([.newConnection, .newCredential])
            }
        }
        pending = again
        return renewals
    }
}
