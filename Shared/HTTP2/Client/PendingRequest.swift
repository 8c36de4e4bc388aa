import NIOCore

/// One request of a group until it has its result. Confined to the event loop; see `RequestGroup`.
final class PendingRequest {
    enum State {
        case waiting
        case open(ClientChannelHandler, stream: Int32)
        case finished
    }

    let group: RequestGroup
    let index: Int
    private(set) var result: HTTP2Result?
    /// The deadline for a stream, and after `streamAssigned` for the response.
    private(set) var deadline: NIODeadline
    /// When the request got its current stream.
    private var streamAssignedAt = NIODeadline.uptimeNanoseconds(0)
    var state = State.waiting
    var resends = 0

    /// The request body on the current stream.
    private var body: [UInt8] = []
    private var sentBody = 0
    /// Whether END_STREAM has been written.
    var isWritten = false
    private var status = 0
    private var fields: [UInt8] = []
    private var responseBody: [UInt8] = []
    var isResponseComplete = false
    /// Bytes of the header fields in a typical 200 response of APNs or FCM.
    private static let typicalFieldBytes = 160

    init(_ group: RequestGroup, index: Int) {
        self.group = group
        self.index = index
        deadline = group.deadline
    }

    var isFinished: Bool {
        if case .finished = state { true } else { false }
    }

    /// Whether a 2xx status has arrived. The request then counts as answered even if the rest of the response is lost.
    var isAccepted: Bool { (200..<300).contains(status) }

    /// The response as received so far.
    var response: HTTP2Response { response(elapsed: nil) }

    /// The response, whose end was read at `time`.
    func response(readAt time: NIODeadline) -> HTTP2Response {
        response(elapsed: .nanoseconds(max(0, (time - streamAssignedAt).nanoseconds)))
    }

    private func response(elapsed: Duration?) -> HTTP2Response {
        HTTP2Response(status: status, fields: fields, body: responseBody, elapsed: elapsed)
    }

    /// Ends the request; later calls are ignored, so a response may race a deadline. An accepted request ends with its
    /// response even if the deadline passes or the stream is reset before the response is complete.
    func finish(_ result: HTTP2Result) {
        guard !isFinished else { return }
        state = .finished
        let final: HTTP2Result = if isAccepted, case .failure = result { .success(response) } else { result }
        self.result = final
        group.memberFinished(final)
    }

    /// Starts the response deadline at the first stream. Resends do not extend it.
    func streamAssigned(now: NIODeadline) {
        streamAssignedAt = now
        if resends == 0 { deadline = now + group.timeout }
    }

    /// Fetches the body for a new stream; returns whether there is one.
    func prepareBody() -> Bool {
        body = group.requests.body(index)
        sentBody = 0
        return !body.isEmpty
    }

    /// Clears the state of the last stream before the request is sent again.
    func resetForResend() {
        state = .waiting
        resends += 1
        isWritten = false
        isResponseComplete = false
        status = 0
        fields.removeAll()
        responseBody.removeAll()
    }

    // MARK: Request body

    func bodyOffer(maximum: Int) -> OutgoingBody.Offer {
        let rest = body.count - sentBody
        return .bytes(min(maximum, rest), last: rest <= maximum)
    }

    /// Passes the next `count` bytes to `write`.
    func takeBody(_ count: Int, _ write: (UnsafeRawBufferPointer) -> Void) {
        body.withUnsafeBytes { write(UnsafeRawBufferPointer(rebasing: $0[sentBody..<sentBody + count])) }
        sentBody += count
    }

    // MARK: Response

    func received(name: UnsafeBufferPointer<UInt8>, value: UnsafeBufferPointer<UInt8>) {
        // `:status` is a response's only pseudo-header (RFC 9113 §8.3.2), and a second one follows a 1xx.
        if name.first == UInt8(ascii: ":") {
            status = value.reduce(0) { $0 * 10 + Int($1 & 0xF) }
            fields.removeAll(keepingCapacity: true)
        } else {
            if fields.isEmpty { fields.reserveCapacity(Self.typicalFieldBytes) }
            fields.append(contentsOf: name)
            fields.append(0)
            fields.append(contentsOf: value)
            fields.append(0)
        }
    }

    /// Drops the body: part of a body may parse as something else.
    func dropBody() { responseBody = [] }

    /// Appends body bytes; returns false, without appending, if the body would exceed `maximum`.
    func received(_ bytes: UnsafeRawBufferPointer, maximum: Int) -> Bool {
        guard responseBody.count + bytes.count <= maximum else { return false }
        responseBody.append(contentsOf: bytes)
        return true
    }
}
