import Foundation

/// An item of the inbox.
public struct InboxItem: Decodable, Identifiable, Hashable, Sendable {
    /// The notification's id. A push carries it as the request identifier, unless the rule sets a collapse key.
    public let id: UUID
    /// When the notification was decided.
    public let at: Date
    /// When the user read it; nil if unread.
    public let readAt: Date?
    /// The rule's name.
    public let rule: String
    /// The notification's type in the rule file.
    public let type: String?
    /// The title, as in the push.
    public let title: String?
    /// The subtitle, as in the push.
    public let subtitle: String?
    /// The text, as in the push.
    public let body: String?
    /// The address of an image.
    public let image: String?
    /// The link to open.
    public let deepLink: String?
    /// The category of the notification's actions.
    public let category: String?
    /// The conversation or group that the item belongs to.
    public let thread: String?
    /// The app's own data.
    public let data: JSONValue

    enum CodingKeys: String, CodingKey {
        case id, at, rule, type, title, subtitle, body, image, category, thread, data
        case readAt = "read_at"
        case deepLink = "deep_link"
    }
}

/// A page of the inbox.
public struct InboxPage: Decodable, Sendable {
    /// The items, latest first.
    public let items: [InboxItem]
    /// The `before` of the next page; nil on the last page.
    public let next: String?
    /// The number of unread items in the whole inbox.
    public let unread: Int
}

/// The items to mark as read.
public enum InboxSelection: Sendable {
    /// At most 1,000 items.
    case ids([UUID])
    /// All items of a thread.
    case thread(String)
    /// An item and all earlier ones.
    case until(UUID)
    /// All items.
    case all

    var json: JSONValue {
        switch self {
        case .ids(let ids): ["ids": .array(ids.map { .string($0.uuidString.lowercased()) })]
        case .thread(let thread): ["thread": .string(thread)]
        case .until(let id): ["until": .string(id.uuidString.lowercased())]
        case .all: ["all": true]
        }
    }
}

extension HeliographClient {
    /// A page of the user's inbox, latest first.
    ///
    /// - Parameters:
    ///   - before: The `next` of the previous page.
    ///   - limit: From 1 to 200.
    ///   - unread: Whether to return unread items only.
    ///   - thread: Returns items of this thread only.
    public func inbox(
        before: String? = nil, limit: Int = 50, unread: Bool = false, thread: String? = nil
    ) async throws -> InboxPage {
        var query = [("limit", String(limit))]
        if let before { query.append(("before", before)) }
        if unread { query.append(("unread", "true")) }
        if let thread { query.append(("thread", thread)) }
        let url = configuration.rules.api("v1", "inbox", query: query)
        return try APIConnection.decode(InboxPage.self, from: await get(url))
    }

    /// The number of unread items.
    public func unreadCount() async throws -> Int {
        struct Count: Decodable { let unread: Int }
        let url = configuration.rules.api("v1", "inbox", "unread")
        return try APIConnection.decode(Count.self, from: await get(url)).unread
    }

    /// One item, such as that of an opened push. Throws `refused` with status 404 if the inbox does not have it.
    public func inboxItem(_ id: UUID) async throws -> InboxItem {
        try APIConnection.decode(InboxItem.self, from: await get(itemURL(id)))
    }

    /// Deletes an item.
    public func deleteInboxItem(_ id: UUID) async throws {
        _ = try await connection.send("DELETE", itemURL(id), attempts: configuration.attempts)
    }

    /// Marks items as read, on all devices of the user. Returns the number of items that were unread before, and the number
    /// of unread items left.
    @discardableResult public func markRead(_ selection: InboxSelection) async throws -> (marked: Int, unread: Int) {
        struct Marked: Decodable { let marked, unread: Int }
        let data = try await connection.send(
            "POST", configuration.rules.api("v1", "inbox", "read"), body: selection.json,
            attempts: configuration.attempts)
        let marked = try APIConnection.decode(Marked.self, from: data)
        return (marked.marked, marked.unread)
    }

    func get(_ url: URL) async throws -> Data {
        try await connection.send("GET", url, attempts: configuration.attempts)
    }

    private func itemURL(_ id: UUID) -> URL {
        configuration.rules.api("v1", "inbox", id.uuidString.lowercased())
    }
}
