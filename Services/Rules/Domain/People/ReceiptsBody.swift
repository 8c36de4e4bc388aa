import FoundationEssentials
import PushProtocol
import RuleLanguage

/// The body of `POST /v1/receipts`: the notifications that the caller opened or dismissed.
///
///     {"receipts": [{"id": "5b0c…", "what": "opened"}, {"id": "77aa…", "what": "dismissed"}]}
struct ReceiptsBody: Hashable, Sendable {
    /// The largest accepted body, in bytes.
    static let maximumSize = 64 * 1024
    static let mostReceipts = 500

    let receipts: [Receipt]

    struct Receipt: Hashable, Sendable {
        var notification: UUID
        /// `opened` also marks the inbox item as read.
        var what: ReceiptAction
    }

    init(_ body: [UInt8]) throws(WireError) {
        let value = try WireCoding.decode(JSONValue.self, from: body, maximumSize: Self.maximumSize)
        let members = try JSONObjectReader(value, at: "the body", prefix: "", known: ["receipts"])
        guard let list = try members.required("receipts").array, (1...Self.mostReceipts).contains(list.count) else {
            throw .invalid(path: "receipts", problem: "expected an array of 1–\(Self.mostReceipts)")
        }
        receipts = try list.enumerated().map { (index, entry) throws(WireError) in
            let path = "receipts[\(index)]"
            let members = try JSONObjectReader(entry, at: path, prefix: "\(path).", known: ["id", "what"])
            guard let id = UUID(uuidString: try members.text("id")) else {
                throw .invalid(path: "\(path).id", problem: "expected a notification's id, a UUID")
            }
            guard let what = ReceiptAction(rawValue: try members.text("what")) else {
                let words = ReceiptAction.allCases.map(\.rawValue).joined(separator: ", ")
                throw .invalid(path: "\(path).what", problem: "expected one of \(words)")
            }
            return Receipt(notification: id, what: what)
        }
    }
}
