package import NIOCore
internal import CNGHTTP2

/// An nghttp2 session: takes received bytes, produces events and frames. It has no socket and no clock.
///
/// Confined to its connection's event loop. `SessionEvents` methods may submit frames but must not call `receive` or
/// `drain`.
package final class Session {
    private let handle: SessionHandle
    private let relay: SessionRelay
    private var arena = HeaderArena()
    /// The size of the last output, so that each `drain` allocates once.
    private var expectedOutput = Session.smallestOutput
    private static let smallestOutput = 512

    /// Creates a session. `events` must outlive it; the caller ensures this by owning the session.
    package init(role: SessionRole, events: any SessionEvents) throws(SessionError) {
        relay = SessionRelay(events: events)
        handle = try SessionHandle(role: role, relay: relay)
    }

    // MARK: Bytes

    /// Processes bytes received from the socket, in place.
    package func receive(_ bytes: UnsafeRawBufferPointer) throws(SessionError) {
        let count = nghttp2_session_mem_recv(
            handle.pointer, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count)
        if count < 0 { throw SessionError(CInt(count)) }
    }

    /// Returns submitted frames in one buffer, up to about `SessionRelay.fullPiece`; nil when there are none.
    package func drain() throws(SessionError) -> ByteBuffer? {
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
        // The channel keeps this buffer until it is written, so the next output needs a new one.
        let output = relay.output
        relay.output = ByteBuffer()
        expectedOutput = max(Self.smallestOutput, min(output.readableBytes, SessionRelay.fullPiece))
        return output
    }

    /// Whether neither side has frames left: the connection should be closed.
    package var isFinished: Bool {
        nghttp2_session_want_read(handle.pointer) == 0 && nghttp2_session_want_write(handle.pointer) == 0
    }

    // MARK: Messages

    /// Opens a stream; a body is read through `bodyOffer`. Throws an `isInvalidRequest` error for a malformed field.
    package func submitRequest(hasBody: Bool, header: (inout HeaderArena) -> Void) throws(SessionError) -> Int32 {
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

    /// Sends a response; a body is read through `bodyOffer`.
    package func submitResponse(
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

    /// Resumes a body whose last offer was `.later`. A closed stream is no error.
    package func resumeBody(stream: Int32) {
        _ = nghttp2_session_resume_data(handle.pointer, stream)
    }

    // MARK: Control frames

    package func submitReset(stream: Int32, code: HTTP2ErrorCode) throws(SessionError) {
        try check(
            nghttp2_submit_rst_stream(handle.pointer, UInt8(NGHTTP2_FLAG_NONE.rawValue), stream, code.rawValue))
    }

    package func submitPing() throws(SessionError) {
        try check(nghttp2_submit_ping(handle.pointer, UInt8(NGHTTP2_FLAG_NONE.rawValue), nil))
    }

    /// Sends GOAWAY. nghttp2 never raises `lastStream` between two GOAWAYs and closes the peer's streams above it.
    package func submitGoAway(lastStream: Int32, code: HTTP2ErrorCode, debugData: [UInt8]) throws(SessionError) {
        try check(
            nghttp2_submit_goaway(
                handle.pointer, UInt8(NGHTTP2_FLAG_NONE.rawValue), lastStream, code.rawValue, debugData,
                debugData.count))
    }

    package func submitSettings(_ settings: [SessionSetting]) throws(SessionError) {
        let entries = settings.map(\.entry)
        try check(
            nghttp2_submit_settings(
                handle.pointer, UInt8(NGHTTP2_FLAG_NONE.rawValue), entries, entries.count))
    }

    /// Widens the connection's own receive window, which SETTINGS cannot do.
    package func widenConnectionWindow(to size: Int32) throws(SessionError) {
        try check(
            nghttp2_session_set_local_window_size(
                handle.pointer, UInt8(NGHTTP2_FLAG_NONE.rawValue), 0, size))
    }

    // MARK: State

    /// The peer's SETTINGS_MAX_CONCURRENT_STREAMS; `Int32.max` when it sent none.
    package var peerMaximumStreams: Int {
        let value = nghttp2_session_get_remote_settings(handle.pointer, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS)
        return Int(min(value, UInt32(Int32.max)))
    }

    /// The peer's highest stream that the session processed.
    package var lastPeerStream: Int32 { nghttp2_session_get_last_proc_stream_id(handle.pointer) }

    /// The id of our next stream; above `Int32.max` once all are used.
    package var nextStream: UInt32 {
        get { nghttp2_session_get_next_stream_id(handle.pointer) }
        set { _ = nghttp2_session_set_next_stream_id(handle.pointer, Int32(clamping: newValue)) }
    }

    /// The header arena's size in bytes, bounded by the headers in flight.
    var headerArenaCapacity: Int { arena.capacity }

    private func check(_ status: CInt) throws(SessionError) {
        if status != 0 { throw SessionError(status) }
    }
}

/// One entry of a SETTINGS frame to send.
package enum SessionSetting {
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
