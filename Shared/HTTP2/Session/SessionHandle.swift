internal import CNGHTTP2

package enum SessionRole {
    case client
    case server
}

/// The sole owner of an `nghttp2_session`, which it frees. The session holds an unretained pointer to its relay, so the
/// owner of the handle must also own the relay.
struct SessionHandle: ~Copyable {
    let pointer: OpaquePointer

    init(role: SessionRole, relay: SessionRelay) throws(SessionError) {
        let callbacks = try Callbacks()
        let options = try Options()
        let context = Unmanaged.passUnretained(relay).toOpaque()
        var created: OpaquePointer?
        let status =
            switch role {
            case .client: nghttp2_session_client_new2(&created, callbacks.pointer, context, options.pointer)
            case .server: nghttp2_session_server_new2(&created, callbacks.pointer, context, options.pointer)
            }
        guard status == 0, let created else { throw SessionError(status) }
        pointer = created
    }

    deinit {
        nghttp2_session_del(pointer)
    }
}

/// An nghttp2 error code.
package struct SessionError: Error {
    let status: CInt

    init(_ status: CInt) {
        self.status = status
    }

    /// Whether the message was invalid; the session remains usable.
    package var isInvalidRequest: Bool { status == NGHTTP2_ERR_INVALID_ARGUMENT.rawValue }

    package var text: String { String(cString: nghttp2_strerror(status)) }
}

/// nghttp2's callback table; sessions copy it on creation.
private struct Callbacks: ~Copyable {
    let pointer: OpaquePointer

    init() throws(SessionError) {
        var created: OpaquePointer?
        let status = nghttp2_session_callbacks_new(&created)
        guard status == 0, let created else { throw SessionError(status) }
        pointer = created
        SessionRelay.install(on: created)
    }

    deinit {
        nghttp2_session_callbacks_del(pointer)
    }
}

private struct Options: ~Copyable {
    let pointer: OpaquePointer

    init() throws(SessionError) {
        var created: OpaquePointer?
        let status = nghttp2_option_new(&created)
        guard status == 0, let created else { throw SessionError(status) }
        pointer = created
        // nghttp2 keeps closed streams only for the priority tree, which is not used here.
        nghttp2_option_set_no_closed_streams(created, 1)
    }

    deinit {
        nghttp2_option_del(pointer)
    }
}
