import Foundation

extension HeliographClient {
    /// Reports that the user opened a notification. This also marks it as read.
    ///
    /// Without a connection, the receipt is stored and sent with the next one or at the next sign-in.
    public func opened(_ notification: UUID) async { await receiptOutbox.add(notification, "opened") }

    /// Reports that the user dismissed a notification.
    public func dismissed(_ notification: UUID) async { await receiptOutbox.add(notification, "dismissed") }
}

/// Stores receipts until the server has them.
actor ReceiptOutbox {
    private struct Receipt: Codable, Hashable {
        var id: String
        var what: String
    }

    /// The maximum number of receipts of a request, and of stored receipts. The oldest are deleted.
    static let maximum = 500
    private static let key = "receipts"

    private let connection: APIConnection
    private let rules: URL
    private let store: any ClientStore
    private var receipts: [Receipt]
    private var isSending = false

    init(connection: APIConnection, rules: URL, store: any ClientStore) {
        self.connection = connection
        self.rules = rules
        self.store = store
        receipts = store.decoded([Receipt].self, forKey: Self.key) ?? []
    }

    func add(_ notification: UUID, _ what: String) async {
        let receipt = Receipt(id: notification.uuidString.lowercased(), what: what)
        if !receipts.contains(receipt) { receipts.append(receipt) }
        receipts.removeFirst(max(0, receipts.count - Self.maximum))
        save()
        await flush()
    }

    /// Sends all stored receipts. After a failure they stay stored.
    func flush() async {
        guard !isSending else { return }
        isSending = true
        defer { isSending = false }
        while !receipts.isEmpty {
            let batch = receipts
            let list = batch.map { JSONValue.object(["id": .string($0.id), "what": .string($0.what)]) }
            do {
                _ = try await connection.send(
                    "POST", rules.api("v1", "receipts"), body: ["receipts": .array(list)], attempts: 2)
            } catch HeliographError.refused(let status, _) where ![401, 403].contains(status) {
                // The server never takes these receipts.
            } catch {
                return
            }
            receipts.removeAll(where: batch.contains)
            save()
        }
    }

    /// Deletes the receipts of a user who signs out.
    func erase() {
        receipts = []
        save()
    }

    private func save() { store.encode(receipts, forKey: Self.key) }
}
