import NIOCore

@testable import HTTP2

/// Checks that a client, its core and all of its connections were freed.
struct ReleaseProbe {
    private weak var client: HTTP2Client?
    private weak var inbox: ClientInbox?

    init(_ client: HTTP2Client) {
        self.client = client
        // Retained by the client and its core, which every connection retains: freed once all of them are.
        inbox = client.inbox
    }

    var isGone: Bool { client == nil && inbox == nil }
}
