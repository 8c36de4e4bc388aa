@testable import HTTP2
import NIOCore

/// Sees whether a client, its core and everything the core holds have been freed.
struct Weak {
    private weak var client: HTTP2Client?
    private weak var inbox: ClientInbox?

    init(_ client: HTTP2Client) {
        self.client = client
        // Held by the client and its core, and the core by every connection: gone when all of them are.
        inbox = client.inbox
    }

    var isGone: Bool { client == nil && inbox == nil }
}
