import FoundationEssentials
import PushProtocol

/// The body of `POST /v1/inbox/read`: selects the caller's items that were read.
///
///     {"ids": ["5b0c…", "77aa…"]}      the listed items
///     {"thread": "9"}                  all items of a thread
///     {"until": "5b0c…"}               this item and all older ones, such as those on the screen
///     {"all": true}                    all items
enum ReadingBody: Hashable, Sendable {
    case items([UUID])
    case thread(String)
    case until(UUID)
    case all

    /// The largest accepted body, in bytes.
    static let maximumSize = 64 * 1024
    static let mostItems = 1000
    /// In Unicode scalars, as JSON Schema counts them.
    static let longestThread = 256

    init(_ body: [UInt8]) throws(WireError) {
        let value = try WireCoding.decode(JSONValue.self, from: body, maximumSize: Self.maximumSize)
        let members = try JSONObjectReader(
            value, at: "the body", prefix: "", known: ["ids", "thread", "until", "all"])
        guard value.object?.count == 1 else {
            throw .invalid(path: "the body", problem: "expected one of ids, thread, until, all")
        }
        if let ids = members["ids"] {
            guard let list = ids.array, (1...Self.mostItems).contains(list.count) else {
                throw .invalid(path: "ids", problem: "expected 1–\(Self.mostItems) ids of notifications")
            }
            self = .items(
                try list.enumerated().map { (index, id) throws(WireError) in try Self.id(id, at: "ids[\(index)]") })
        } else if let thread = try members.freeText("thread", Self.longestThread) {
            self = .thread(thread)
        } else if let until = members["until"] {
            self = .until(try Self.id(until, at: "until"))
        } else if members["all"] == true {
            self = .all
        } else {
            throw .invalid(path: "the body", problem: "expected one of ids, thread, until, or “all”: true")
        }
    }

    private static func id(_ value: JSONValue, at path: String) throws(WireError) -> UUID {
        guard let id = value.string.flatMap({ UUID(uuidString: $0) }) else {
            throw .invalid(path: path, problem: "expected a notification's id, a UUID")
        }
        return id
    }
}
