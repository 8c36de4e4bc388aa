import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// One HTTP request.
public struct HTTPCall: Sendable {
    /// The method, in capitals.
    public var method: String
    /// The whole address.
    public var url: URL
    /// The header fields.
    public var headers: [String: String]
    /// The body; nil for none.
    public var body: Data?
    /// The longest time in seconds without data from the server.
    public var timeout: TimeInterval
}

/// The head of a response.
public struct HTTPHead: Sendable {
    /// The status code.
    public var status: Int
    /// The header fields, with names in lowercase.
    public var headers: [String: String]

    /// Takes the header fields with names in any case.
    public init(status: Int, headers: [String: String] = [:]) {
        self.status = status
        self.headers = Dictionary(headers.map { ($0.key.lowercased(), $0.value) }) { first, _ in first }
    }
}

/// Sends requests. It follows no redirect, because a redirect could carry the bearer token to another host.
public protocol HTTPTransport: Sendable {
    /// Sends a request and returns the response once its head has arrived. The end of the stream is the end of the body.
    /// Ending the iteration ends the request.
    func send(_ call: HTTPCall) async throws -> (HTTPHead, AsyncThrowingStream<Data, any Error>)
}

/// The transport over `URLSession`, without cookies and without a cache.
public final class URLSessionTransport: HTTPTransport {
    private let session: URLSession
    private let receivers = Receivers()

    /// A transport with a session of its own.
    public init() {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.urlCache = nil
        configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
        configuration.httpShouldSetCookies = false
        // A stream may be open beside the other requests.
        configuration.httpMaximumConnectionsPerHost = 6
        session = URLSession(configuration: configuration, delegate: receivers, delegateQueue: nil)
    }

    deinit { session.finishTasksAndInvalidate() }

    /// Sends a request and returns the response once its head has arrived.
    public func send(_ call: HTTPCall) async throws -> (HTTPHead, AsyncThrowingStream<Data, any Error>) {
        var request = URLRequest(url: call.url, timeoutInterval: call.timeout)
        request.httpMethod = call.method
        request.httpBody = call.body
        for (name, value) in call.headers { request.setValue(value, forHTTPHeaderField: name) }
        let task = session.dataTask(with: request)
        let (body, writer) = AsyncThrowingStream<Data, any Error>.makeStream()
        writer.onTermination = { _ in task.cancel() }
        let head = try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                receivers.add(Receiver(head: continuation, body: writer), for: task)
                task.resume()
            }
        } onCancel: {
            task.cancel()
        }
        return (head, body)
    }
}

/// The open ends of one request.
private struct Receiver {
    var head: CheckedContinuation<HTTPHead, any Error>?
    let body: AsyncThrowingStream<Data, any Error>.Continuation
}

/// The delegate of the session: passes each response to its receiver.
private final class Receivers: NSObject, URLSessionDataDelegate, @unchecked Sendable {
    private let lock = NSLock()
    private var receivers: [Int: Receiver] = [:]

    func add(_ receiver: Receiver, for task: URLSessionTask) {
        lock.withLock { receivers[task.taskIdentifier] = receiver }
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping (URLSession.ResponseDisposition) -> Void
    ) {
        if let response = response as? HTTPURLResponse {
            var headers: [String: String] = [:]
            for (name, value) in response.allHeaderFields { headers["\(name)"] = "\(value)" }
            takeHead(dataTask)?.resume(returning: HTTPHead(status: response.statusCode, headers: headers))
        }
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        lock.withLock { receivers[dataTask.taskIdentifier] }?.body.yield(data)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping (URLRequest?) -> Void
    ) {
        completionHandler(nil)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        takeHead(task)?.resume(throwing: error ?? URLError(.badServerResponse))
        let receiver = lock.withLock { receivers.removeValue(forKey: task.taskIdentifier) }
        receiver?.body.finish(throwing: error)
    }

    private func takeHead(_ task: URLSessionTask) -> CheckedContinuation<HTTPHead, any Error>? {
        lock.withLock {
            defer { receivers[task.taskIdentifier]?.head = nil }
            return receivers[task.taskIdentifier]?.head
        }
    }
}
