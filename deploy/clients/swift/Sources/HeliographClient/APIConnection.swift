import Foundation

/// Sends requests with the user's bearer token, and repeats them after failures. Every request of the APIs may be
/// repeated.
struct APIConnection: Sendable {
    let transport: any HTTPTransport
    let bearer: HeliographClient.BearerSource
    let timeout: TimeInterval
    let clock: ClientClock

    /// The maximum size of a response in bytes.
    static let maximumSize = 8 << 20

    /// Sends a request, at most `attempts` times, and returns the body of a successful response.
    func send(
        _ method: String, _ url: URL, body: JSONValue? = nil, attempts: Int, backoff: Backoff = .request
    ) async throws -> Data {
        var attempt = 0
        while true {
            attempt += 1
            let (error, retryAfter): (HeliographError, TimeInterval?)
            do {
                let (head, data) = try await exchange(method, url, body)
                if (200..<300).contains(head.status) { return data }
                error = Self.error(head.status, data)
                retryAfter = head.headers["retry-after"].flatMap(TimeInterval.init)
            } catch let caught {
                guard let transient = Self.transient(caught) else { throw caught }
                (error, retryAfter) = (transient, nil)
            }
            guard case .unavailable = error, attempt < attempts else { throw error }
            try await clock.sleep(backoff.delay(after: attempt, retryAfter: retryAfter, random: clock.random()))
        }
    }

    /// One attempt. A cancellation does not interrupt a change: the server could still make it, after a later one.
    private func exchange(_ method: String, _ url: URL, _ body: JSONValue?) async throws -> (HTTPHead, Data) {
        let attempt: @Sendable () async throws -> (HTTPHead, Data) = {
            let (head, bytes) = try await open(method, url, body: body?.encoded(), timeout: timeout)
            return (head, try await Self.collect(bytes))
        }
        return method == "GET" ? try await attempt() : try await Task { try await attempt() }.value
    }

    /// Sends a request once, and once more with a new bearer token after 401.
    func open(
        _ method: String, _ url: URL, body: Data? = nil, headers: [String: String] = [:], timeout: TimeInterval
    ) async throws -> (HTTPHead, AsyncThrowingStream<Data, any Error>) {
        for isRefused in [false, true] {
            var headers = headers
            headers["Authorization"] = "Bearer \(try await bearer(isRefused))"
            if body != nil { headers["Content-Type"] = "application/json" }
            let call = HTTPCall(method: method, url: url, headers: headers, body: body, timeout: timeout)
            let (head, bytes) = try await transport.send(call)
            if head.status != 401 || isRefused { return (head, bytes) }
        }
        preconditionFailure("the second response is returned")
    }

    static func collect(_ bytes: AsyncThrowingStream<Data, any Error>) async throws -> Data {
        var data = Data()
        for try await chunk in bytes {
            data.append(chunk)
            guard data.count <= maximumSize else { throw HeliographError.unreadable("the body is too large") }
        }
        return data
    }

    static func decode<Value: Decodable>(_ type: Value.Type, from data: Data) throws -> Value {
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .custom { decoder in
            let container = try decoder.singleValueContainer()
            let text = try container.decode(String.self)
            guard let date = WireTime.date(text) else {
                throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a time")
            }
            return date
        }
        do { return try decoder.decode(type, from: data) } catch {
            throw HeliographError.unreadable(String(describing: error))
        }
    }

    /// The error of a response. Problems (RFC 9457) have the cause in `detail`.
    static func error(_ status: Int, _ data: Data) -> HeliographError {
        let problem = try? JSONDecoder().decode(JSONValue.self, from: data)
        let detail = problem?["detail"]?.text ?? problem?["error"]?.text ?? "no detail"
        let isTransient = status == 408 || status == 429 || status >= 500
        return isTransient ? .unavailable(status: status, detail: detail) : .refused(status: status, detail: detail)
    }

    /// The error of a request without a complete response; nil for errors of other kinds, such as a cancellation.
    static func transient(_ error: any Error) -> HeliographError? {
        let error = error as NSError
        guard error.domain == NSURLErrorDomain, error.code != NSURLErrorCancelled else { return nil }
        return .unavailable(status: nil, detail: error.localizedDescription)
    }
}

/// The pauses between attempts: doubled each time, with a random part, so that devices do not return together.
struct Backoff: Sendable {
    /// The first pause in seconds.
    let base: TimeInterval
    /// The longest pause in seconds.
    let limit: TimeInterval

    static let request = Backoff(base: 0.5, limit: 10)
    static let registration = Backoff(base: 2, limit: 300)

    /// The longest `Retry-After` that is obeyed, in seconds.
    static let longestRetryAfter: TimeInterval = 3600

    /// - Parameter random: From 0 up to 1.
    func delay(after attempt: Int, retryAfter: TimeInterval?, random: Double) -> TimeInterval {
        let pause = min(limit, base * pow(2, Double(min(attempt, 30) - 1)))
        let jittered = pause * (0.5 + random / 2)
        guard let retryAfter, retryAfter > 0 else { return jittered }
        return min(retryAfter, Self.longestRetryAfter) + jittered
    }
}

extension URL {
    /// The address of a path whose variable parts may have any character.
    func api(_ path: String..., query: [(String, String)] = []) -> URL {
        var allowed = CharacterSet(charactersIn: "-._~")
        allowed.formUnion(CharacterSet(charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"))
        func encoded(_ text: String) -> String { text.addingPercentEncoding(withAllowedCharacters: allowed) ?? "" }
        var text = absoluteString
        while text.hasSuffix("/") { text.removeLast() }
        text += path.map { "/" + encoded($0) }.joined()
        let pairs = query.map { "\(encoded($0.0))=\(encoded($0.1))" }
        if !pairs.isEmpty { text += "?" + pairs.joined(separator: "&") }
        return URL(string: text) ?? self
    }
}
