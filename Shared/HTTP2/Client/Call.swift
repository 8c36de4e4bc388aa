import NIOCore

/// One request of a burst on its way to its answer. Touched on the event loop only; see `Burst`.
final class Call {
    enum Place {
        case waiting
        case open(ClientChannelHandler, stream: Int32)
        case finished
    }

    let burst: Burst
    let index: Int
    private(set) var answer: HTTP2Answer?
    /// Until when it may wait: for a stream, and later for its answer.
    private(set) var deadline: NIODeadline
    var place = Place.waiting
    var resends = 0

    /// The request's body on its present stream, and whether all of the request has left.
    private var body: [UInt8] = []
    private var sentBody = 0
    var isWritten = false
    private var status = 0
    private var fields: [UInt8] = []
    private var responseBody: [UInt8] = []
    var isAnswered = false
    private static let usualFields = 160

    init(_ burst: Burst, index: Int) {
        self.burst = burst
        self.index = index
        deadline = burst.deadline
    }

    var isFinished: Bool {
        if case .finished = place { true } else { false }
    }

    /// Whether the peer said that it has taken the request. The rest of the answer, should it get lost, changes nothing.
    var isTaken: Bool { (200..<300).contains(status) }

    /// The response as far as it has come.
    var response: HTTP2Response { HTTP2Response(status: status, fields: fields, body: responseBody) }

    /// Ends the call; later ends are ignored, so that an answer may race a deadline. A request that was taken is answered,
    /// although its deadline passes, or its stream is given up, before the answer is whole.
    func finish(_ answer: HTTP2Answer) {
        guard !isFinished else { return }
        place = .finished
        let final: HTTP2Answer = if isTaken, case .failure = answer { .success(response) } else { answer }
        self.answer = final
        burst.finished(with: final)
    }

    /// It has a stream. The first one begins the wait for the answer, so that sending again does not go on for ever.
    func gotStream(now: NIODeadline) {
        if resends == 0 { deadline = now + burst.patience }
    }

    /// Begins on a stream; false when it has no body.
    func begin() -> Bool {
        body = burst.requests.body(index)
        sentBody = 0
        return !body.isEmpty
    }

    /// Forgets the stream it was on, to be sent again on another.
    func returnToQueue() {
        place = .waiting
        resends += 1
        isWritten = false
        isAnswered = false
        status = 0
        fields.removeAll()
        responseBody.removeAll()
    }

    // MARK: The body on its way out

    func bodyOffer(maximum: Int) -> OutgoingBody.Offer {
        let rest = body.count - sentBody
        return .bytes(min(maximum, rest), last: rest <= maximum)
    }

    /// Hands out the next `count` bytes.
    func takeBody(_ count: Int, _ write: (UnsafeRawBufferPointer) -> Void) {
        body.withUnsafeBytes { write(UnsafeRawBufferPointer(rebasing: $0[sentBody..<sentBody + count])) }
        sentBody += count
    }

    // MARK: The response on its way in

    func received(name: UnsafeBufferPointer<UInt8>, value: UnsafeBufferPointer<UInt8>) {
        // `:status` is a response's only pseudo-header (RFC 9113 §8.3.2), and a second one follows a 1xx.
        if name.first == UInt8(ascii: ":") {
            status = value.reduce(0) { $0 * 10 + Int($1 & 0xF) }
            fields.removeAll(keepingCapacity: true)
        } else {
            // For those of an acceptance, at once.
            if fields.isEmpty { fields.reserveCapacity(Self.usualFields) }
            fields.append(contentsOf: name)
            fields.append(0)
            fields.append(contentsOf: value)
            fields.append(0)
        }
    }

    /// Forgets the body: a piece of one may read as something else.
    func dropBody() { responseBody = [] }

    /// Keeps a piece of the response's body unless it would become longer than `maximum`.
    func received(_ bytes: UnsafeRawBufferPointer, maximum: Int) -> Bool {
        guard responseBody.count + bytes.count <= maximum else { return false }
        responseBody.append(contentsOf: bytes)
        return true
    }
}
