import NIOCore

/// One request on its way from `execute` to its answer.
///
/// `@unchecked Sendable` because its parts are never shared: the continuation is set by the calling task before it
/// puts the call into the inbox (a lock), and is the event loop's from then on; everything else that changes is
/// only ever touched on the event loop. The cancellation handler passes the call to the event loop unread.
final class Call: @unchecked Sendable {
    typealias Outcome = Result<HTTP2Response, HTTP2Error>

    enum Place {
        /// Made, and not yet taken out of the inbox.
        case submitted
        /// Cancelled before it was taken out of the inbox; it ends when it is.
        case cancelled
        case waiting
        case open(ClientChannelHandler, stream: Int32)
        case finished
    }

    let request: HTTP2Request
    let deadline: NIODeadline
    /// Unchecked: this class is the check, since `finish` takes it out before it resumes.
    private var continuation: UnsafeContinuation<Outcome, Never>?
    var place = Place.submitted
    var resends = 0

    /// The request's body on its present stream, and whether all of the request has left.
    var body: OutgoingBody
    var isWritten = false
    private(set) var status = 0
    private var headers: [HTTP2Header] = []
    private var responseBody: [UInt8] = []
    var isAnswered = false

    init(request: HTTP2Request, deadline: NIODeadline) {
        self.request = request
        self.deadline = deadline
        body = OutgoingBody(request.body, isComplete: true)
    }

    /// Called once, by the task that made the call, before anyone else has it.
    func begin(_ continuation: UnsafeContinuation<Outcome, Never>) {
        self.continuation = continuation
    }

    var isFinished: Bool {
        if case .finished = place { true } else { false }
    }

    /// The response as far as it has come.
    var response: HTTP2Response {
        HTTP2Response(status: status, headers: HTTP2Headers(headers), body: responseBody)
    }

    /// Ends the call; later ends are ignored, so that an answer may race a deadline.
    func finish(_ outcome: Outcome) {
        place = .finished
        guard let continuation else { return }
        self.continuation = nil
        continuation.resume(returning: outcome)
    }

    /// Forgets the stream it was on, to be sent again on another.
    func returnToQueue() {
        place = .waiting
        resends += 1
        isWritten = false
        isAnswered = false
        body.rewind()
        status = 0
        headers.removeAll()
        responseBody.removeAll()
    }

    func received(
        name: UnsafeBufferPointer<UInt8>, value: UnsafeBufferPointer<UInt8>, neverIndexed: Bool
    ) {
        // `:status` is a response's only pseudo-header (RFC 9113 §8.3.2), and a second one follows a 1xx.
        if name.first == UInt8(ascii: ":") {
            status = value.reduce(0) { $0 * 10 + Int($1 & 0xF) }
            headers.removeAll()
            headers.reserveCapacity(4)
        } else {
            headers.append(
                HTTP2Header(
                    name: String(decoding: name, as: UTF8.self), value: String(decoding: value, as: UTF8.self),
                    neverIndexed: neverIndexed))
        }
    }

    /// Keeps a piece of the response's body unless it would become longer than `maximum`.
    func received(_ bytes: UnsafeRawBufferPointer, maximum: Int) -> Bool {
        guard responseBody.count + bytes.count <= maximum else { return false }
        responseBody.append(contentsOf: bytes)
        return true
    }
}
