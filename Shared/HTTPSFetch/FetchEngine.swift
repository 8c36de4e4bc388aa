internal import CCurl
internal import Foundation
internal import Synchronization

/// Hands requests to a thread of its own, on which all of libcurl happens, and ends that thread with itself.
final class FetchEngine: Sendable {
    typealias Answer = Result<FetchResponse, FetchError>

    private let mailbox: FetchMailbox

    init() {
        mailbox = FetchMailbox()
        let mailbox = mailbox
        let thread = Thread { FetchLoop(mailbox: mailbox).run() }
        thread.name = "https-fetch"
        thread.start()
    }

    deinit { mailbox.post(.stop) }

    func send(_ specification: TransferSpecification) async -> Answer {
        // Released before the answer, the engine would stop its thread.
        defer { withExtendedLifetime(self) {} }
        let id = mailbox.newID()
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                mailbox.post(.start(id, specification, continuation))
                // The flag is set before the cancellation handler runs: either it is seen here, or the handler's
                // message comes after ours.
                if Task.isCancelled { mailbox.post(.cancel(id)) }
            }
        } onCancel: {
            mailbox.post(.cancel(id))
        }
    }
}

/// What the loop is to do, left by any thread.
final class FetchMailbox: Sendable {
    enum Message: Sendable {
        case start(Int, TransferSpecification, CheckedContinuation<FetchEngine.Answer, Never>)
        case cancel(Int)
        case stop
    }

    private struct State {
        var messages: [Message] = []
        var idsMade = 0
        /// Set by the loop while it lives.
        var multi: MultiReference?
    }

    /// libcurl's multi handle as other threads may use it.
    ///
    /// `@unchecked Sendable`: (1) other threads pass it to `curl_multi_wakeup` only, the one function documented as safe
    /// from any thread; (2) they do so under the mailbox's lock, under which the loop takes it back before freeing it.
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
