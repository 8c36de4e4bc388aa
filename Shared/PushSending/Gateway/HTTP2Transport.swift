package import HTTP2
import PushProtocol
import Synchronization

/// The real transport: one HTTP/2 client, whose connections belong to one credential on one of a provider's hosts.
package final class HTTP2Transport: ProviderTransport {
    package let client: HTTP2Client
    private let counter = Mutex(0)

    /// The owner of `client` shuts it down.
    package init(client: HTTP2Client) { self.client = client }

    package var generation: Int { counter.withLock { $0 } }

    package func send(
        _ batch: RequestBatch, authorization: String?, deadline: Duration, conditions: SendConditions
    ) async -> [TransportAnswer] {
        do throws(HTTP2Error) {
            let requests = try BatchOnTheWire(batch, authorization: authorization, conditions: conditions)
            return await client.execute(all: requests, deadline: deadline).map(TransportAnswer.init)
        } catch {
            return Array(repeating: .failure(TransportError(error)), count: batch.count)
        }
    }

    package func reconnect(from generation: Int) {
        let isFirst = counter.withLock { counter in
            guard counter == generation else { return false }
            counter += 1
            return true
        }
        if isFirst { client.retireConnections() }
    }
}

/// A batch as the client takes it: the fields of each letter and of the credential laid out once.
private struct BatchOnTheWire: HTTP2Requests {
    let batch: RequestBatch
    let letters: [HTTP2FieldBlock]
    let authorization: HTTP2FieldBlock?
    let conditions: SendConditions

    init(_ batch: RequestBatch, authorization: String?, conditions: SendConditions) throws(HTTP2Error) {
        self.batch = batch
        self.conditions = conditions
        // Laid out once; nghttp2 puts it into no table, whatever is asked for, so it travels with each request.
        self.authorization =
            if let authorization {
                try HTTP2FieldBlock([HTTP2Header(name: "authorization", value: authorization)])
            } else {
                nil
            }
        var letters: [HTTP2FieldBlock] = []
        for letter in batch.letters {
            letters.append(
                try HTTP2FieldBlock(
                    letter.shared.map { HTTP2Header(name: $0.name, value: $0.value, neverIndexed: $0.neverIndexed) }))
        }
        self.letters = letters
    }

    var count: Int { batch.count }

    var precedence: HTTP2Precedence {
        switch batch.lane {
        case .interactive: .normal
        case .bulk: .background
        }
    }

    func body(_ index: Int) -> [UInt8] { batch.body(of: index, at: conditions.now) }

    func write(_ index: Int, to fields: inout HeaderArena) {
        let letter = batch.entries[index].letter
        fields.append(constant: ":method", constant: "POST")
        if let path = batch.path {
            fields.append(":path", path)
        } else {
            batch.withPath(of: index) { fields.append(constant: ":path", $0, neverIndexed: true) }
        }
        if let authorization { fields.append(authorization) }
        fields.append(letters[letter])
        let own = batch.letters[letter].own
        for place in own.indices {
            batch.withValue(place, of: index) { fields.append(constant: own[place], $0, neverIndexed: true) }
        }
    }

    func goesOn(after status: Int) -> Bool { conditions.goesOn(status) }

    func mayStart(_ index: Int) -> Bool { conditions.mayStart(index) }
}

extension TransportAnswer {
    fileprivate init(_ answer: HTTP2Answer) {
        switch answer {
        case .success(let response):
            self = .success(
                ProviderResponse(
                    status: response.status, headers: ProviderFields(nulSeparated: response.fields),
                    body: response.body))
        case .failure(let error): self = .failure(TransportError(error))
        }
    }
}

extension TransportError {
    /// Only the failure's word is kept: its sentence may name addresses, and reasons end up in metrics and headers.
    init(_ error: HTTP2Error) {
        switch error {
        case .notProcessed(let failure):
            self =
                switch failure.code {
                case .connectFailed, .connectTimeout, .certificateRejected, .noHTTP2:
                    .unreachable(reason: failure.code.rawValue)
                case .queueFull, .noStream: .deferred(reason: failure.code.rawValue)
                case .withdrawn: .withdrawn
                case .withheld: .withheld
                case .retired: .outdated
                case .connectionLost, .unresponsive, .goAway, .refused, .reset:
                    .notProcessed(reason: failure.code.rawValue)
                }
        case .ambiguous(let failure): self = .ambiguous(reason: failure.code.rawValue)
        case .deadlineExceeded(written: true): self = .timedOut
        case .deadlineExceeded(written: false): self = .notProcessed(reason: "timed-out")
        case .cancelled(written: true): self = .ambiguous(reason: "cancelled")
        case .cancelled(written: false): self = .deferred(reason: "cancelled")
        case .closed: self = .deferred(reason: "client-closed")
        case .invalidRequest: self = .notProcessed(reason: "request-not-expressible")
        case .invalidConfiguration: self = .unreachable(reason: "client-misconfigured")
        }
    }
}
