internal import CNGHTTP2
import NIOCore

/// Receives nghttp2's C callbacks and calls `SessionEvents`.
///
/// All callbacks run synchronously inside `nghttp2_session_mem_recv` and `nghttp2_session_mem_send`, on the event
/// loop of the connection. The session holds this object unretained; `Session` owns both.
final class SessionRelay {
    /// Unowned, because the connection owns the session and outlives its calls. Unsafe (unchecked), because this is the
    /// hot path of every callback.
    unowned(unsafe) let events: any SessionEvents
    /// Frames not yet drained; DATA payloads are written here directly.
    var output = ByteBuffer()
    /// The output size, in bytes, after which a piece ends with the current frame. Each connection's TLS handler keeps
    /// a buffer as large as its largest write; a piece with its TLS overhead fits into 64 KiB.
    static let fullPiece = 48 * 1024
    var isPieceFull: Bool { output.writerIndex >= Self.fullPiece }
    /// Submitted HEADERS frames that nghttp2 has not sent yet; the arena must not be reset before.
    var unsentHeaders = 0

    init(events: any SessionEvents) {
        self.events = events
    }

    static func install(on callbacks: OpaquePointer) {
        nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, onBeginHeaders)
        nghttp2_session_callbacks_set_on_header_callback(callbacks, onHeader)
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, onDataChunk)
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, onFrameReceived)
        nghttp2_session_callbacks_set_before_frame_send_callback(callbacks, beforeFrameSend)
        nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, onFrameSent)
        nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, onFrameNotSent)
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, onStreamClose)
        nghttp2_session_callbacks_set_send_data_callback(callbacks, sendData)
    }

    fileprivate static func from(_ context: UnsafeMutableRawPointer?) -> SessionRelay {
        Unmanaged<SessionRelay>.fromOpaque(context!).takeUnretainedValue()
    }

    fileprivate func frameReceived(_ frame: nghttp2_frame) {
        switch UInt32(frame.hd.type) {
        case NGHTTP2_HEADERS.rawValue, NGHTTP2_DATA.rawValue:
            if frame.hd.endsStream { events.endStreamReceived(stream: frame.hd.stream_id) }
        case NGHTTP2_SETTINGS.rawValue:
            if !frame.hd.isAcknowledgement { events.settingsReceived() }
        case NGHTTP2_PING.rawValue:
            events.pingReceived(acknowledgement: frame.hd.isAcknowledgement)
        case NGHTTP2_GOAWAY.rawValue:
            events.goAwayReceived(HTTP2GoAwayNotice(frame.goaway))
        default:
            break
        }
    }
}

extension HTTP2GoAwayNotice {
    private static let longestDebugText = 1024

    fileprivate init(_ frame: nghttp2_goaway) {
        let bytes = UnsafeBufferPointer(start: frame.opaque_data, count: frame.opaque_data_len)
        self.init(
            lastStream: frame.last_stream_id, code: HTTP2ErrorCode(rawValue: frame.error_code),
            debugText: String(decoding: bytes.prefix(Self.longestDebugText), as: UTF8.self))
    }
}

extension nghttp2_frame_hd {
    fileprivate var endsStream: Bool { UInt32(flags) & NGHTTP2_FLAG_END_STREAM.rawValue != 0 }
    fileprivate var isAcknowledgement: Bool { UInt32(flags) & NGHTTP2_FLAG_ACK.rawValue != 0 }
    fileprivate var isHeaders: Bool { UInt32(type) == NGHTTP2_HEADERS.rawValue }
}

// MARK: - C callbacks. They must not throw, suspend, or keep a pointer beyond the call

private func onBeginHeaders(
    _: OpaquePointer?, frame: UnsafePointer<nghttp2_frame>?, context: UnsafeMutableRawPointer?
) -> CInt {
    SessionRelay.from(context).events.headersBegan(stream: frame!.pointee.hd.stream_id)
    return 0
}

private func onHeader(
    _: OpaquePointer?, frame: UnsafePointer<nghttp2_frame>?, name: UnsafePointer<UInt8>?, nameCount: Int,
    value: UnsafePointer<UInt8>?, valueCount: Int, flags: UInt8, context: UnsafeMutableRawPointer?
) -> CInt {
    SessionRelay.from(context).events.headerReceived(
        stream: frame!.pointee.hd.stream_id, name: UnsafeBufferPointer(start: name, count: nameCount),
        value: UnsafeBufferPointer(start: value, count: valueCount),
        neverIndexed: UInt32(flags) & NGHTTP2_NV_FLAG_NO_INDEX.rawValue != 0)
    return 0
}

private func onDataChunk(
    _: OpaquePointer?, _: UInt8, stream: Int32, bytes: UnsafePointer<UInt8>?, count: Int,
    context: UnsafeMutableRawPointer?
) -> CInt {
    SessionRelay.from(context).events.dataReceived(
        stream: stream, bytes: UnsafeRawBufferPointer(start: bytes, count: count))
    return 0
}

private func onFrameReceived(
    _: OpaquePointer?, frame: UnsafePointer<nghttp2_frame>?, context: UnsafeMutableRawPointer?
) -> CInt {
    SessionRelay.from(context).frameReceived(frame!.pointee)
    return 0
}

private func beforeFrameSend(
    _: OpaquePointer?, frame: UnsafePointer<nghttp2_frame>?, context: UnsafeMutableRawPointer?
) -> CInt {
    let header = frame!.pointee.hd
    // nghttp2 calls on_frame_send only in the next drain. If the connection is lost in between, the request must
    // already count as written.
    if header.isHeaders && header.endsStream {
        SessionRelay.from(context).events.endStreamSending(stream: header.stream_id)
    }
    return 0
}

private func onFrameSent(
    _: OpaquePointer?, frame: UnsafePointer<nghttp2_frame>?, context: UnsafeMutableRawPointer?
) -> CInt {
    if frame!.pointee.hd.isHeaders { SessionRelay.from(context).unsentHeaders -= 1 }
    return 0
}

private func onFrameNotSent(
    _: OpaquePointer?, frame: UnsafePointer<nghttp2_frame>?, _: CInt, context: UnsafeMutableRawPointer?
) -> CInt {
    let header = frame!.pointee.hd
    if header.isHeaders {
        let relay = SessionRelay.from(context)
        relay.unsentHeaders -= 1
        relay.events.headersNotSent(stream: header.stream_id)
    }
    return 0
}

private func onStreamClose(
    _: OpaquePointer?, stream: Int32, code: UInt32, context: UnsafeMutableRawPointer?
) -> CInt {
    SessionRelay.from(context).events.streamClosed(stream: stream, code: HTTP2ErrorCode(rawValue: code))
    return 0
}

/// `NGHTTP2_DATA_FLAG_NO_COPY`: the payload goes from the body straight into the output.
private func sendData(
    _: OpaquePointer?, frame: UnsafeMutablePointer<nghttp2_frame>?, frameHeader: UnsafePointer<UInt8>?, count: Int,
    _: UnsafeMutablePointer<nghttp2_data_source>?, context: UnsafeMutableRawPointer?
) -> CInt {
    let relay = SessionRelay.from(context)
    let header = frame!.pointee.hd
    relay.output.writeBytes(UnsafeRawBufferPointer(start: frameHeader, count: 9))
    relay.events.writeBody(stream: header.stream_id, count: count, into: &relay.output)
    if header.endsStream { relay.events.endStreamSending(stream: header.stream_id) }
    // Without a pause nghttp2 would frame all pending bodies in one call.
    return relay.isPieceFull ? NGHTTP2_ERR_PAUSE.rawValue : 0
}

/// nghttp2's data source of messages with a body.
func readBody(
    _: OpaquePointer?, stream: Int32, _: UnsafeMutablePointer<UInt8>?, maximum: Int,
    flags: UnsafeMutablePointer<UInt32>?, _: UnsafeMutablePointer<nghttp2_data_source>?,
    context: UnsafeMutableRawPointer?
) -> Int {
    switch SessionRelay.from(context).events.bodyOffer(stream: stream, maximum: maximum) {
    case .later:
        return Int(NGHTTP2_ERR_DEFERRED.rawValue)
    case .bytes(let count, let last):
        flags!.pointee |= NGHTTP2_DATA_FLAG_NO_COPY.rawValue
        if last { flags!.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue }
        return count
    }
}
