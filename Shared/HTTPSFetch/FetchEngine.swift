internal import CCurl
internal import Foundation
internal import Synchronization

/// Passes requests to a thread that runs libcurl. The thread ends with the engine.
final class FetchEngine: Sendable {
    typealias FetchResult = Result<FetchResponse, FetchError>

    private let mailbox: FetchMailbox

    /// - Parameter connectionsPerHost: 0 for no limit.
    init(connectionsPerHost: Int) {
        mailbox = FetchMailbox()
        let mailbox = mailbox
        let thread = Thread { FetchLoop(mailbox: mailbox, connectionsPerHost: connectionsPerHost).run() }
        thread.name = "https-fetch"
        thread.start()
    }

    deinit { mailbox.post(.stop) }

    func send(_ specification: TransferSpecification) async -> FetchResult {
        // The engine stops its thread when released, so it must live until the response.
        defer { withExtendedLifetime(self) {} }
        let id = mailbox.newID()
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                mailbox.post(.start(id, specification, continuation))
                // `isCancelled` is set before the handler runs: either it is seen here, or the handler's message is
                // posted after `start`.
                if Task.isCancelled { mailbox.post(.cancel(id)) }
            }
        } onCancel: {
            mailbox.post(.cancel(id))
        }
    }
}

/// Messages to the loop, posted from any thread.
final class FetchMailbox: Sendable {
    enum Message: Sendable {
        case start(Int, TransferSpecification, CheckedContinuation<FetchEngine.FetchResult, Never>)
        case cancel(Int)
        case stop
    }

    private struct State {
        var messages: [Message] = []
        var idsMade = 0
        /// Set by the loop while it runs.
        var multi: MultiReference?
    }

    /// libcurl's multi handle for other threads.
    ///
    /// `@unchecked Sendable`: (1) other threads pass it to `curl_multi_wakeup` only, which is documented as
    /// thread-safe; (2) they do so under the mailbox's lock, under which the loop removes it before freeing it.
    struct MultiReference: @unchecked Sendable {
        let pointer: UnsafeMutableRawPointer
    }

    private let state = Mutex(State())

    func newID() -> Int {
        state.withLock { state in
            state.idsMade += 1
            return state.idsMade
        }
    }

    func post(_ message: Message) {
        state.withLock { state in
            state.messages.append(message)
            if let multi = state.multi { curl_multi_wakeup(multi.pointer) }
        }
    }

    func take() -> [Message] {
        state.withLock { state in
            defer { state.messages = [] }
            return state.messages
        }
    }

    func setWakeable(_ multi: MultiReference?) { state.withLock { $0.multi = multi } }
}
