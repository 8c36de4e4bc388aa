import PushProtocol

/// The copies of one `send`: which are answered, and which are to be sent once more. A pure machine.
struct GatewayRound {
    /// What has to be done before the next batch.
    struct Orders: OptionSet {
        let rawValue: Int
        static let newConnection = Orders(rawValue: 1)
        static let newCredential = Orders(rawValue: 2)
    }

    /// What is known of each copy; nothing was sent to those that are still `withdrawn`.
    private(set) var answers: [GatewayAnswer]
    /// The places of the copies to be sent next.
    private(set) var pending: [Int]
    /// The remedies that were tried, of the few copies that needed any.
    private var remedies: [Int: Remedies] = [:]

    private let deliveries: [DeliveryPolicy]

    init(_ deliveries: [DeliveryPolicy]) {
        self.deliveries = deliveries
        answers = Array(repeating: .withdrawn, count: deliveries.count)
        pending = Array(deliveries.indices)
    }

    /// Drops each pending copy that `reject` has an answer for.
    mutating func keepPending(_ reject: (Int) -> GatewayAnswer?) {
        pending.removeAll { place in
            guard let answer = reject(place) else { return false }
            answers[place] = answer
            return true
        }
    }

    mutating func answerPending(_ answer: GatewayAnswer) {
        for place in pending { answers[place] = answer }
        pending = []
    }

    /// Takes the answers to the pending copies, in their order.
    mutating func take(_ received: [TransportAnswer], _ consequence: (Int, ProviderResponse) -> Consequence) -> Orders {
        var orders: Orders = []
        var again: [Int] = []
        for (place, answer) in zip(pending, received) {
            let finding: Remedies.Finding =
                switch answer {
                case .success(let response): .answered(consequence(place, response))
                case .failure(let error): .lost(error)
                }
            // Most copies are settled by their first answer and need no record of remedies.
            if case .answered(.settle(let answer)) = finding {
                answers[place] = .settled(answer)
                continue
            }
            switch remedies[place, default: Remedies(delivery: deliveries[place])].next(after: finding) {
            case .answer(let answer): answers[place] = answer
            case .answerAndLeave(let answer):
                answers[place] = answer
                orders.insert(.newConnection)
            case .resend: again.append(place)
            case .resendOnNewConnection:
                again.append(place)
                orders.insert(.newConnection)
            case .resendWithNewCredential:
                again.append(place)
                orders.formUnion([.newConnection, .newCredential])
            }
        }
        pending = again
        return orders
    }
}
