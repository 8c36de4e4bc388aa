internal import CNGHTTP2
import NIOCore

/// One nghttp2 session: bytes in, events and frames out. It opens no socket and knows no time.
///
/// Not thread-safe: made, used and dropped on its connection's event loop. Nothing may call `receive` or `drain` from
/// inside a `SessionEvents` method; submitting there is fine.
final class Session {
    private let handle: SessionHandle
    private let relay: SessionRelay
    private var arena = HeaderArena()
    /// As much as the last flush needed, so that a steady load allocates once a flush.
    private var expectedOutput = Session.smallestOutput
    private static let smallestOutput = 512

    /// Makes a session whose receiver must outlive it, which holds when the receiver owns it.
    init(role: SessionRole, events: any SessionEvents) throws(SessionError) {
        relay = SessionRelay(events: events)
        handle = try SessionHandle(role: role, relay: relay)
    }

    // MARK: Bytes

    /// Feeds what the socket gave; `bytes` is read in place.
    func receive(_ bytes: UnsafeRawBufferPointer) throws(SessionError) {
        let count = nghttp2_session_mem_recv(
            handle.pointer, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count)
        if count < 0 { throw SessionError(CInt(count)) }
    }

    /// Frames what was submitted, until the piece is full, into one buffer; nil when there is nothing to send.
    func drain() throws(SessionError) -> ByteBuffer? {
        guard nghttp2_session_want_write(handle.pointer) != 0 else { return nil }
        relay.output.reserveCapacity(expectedOutput)
        while !relay.isPieceFull {
            var chunk: UnsafePointer<UInt8>?
            let count = nghttp2_session_mem_send(handle.pointer, &chunk)
            if count < 0 { throw SessionError(CInt(count)) }
            if count == 0 {
                if relay.unsentHeaders == 0 { arena.reset() }
                break
            }
            relay.output.writeBytes(UnsafeRawBufferPointer(start: chunk, count: count))
        }
        guard relay.output.readableBytes > 0 else { return nil }
        // A fresh buffer each time: the channel owns this one until it is on the wire.
        let output = relay.output
        relay.output = ByteBuffer()
        expectedOutput = max(Self.smallestOutput, min(output.readableBytes, SessionRelay.fullPiece))
        return output
    }

    /// Neither side has anything left to say: the connection should be closed.
    var isFinished: Bool {
        nghttp2_session_want_read(handle.pointer) == 0 && nghttp2_session_want_write(handle.pointer) == 0
    }

    // MARK: Messages

    /// Opens a stream with `header` and a body taken through `bodyOffer`, if there is one. Refuses fields that no peer
    /// would take, with `isInvalidRequest`.
    func submitRequest(hasBody: Bool, header: (inout HeaderArena) -> Void) throws(SessionError) -> Int32 {
        let pointer = handle.pointer
        arena.begin()
        header(&arena)
        if arena.isInvalid { throw SessionError(CInt(NGHTTP2_ERR_INVALID_ARGUMENT.rawValue)) }
        var provider = nghttp2_data_provider(source: nghttp2_data_source(), read_callback: readBody)
        let stream = arena.fields.withUnsafeBufferPointer { fields in
            withUnsafePointer(to: &provider) {
                nghttp2_submit_request(pointer, nil, fields.baseAddress, fields.count, hasBody ? $0 : nil, nil)
            }
        }
        if stream < 0 { throw SessionError(stream) }
        relay.unsentHeaders += 1
        return stream
    }

    /// Answers a stream with `header` and a body taken through `bodyOffer`, if there is one.
    func submitResponse(
        stream: Int32, hasBody: Bool, header: (inout HeaderArena) -> Void
    ) throws(SessionError) {
        let pointer = handle.pointer
        arena.begin()
        header(&arena)
        var provider = nghttp2_data_provider(source: nghttp2_data_source(), read_callback: readBody)
        let status = arena.fields.withUnsafeBufferPointer { fields in
            withUnsafePointer(to: &provider) {
                nghttp2_submit_response(pointer, stream, fields.baseAddress, fields.count, hasBody ? $0 : nil)
            }
        }
        if status != 0 { throw SessionError(status) }
        relay.unsentHeaders += 1
    }

    /// Takes up a body whose last offer was `.later`. A stream that is gone by now is no error.
    func resumeBody(stream: Int32) {
        _ = nghttp2_session_resume_data(handle.pointer, stream)
    }

    // MARK: Control frames

    func submitReset(stream: Int32, code: HTTP2ErrorCode) throws(SessionError) {
        try check(
            nghttp2_submit_rst_stream(handle.pointer, UInt8(NGHTTP2_FLAG_NONE.rawValue), stream, code.rawValue))
    }

    func submitPing() throws(SessionError) {
        try check(nghttp2_submit_ping(handle.pointer, UInt8(NGHTTP2_FLAG_NONE.rawValue), nil))
    }

    /// nghttp2 never lets `lastStream` grow from one GOAWAY to the next, and closes our peer's streams above it.
    func submitGoAway(lastStream: Int32, code: HTTP2ErrorCode, debugData: [UInt8]) throws(SessionError) {
        try check(
            nghttp2_submit_goaway(
                handle.pointer, UInt8(NGHTTP2_FLAG_NONE.rawValue), lastStream, code.rawValue, debugData,
                debugData.count))
    }

    func submitSettings(_ settings: [SessionSetting]) throws(SessionError) {
        let entries = settings.map(\.entry)
        try check(
            nghttp2_submit_settings(
                handle.pointer, UInt8(NGHTTP2_FLAG_NONE.rawValue), entries, entries.count))
    }

    /// Widens the connection's own receive window, which SETTINGS cannot do.
    func widenConnectionWindow(to size: Int32) throws(SessionError) {
        try check(
            nghttp2_session_set_local_window_size(
                handle.pointer, UInt8(NGHTTP2_FLAG_NONE.rawValue), 0, size))
    }

    // MARK: What the session knows

    /// The peer's SETTINGS_MAX_CONCURRENT_STREAMS, as large as Int32 allows when it set none.
    var peerMaximumStreams: Int {
        let value = nghttp2_session_get_remote_settings(handle.pointer, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS)
        return Int(min(value, UInt32(Int32.max)))
    }

    /// The highest stream the peer opened and we took up.
    var lastPeerStream: Int32 { nghttp2_session_get_last_proc_stream_id(handle.pointer) }

    /// The id the next stream of ours would get; above `Int32.max` when there are none left.
    var nextStream: UInt32 {
        get { nghttp2_session_get_next_stream_id(handle.pointer) }
        set { _ = nghttp2_session_set_next_stream_id(handle.pointer, Int32(clamping: newValue)) }
    }

    /// Bytes the header arena holds; bounded by the headers in flight, not by the requests made.
    var headerArenaCapacity: Int { arena.capacity }

    private func check(_ status: CInt) throws(SessionError) {
        if status != 0 { throw SessionError(status) }
    }
}

/// One entry of a SETTINGS frame of ours.
enum SessionSetting {
    case pushDisabled
    case maximumConcurrentStreams(UInt32)
    case initialWindowSize(UInt32)
    case headerTableSize(UInt32)
    case maximumHeaderListSize(UInt32)

    fileprivate var entry: nghttp2_settings_entry {
        switch self {
        case .pushDisabled: entry(NGHTTP2_SETTINGS_ENABLE_PUSH, 0)
        case .maximumConcurrentStreams(let value): entry(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, value)
        case .initialWindowSize(let value): entry(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, value)
        case .headerTableSize(let value): entry(NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, value)
        case .maximumHeaderListSize(let value): entry(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, value)
        }
    }

    private func entry(_ id: nghttp2_settings_id, _ value: UInt32) -> nghttp2_settings_entry {
        nghttp2_settings_entry(settings_id: Int32(id.rawValue), value: value)
    }
}
