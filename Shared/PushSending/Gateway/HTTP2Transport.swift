package import HTTP2
import Synchronization

/// The real transport: one HTTP/2 client, whose connections belong to one credential on one of a provider's hosts.
package final class HTTP2Transport: ProviderTransport {
    private let client: HTTP2Client
    private let counter = Mutex(0)

    /// The owner of `client` shuts it down.
    package init(client: HTTP2Client) { self.client = client }

    package var generation: Int { counter.withLock { $0 } }

    package func send(
        _ request: ProviderRequest, authorization: String, deadline: Duration
    ) async throws(TransportError) -> ProviderResponse {
        do throws(HTTP2Error) {
            let response = try await client.execute(
                HTTP2Request(request, authorization: authorization), deadline: deadline)
            return ProviderResponse(response)
        } catch {
            throw TransportError(error)
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

extension HTTP2Request {
    fileprivate init(_ request: ProviderRequest, authorization: String) {
        var headers: [HTTP2Header] = []
        headers.reserveCapacity(request.headers.count + 1)
        headers.append(HTTP2Header(name: "authorization", value: authorization, neverIndexed: true))
        for header in request.headers {
            headers.append(
                HTTP2Header(name: header.name, value: header.value, neverIndexed: header.neverIndexed))
        }
        self.init(path: request.path, headers: headers, body: request.body)
    }
}

extension ProviderResponse {
    fileprivate init(_ response: HTTP2Response) {
        var headers: [String: String] = [:]
        for field in response.headers where headers[field.name] == nil { headers[field.name] = field.value }
        self.init(status: response.status, headers: headers, body: response.body)
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
                case .queueFull: .deferred(reason: failure.code.rawValue)
                case .connectionLost, .unresponsive, .goAway, .refused, .reset, .responseTooLarge:
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
