package import PushProtocol

/// Encodes pushes as requests to one provider, and maps its responses to consequences.
///
/// Implemented for APNs, FCM and Web Push. Pure: does no I/O and reads no clock.
package protocol ProviderCodec: Sendable {
    /// The path of all requests; `nil` if each request has its own.
    var path: String? { get }

    /// Renders the content that all targets share. ``PushRendering/add(_:to:)`` throws its errors for each target.
    func render(_ push: Push, now: Timestamp) -> any PushRendering

    /// Whether to send the waiting requests of a batch after an answer of this status.
    func shouldContinue(after status: Int) -> Bool

    func consequence(of response: ProviderResponse, to sent: ResponseContext) -> Consequence
}

/// A push's content, rendered once for all its targets.
package protocol PushRendering: AnyObject, Sendable {
    /// Begins the header template of the requests to all targets.
    func begin(in batch: inout ProviderRequestBatch)

    /// Adds the request to one target, without its credential.
    ///
    /// - Throws: Why no request can be built; then nothing is added.
    func add(_ target: Push.Target, to batch: inout ProviderRequestBatch) throws(LocalRejection)
}

extension ProviderCodec {
    package func request(
        to target: Push.Target, from rendering: any PushRendering
    ) throws(LocalRejection) -> ProviderRequest {
        var batch = ProviderRequestBatch(path: path)
        rendering.begin(in: &batch)
        try rendering.add(target, to: &batch)
        return batch[0]
    }
}

/// The request's side of a response: its target and the age of its credential.
package struct ResponseContext: Sendable {
    package var target: Push.Target
    /// When the response was read.
    package var now: Timestamp
    /// The age of the request's credential.
    package var credentialAge: Duration

    package init(target: Push.Target, now: Timestamp, credentialAge: Duration) {
        self.target = target
        self.now = now
        self.credentialAge = credentialAge
    }
}

/// One `POST` to a provider, without `authorization`.
package struct ProviderRequest: Hashable, Sendable {
    package var path: String
    package var headers: [ProviderHeader]
    package var body: [UInt8]
}

package struct ProviderHeader: Hashable, Sendable {
    /// Lower case, as HTTP/2 has it.
    package var name: String
    package var value: String
    /// Whether to encode it as a never-indexed HPACK literal: for secrets, and for values that never repeat.
    package var neverIndexed: Bool

    package init(_ name: String, _ value: String, neverIndexed: Bool = false) {
        self.name = name
        self.value = value
        self.neverIndexed = neverIndexed
    }
}

package struct ProviderResponse: Hashable, Sendable {
    package var status: Int
    package var headers: ResponseHeaders
    package var body: [UInt8]
    /// The time from the request's stream to the complete response, if measured.
    package var elapsed: Duration?

    package init(status: Int, headers: ResponseHeaders, body: [UInt8], elapsed: Duration? = nil) {
        self.status = status
        self.headers = headers
        self.body = body
        self.elapsed = elapsed
    }

    package init(status: Int, headers: [String: String] = [:], body: [UInt8] = []) {
        self.init(status: status, headers: ResponseHeaders(headers), body: body)
    }

    /// The body as JSON; `nil` for other bodies, such as a proxy's HTML page. Then the status alone decides.
    package var json: JSONValue? {
        body.isEmpty ? nil : try? WireCoding.decode(JSONValue.self, from: body)
    }
}
