package import PushProtocol

/// How one provider is spoken to, as pure functions: pushes become requests, responses become consequences.
///
/// Implemented once for APNs and once for FCM. Nothing here does I/O or reads a clock.
package protocol PushWire: Sendable {
    /// The path of every request; `nil` where each has its own.
    var path: String? { get }

    /// Renders everything that targets share. What is wrong with it is told target by target, by
    /// ``PushRendering/add(_:to:)``.
    func render(_ push: Push, now: Timestamp) -> any PushRendering

    /// Whether an answer of this status makes it pointless to send what still waits for its turn.
    func goesOn(after status: Int) -> Bool

    /// The one consequence of `response`.
    func consequence(of response: ProviderResponse, to sent: Sent) -> Consequence
}

/// A push's content, rendered once for all its targets.
package protocol PushRendering: AnyObject, Sendable {
    /// Begins the letter whose copies the requests to all targets are.
    func begin(in batch: inout RequestBatch)

    /// Adds the request to one target, without its credential, to the letter just begun, or says why it may not reach
    /// the wire and adds nothing.
    func add(_ target: Push.Target, to batch: inout RequestBatch) throws(LocalRejection)
}

extension PushWire {
    /// The request to one target alone.
    package func request(
        to target: Push.Target, from rendering: any PushRendering
    ) throws(LocalRejection) -> ProviderRequest {
        var batch = RequestBatch(path: path)
        rendering.begin(in: &batch)
        try rendering.add(target, to: &batch)
        return batch[0]
    }
}

/// What the consequence of an answer may depend on besides the answer.
package struct Sent: Sendable {
    package var target: Push.Target
    /// When the answer was read.
    package var now: Timestamp
    /// How old the credential was that the request carried.
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

    package init(path: String, headers: [ProviderHeader], body: [UInt8]) {
        self.path = path
        self.headers = headers
        self.body = body
    }

    /// The value of the header `name` (lower case).
    package subscript(name: String) -> String? { headers.first { $0.name == name }?.value }
}

package struct ProviderHeader: Hashable, Sendable {
    /// Lower case, as HTTP/2 has it.
    package var name: String
    package var value: String
    /// Whether HPACK must not put it into its table: secrets, and values that never come again.
    package var neverIndexed: Bool

    package init(_ name: String, _ value: String, neverIndexed: Bool = false) {
        self.name = name
        self.value = value
        self.neverIndexed = neverIndexed
    }
}

package struct ProviderResponse: Hashable, Sendable {
    package var status: Int
    package var headers: ProviderFields
    package var body: [UInt8]

    package init(status: Int, headers: ProviderFields, body: [UInt8]) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    package init(status: Int, headers: [String: String] = [:], body: [UInt8] = []) {
        self.init(status: status, headers: ProviderFields(headers), body: body)
    }

    /// The body as JSON; `nil` when it is something else, as proxies and resets make it.
    package var json: JSONValue? {
        // What is wrong with a body that is not JSON is of no interest: its status alone decides then.
        body.isEmpty ? nil : try? WireCoding.decode(JSONValue.self, from: body)
    }
}
