import PushProtocol

/// The `apns-*` headers that all targets of a push share: defaults, replaced by the content's overrides.
struct APNsHeaders: Hashable, Sendable {
    let pushType: APNsPushType
    let topic: String
    let priority: APNsPriority?
    /// Unix seconds. `0`: one attempt without storage. Absent: APNs decides.
    let expiration: Int64?
    /// Absent: the target's notification id, for push types that collapse by default.
    let collapseID: String?
    /// Further headers of the content, such as ones newer than this build.
    let others: [ProviderHeader]

    private static let collapseIDName = "apns-collapse-id"

    init(for content: Content, bundle: String, expiresAt: Timestamp?) throws(LocalRejection) {
        var given = try Self.normalized(content.apns?.headers ?? [:])
        pushType =
            try Self.take("apns-push-type", from: &given) { APNsPushType(rawValue: $0) }
            ?? (content.silent ? .background : .alert)
        topic = try Self.topic(given.removeValue(forKey: "apns-topic"), for: pushType, bundle: bundle)
        priority =
            try Self.take("apns-priority", from: &given) { APNsPriority(rawValue: $0) } ?? pushType.defaultPriority
        if let priority, !pushType.allows(priority) { throw LocalRejection("priority-not-allowed-for-push-type") }
        expiration =
            try Self.take("apns-expiration", from: &given) { Int64($0).flatMap { $0 >= 0 ? $0 : nil } }
            ?? (pushType.isNeverStored ? 0 : expiresAt?.seconds)
        collapseID = given.removeValue(forKey: Self.collapseIDName) ?? content.collapseKey
        if let collapseID, let problem = CollapseID.problem(with: collapseID) {
            throw LocalRejection("collapse-id-\(problem)")
        }
        others = given.sorted { $0.key < $1.key }.map { ProviderHeader($0.key, $0.value) }
    }

    /// Whether the collapse id is the notification's id, which may differ between targets.
    var collapsesByNotification: Bool { collapseID == nil && pushType.isCollapsedByDefault }

    /// The shared headers, and the names of those with a value for each request. The expiration is among the latter,
    /// so that pushes share a template.
    var template: ProviderRequestBatch.HeaderTemplate {
        var perRequestFields: [StaticString] = ["apns-id"]
        if collapsesByNotification { perRequestFields.append("apns-collapse-id") }
        if expiration != nil { perRequestFields.append("apns-expiration") }
        var shared = [ProviderHeader("apns-push-type", pushType.rawValue), ProviderHeader("apns-topic", topic)]
        if let priority { shared.append(ProviderHeader("apns-priority", priority.rawValue)) }
        if let collapseID { shared.append(ProviderHeader("apns-collapse-id", collapseID, neverIndexed: true)) }
        return ProviderRequestBatch.HeaderTemplate(shared: shared + others, perRequestFields: perRequestFields)
    }

    /// Converts names to lower case. Accepts `apns-*` except `apns-id`. Values must be printable ASCII, except for
    /// the collapse id.
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

    /// The topic for an app and push type. Content may set it only where it is not derived from a bundle id;
    /// otherwise one app could push as another.
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
