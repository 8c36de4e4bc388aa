package import HTTP2
package import Providers
package import PushProtocol
import Metrics
import Synchronization

/// Transport over an HTTP/2 client, with the connections of one credential to one host of a provider.
package final class HTTP2Transport: ProviderTransport {
    package let client: HTTP2Client
    private let counter = Mutex(0)
    private let responseTime: Timer

    /// - Parameters:
    ///   - client: the client; its owner shuts it down.
    ///   - provider: the provider, for the metric.
    package init(client: HTTP2Client, provider: Provider) {
        self.client = client
        responseTime = Timer(
            label: "heliograph_provider_response_seconds", dimensions: [("provider", provider.rawValue)],
            preferredDisplayUnit: .seconds)
    }

    package var generation: Int { counter.withLock { $0 } }

    package func send(
        _ batch: ProviderRequestBatch, authorization: String?, deadline: Duration, conditions: SendConditions
    ) async -> [TransportResult] {
        do throws(HTTP2Error) {
            let requests = try EncodedBatch(batch, authorization: authorization, conditions: conditions)
            return await client.execute(all: requests, deadline: deadline).map { answer in
                if case .success(let response) = answer, let elapsed = response.elapsed {
                    responseTime.record(duration: elapsed)
                }
                return TransportResult(answer)
            }
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

/// A batch for the HTTP/2 client, with the fields of each template and of the credential encoded once.
private struct EncodedBatch: HTTP2Requests {
    let batch: ProviderRequestBatch
    let templates: [HTTP2FieldBlock]
    let authorization: HTTP2FieldBlock?
    let conditions: SendConditions

    init(_ batch: ProviderRequestBatch, authorization: String?, conditions: SendConditions) throws(HTTP2Error) {
        self.batch = batch
        self.conditions = conditions
        // nghttp2 never indexes `authorization`, so each request carries it in full.
        self.authorization =
            if let authorization {
                try HTTP2FieldBlock([HTTP2Header(name: "authorization", value: authorization)])
            } else {
                nil
            }
        var templates: [HTTP2FieldBlock] = []
        for template in batch.templates {
            templates.append(
                try HTTP2FieldBlock(
                    template.shared.map { HTTP2Header(name: $0.name, value: $0.value, neverIndexed: $0.neverIndexed) }))
        }
        self.templates = templates
    }

    var count: Int { batch.count }

    var priority: RequestPriority {
        switch batch.lane {
        case .interactive: .normal
        case .bulk: .background
        }
    }

    func body(_ index: Int) -> [UInt8] { batch.body(of: index, at: conditions.now) }

    func write(_ index: Int, to fields: inout HeaderArena) {
        let template = batch.entries[index].template
        fields.append(constant: ":method", constant: "POST")
        if let path = batch.path {
            fields.append(":path", path)
        } else {
            batch.withPath(of: index) { fields.append(constant: ":path", $0, neverIndexed: true) }
        }
        if let authorization { fields.append(authorization) }
        fields.append(templates[template])
        let perRequestFields = batch.templates[template].perRequestFields
        for field in perRequestFields.indices {
            batch.withValue(field, of: index) {
                fields.append(constant: perRequestFields[field], $0, neverIndexed: true)
            }
        }
    }

    func shouldContinue(after status: Int) -> Bool { conditions.shouldContinue(status) }

    func mayStart(_ index: Int) -> Bool { conditions.mayStart(index) }
}

extension TransportResult {
    fileprivate init(_ answer: HTTP2Result) {
        switch answer {
        case .success(let response):
            self = .success(
                ProviderResponse(
                    status: response.status, headers: ResponseHeaders(nulSeparated: response.fields),
                    body: response.body, elapsed: response.elapsed))
        case .failure(let error): self = .failure(TransportError(error))
        }
    }
}

extension TransportError {
    /// Keeps only the failure's code: its text may contain addresses, and reasons appear in metrics and headers.
    init(_ error: HTTP2Error) {
        switch error {
        case .notProcessed(let failure):
            self =
                switch failure.code {
                case .connectFailed, .addressRefused, .connectTimeout, .certificateRejected, .noHTTP2:
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
