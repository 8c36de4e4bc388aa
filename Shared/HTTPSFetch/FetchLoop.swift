internal import CCurl

/// Runs libcurl: one multi handle on one thread, which waits in `curl_multi_poll` for the network or a message.
struct FetchLoop: ~Copyable {
    private let mailbox: FetchMailbox
    private let multi: UnsafeMutableRawPointer?
    private var transfers: [UnsafeMutableRawPointer: Transfer] = [:]
    private var continuations: [Int: CheckedContinuation<FetchEngine.FetchResult, Never>] = [:]
    private var isStopped = false

    init(mailbox: FetchMailbox, connectionsPerHost: Int) {
        self.mailbox = mailbox
        _ = globalInitialization
        multi = curl_multi_init()
        if let multi {
            _ = shim_multi_setopt_long(multi, CURLMOPT_MAX_HOST_CONNECTIONS, connectionsPerHost)
            mailbox.setWakeable(FetchMailbox.MultiReference(pointer: multi))
        }
    }

    deinit {
        mailbox.setWakeable(nil)
        curl_multi_cleanup(multi)
    }

    consuming func run() {
        while !isStopped {
            for message in mailbox.take() { handle(message) }
            var running: Int32 = 0
            curl_multi_perform(multi, &running)
            finishTransfers()
            if !isStopped { curl_multi_poll(multi, nil, 0, 60_000, nil) }
        }
        for transfer in Array(transfers.values) { end(transfer, with: cancelled) }
    }

    private mutating func handle(_ message: FetchMailbox.Message) {
        switch message {
        case .start(let id, let specification, let continuation):
            do throws(FetchError) {
                let transfer = try Transfer(id: id, specification)
                transfers[transfer.handle] = transfer
                continuations[id] = continuation
                guard curl_multi_add_handle(multi, transfer.handle) == CURLM_OK else {
                    throw FetchError(
                        code: .broken, origin: specification.target.origin, detail: "libcurl rejected the request")
                }
            } catch {
                continuations[id] = nil
                continuation.resume(returning: .failure(error))
            }
        case .cancel(let id):
            guard let transfer = transfers.values.first(where: { $0.id == id }) else { return }
            end(transfer, with: cancelled)
        case .stop: isStopped = true
        }
    }

    private mutating func finishTransfers() {
        var left: Int32 = 0
        while let message = curl_multi_info_read(multi, &left) {
            guard message.pointee.msg == CURLMSG_DONE, let handle = message.pointee.easy_handle,
                let transfer = transfers[handle]
            else { continue }
            // The message becomes invalid when the handle is removed.
            end(transfer, with: transfer.outcome(shim_message_result(message)))
        }
    }

    private mutating func end(_ transfer: Transfer, with answer: FetchEngine.FetchResult) {
        curl_multi_remove_handle(multi, transfer.handle)
        transfers[transfer.handle] = nil
        continuations.removeValue(forKey: transfer.id)?.resume(returning: answer)
    }

    private var cancelled: FetchEngine.FetchResult {
        .failure(FetchError(code: .cancelled, origin: "request", detail: "the task was cancelled"))
    }
}

/// libcurl must be initialised once, before its first use.
private let globalInitialization: CURLcode = curl_global_init(Int(CURL_GLOBAL_DEFAULT))
