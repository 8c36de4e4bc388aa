import PushProtocol
import PushSending

/// The `apns-*` headers that all targets of a push share: what the content implies, with its overrides laid over it.
struct APNsHeaders: Hashable, Sendable {
    let pushType: APNsPushType
    let topic: String
    let priority: APNsPriority?
    /// Unix seconds; `0` is one attempt without storage; absent leaves it to APNs.
    let expiration: Int64?
    /// Absent: the target's notification id, where the push type collapses by default.
    let collapseID: String?
    /// What else the content asked for, such as headers newer than this build.
    let others: [ProviderHeader]

    private static let collapseIDName = "apns-collapse-id"

    init(for content: Content, bundle: String, expiresAt: Timestamp?) throws(LocalRejection) {
        var given = try Self.normalized(content.apns?.headers ?? [:])
        pushType =
            try Self.take("apns-push-type", from: &given) { APNsPushType(rawValue: $0) }
            ?? (content.silent ? .background : .alert)
        topic = try Self.topic(given.removeValue(forKey: "apns-topic"), for: pushType, bundle: bundle)
        priority = try Self.take("apns-priority", from: &given) { APNsPriority(rawValue: $0) } ?? pushType.usualPriority
        if let priority, !pushType.allows(priority) { throw LocalRejection("priority-not-allowed-for-push-type") }
        expiration =
            try Self.take("apns-expiration", from: &given) { Int64($0).flatMap { $0 >= 0 ? $0 : nil } }
            ?? (pushType.isMomentary ? 0 : expiresAt?.seconds)
        collapseID = given.removeValue(forKey: Self.collapseIDName) ?? content.collapseKey
        if let collapseID, let problem = CollapseID.problem(with: collapseID) {
            throw LocalRejection("collapse-id-\(problem)")
        }
        others = given.sorted { $0.key < $1.key }.map { ProviderHeader($0.key, $0.value) }
    }

    /// Whether the collapse id is the notification's id, which the targets of a push need not have in common.
    var collapsesByNotification: Bool { collapseID == nil && pushType.isCollapsedByDefault }

    /// What requests have in common, and which values are their own: the expiration too, since most pushes have nothing
    /// else that the next one has not.
    var letter: RequestBatch.Letter {
        var own: [StaticString] = ["apns-id"]
        if collapsesByNotification { own.append("apns-collapse-id") }
        if expiration != nil { own.append("apns-expiration") }
        var shared = [ProviderHeader("apns-push-type", pushType.rawValue), ProviderHeader("apns-topic", topic)]
        if let priority { shared.append(ProviderHeader("apns-priority", priority.rawValue)) }
        if let collapseID { shared.append(ProviderHeader("apns-collapse-id", collapseID, neverIndexed: true)) }
        return RequestBatch.Letter(shared: shared + others, own: own)
    }

    /// Lower-case names; only headers of APNs, and neither a sender's nor an id. Values are printable
    /// ASCII, but for a collapse id, which has a rule of its own.
    private static func normalized(_ headers: [String: String]) throws(LocalRejection) -> [String: String] {
        var result: [String: String] = [:]
        for (name, value) in headers {
            let name = name.lowercased()
            guard name.hasPrefix("apns-"), name != "apns-id", name.utf8.allSatisfy(isNameByte) else {
                throw LocalRejection("header-not-allowed")
            }
            guard name == collapseIDName || value.utf8.allSatisfy({ (0x20...0x7e).contains($0) }) else {
                throw LocalRejection("header-not-ascii")
            }
            guard result.updateValue(value, forKey: name) == nil else { throw LocalRejection("header-given-twice") }
        }
        return result
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"): true
        default: false
        }
    }

    private static func take<Value>(
        _ name: String, from headers: inout [String: String], _ parse: (String) -> Value?
    ) throws(LocalRejection) -> Value? {
        guard let text = headers.removeValue(forKey: name) else { return nil }
        guard let value = parse(text) else { throw LocalRejection("\(name)-invalid") }
        return value
    }

    /// The topic follows from the app and the push type. Only where it is no bundle id may the content name it; anywhere
    /// else one app could push in another's name.
    private static func topic(
        _ given: String?, for pushType: APNsPushType, bundle: String
    ) throws(LocalRejection) -> String {
        guard let suffix = pushType.topicSuffix else {
            guard let given, given.hasPrefix("com.apple.mgmt.") else { throw LocalRejection("mdm-topic-missing") }
            return given
        }
        let topic = bundle + suffix
        guard given == nil || given == topic else { throw LocalRejection("topic-not-of-this-app") }
        return topic
    }
}
