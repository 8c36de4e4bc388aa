import FoundationEssentials

extension DirectNotification {
    /// The members of the data, in the order of the documentation.
    package static let members = [
        "users", "group", "roles", "topic", "tag", "everyone", "content", "type", "lane", "at", "expires", "ttl",
        "collapse", "silent", "pushOnly",
    ]
    package static let contentMembers = [
        "title", "subtitle", "body", "badge", "sound", "image", "link", "category", "thread", "data",
        "interruptionLevel", "apns", "fcm", "web",
    ]
    /// The members that name recipients; a notification has exactly one of them.
    private static let recipientMembers = ["users", "group", "topic", "tag", "everyone"]

    /// Reads the data of an event of the type ``eventType``.
    ///
    /// - Throws: `WireError.missing` or `.invalid`, with the member's path and the way to correct it. The text quotes
    ///   no value.
    package init(_ data: JSONValue) throws(WireError) {
        let object = try JSONObjectReader(data, at: "data", prefix: "", known: Self.members)
        let content = try object.content()
        self.init(
            to: try object.recipients(), content: content, type: try object.name("type"),
            lane: try object.choice("lane"), at: try object.moment("at"), expires: try object.moment("expires"),
            ttl: try object.seconds("ttl"), isPushOnly: try object.flag("pushOnly") ?? false)
        try checkSense(hasRoles: object["roles"] != nil)
    }

    /// Refuses members that contradict each other.
    private func checkSense(hasRoles: Bool) throws(WireError) {
        if hasRoles {
            guard case .group = recipients else {
                throw .invalid(path: "roles", problem: "only a group has roles; remove it")
            }
        }
        if expires != nil, ttl != nil { throw .invalid(path: "ttl", problem: "remove it, or remove expires") }
        if let at, let expires, expires <= at {
            throw .invalid(path: "expires", problem: "it must be later than at")
        }
        if content.silent {
            let shown = [
                ("title", content.title != nil), ("subtitle", content.subtitle != nil), ("body", content.body != nil),
                ("badge", content.badge != nil), ("sound", content.sound != nil), ("image", content.image != nil),
                ("interruptionLevel", content.interruptionLevel != nil),
            ]
            if let name = shown.first(where: \.1)?.0 {
                throw .invalid(path: "content.\(name)", problem: "a silent push shows nothing; remove it, or silent")
            }
        } else if !isVisible, content.badge == nil {
            throw .invalid(path: "content", problem: "add a title or a body, a badge alone, or silent: true")
        }
        if !isVisible {
            try refuse(["type": type != nil, "at": at != nil], "it needs a title or a body; add one, or remove it")
        }
        if isToAudience {
            let cure = "users' settings do not apply to a topic, a tag or everyone; use users or a group, or remove it"
            try refuse(["type": type != nil, "at": at != nil], cure)
            try refuse(["lane": lane == .interactive], "a topic, a tag and everyone use the bulk lane; remove it")
        }
        let size = content.sizeWithoutOverrides
        guard size <= Self.maximumContent else {
            throw .invalid(
                path: "content", problem: "it has \(size) bytes; a push carries at most \(Self.maximumContent)")
        }
    }

    private func refuse(_ members: KeyValuePairs<String, Bool>, _ problem: String) throws(WireError) {
        if let name = members.first(where: \.value)?.key { throw .invalid(path: name, problem: problem) }
    }

    /// The value of each member that names recipients.
    fileprivate static func recipients(_ object: JSONObjectReader) throws(WireError) -> Recipients {
        let named = recipientMembers.filter { object[$0] != nil }
        guard let name = named.first, named.count == 1 else {
            let problem = "exactly one of \(recipientMembers.joined(separator: ", ")) must name the recipients"
            throw .invalid(path: "data", problem: problem)
        }
        switch name {
        case "users": return .users(try users(object))
        case "group": return .group(try object.requiredName("group"), roles: try object.names("roles"))
        case "topic": return .audience(.topic(try object.groupName("topic")))
        case "tag": return .audience(.tag(try object.groupName("tag")))
        default:
            guard try object.flag("everyone") == true else {
                throw .invalid(path: "everyone", problem: "it can only be true; name other recipients, or set it")
            }
            return .everyone
        }
    }

    /// Reads user ids, strings or numbers, and removes repeated ones.
    private static func users(_ object: JSONObjectReader) throws(WireError) -> [UserID] {
        guard let list = try object.required("users").array else {
            throw .invalid(path: "users", problem: "expected a list of user ids")
        }
        guard (1...maximumUsers).contains(list.count) else {
            throw .invalid(
                path: "users", problem: "expected 1 to \(maximumUsers) users; send several, or use a group or a tag")
        }
        var users: [UserID] = []
        var seen: Set<UserID> = []
        for (index, value) in list.enumerated() {
            guard let user = value.userID else { throw .invalid(path: "users.\(index)", problem: UserID.rule) }
            if seen.insert(user).inserted { users.append(user) }
        }
        return users
    }
}

extension Content {
    /// The size of its JSON without the blocks of the providers, in bytes.
    fileprivate var sizeWithoutOverrides: Int {
        var content = self
        content.apns = nil
        content.fcm = nil
        content.web = nil
        return (try? WireCoding.encode(content))?.count ?? .max
    }
}

extension JSONObjectReader {
    fileprivate func recipients() throws(WireError) -> DirectNotification.Recipients {
        try DirectNotification.recipients(self)
    }

    /// Reads `content`, and the members beside it that belong to the content.
    fileprivate func content() throws(WireError) -> Content {
        let members = try JSONObjectReader(
            try required("content"), at: "content", prefix: "content.", known: DirectNotification.contentMembers)
        return Content(
            title: try members.words("title"), subtitle: try members.words("subtitle"),
            body: try members.words("body"), badge: try members.badge(), sound: try members.words("sound"),
            category: try members.words("category"), thread: try members.words("thread"),
            deepLink: try members.words("link"), image: try members.image(), data: try members.object("data"),
            silent: try flag("silent") ?? false, interruptionLevel: try members.choice("interruptionLevel"),
            collapseKey: try visibleASCII("collapse", 64), apns: try members.apns(), fcm: try members.fcm(),
            web: try members.web())
    }

    /// Reads a text that is not empty.
    private func words(_ name: String) throws(WireError) -> String? {
        guard self[name] != nil else { return nil }
        let words = try text(name)
        guard !words.isEmpty else {
            throw .invalid(path: path(name), problem: "it is empty; write a text, or remove it")
        }
        return words
    }

    private func badge() throws(WireError) -> Int? {
        try optional("badge", "expected a whole number from 0 to 99999") { value in
            value.int.flatMap { (0...99_999).contains($0) ? Int($0) : nil }
        }
    }

    private func image() throws(WireError) -> String? {
        guard let image = try words("image") else { return nil }
        guard image.hasPrefix("https://") else {
            throw .invalid(path: path("image"), problem: "expected an https URL, because phones load no other")
        }
        return image
    }

    private func object(_ name: String) throws(WireError) -> [String: JSONValue]? {
        try optional(name, "expected an object", \.object)
    }

    private func apns() throws(WireError) -> APNsOverride? {
        guard let value = self["apns"] else { return nil }
        let members = try JSONObjectReader(
            value, at: path("apns"), prefix: path("apns."), known: ["headers", "payload"])
        var headers: [String: String]?
        for (name, value) in try members.object("headers") ?? [:] {
            guard name.hasPrefix("apns-"), name != "apns-id", let text = value.string else {
                let problem = "only apns-* headers except apns-id can be set, with strings as values"
                throw .invalid(path: path("apns.headers"), problem: problem)
            }
            headers = headers ?? [:]
            headers?[name] = text
        }
        return APNsOverride(headers: headers, payload: try members.object("payload").map(JSONValue.object))
    }

    private func fcm() throws(WireError) -> FCMOverride? {
        guard let value = self["fcm"] else { return nil }
        let members = try JSONObjectReader(
            value, at: path("fcm"), prefix: path("fcm."), known: ["message", "validateOnly"])
        return FCMOverride(
            message: try members.object("message").map(JSONValue.object),
            validateOnly: try members.flag("validateOnly"))
    }

    private func web() throws(WireError) -> WebPushOverride? {
        guard let value = self["web"] else { return nil }
        let members = try JSONObjectReader(
            value, at: path("web"), prefix: path("web."), known: ["message", "urgency"])
        return WebPushOverride(
            urgency: try members.choice("urgency"), message: try members.object("message").map(JSONValue.object))
    }

    /// Reads a word of a closed list.
    fileprivate func choice<Word: RawRepresentable<String> & CaseIterable>(
        _ name: String
    ) throws(WireError) -> Word? {
        try optional(name, "expected one of \(Word.allCases.map(\.rawValue).joined(separator: ", "))") { value in
            value.string.flatMap(Word.init(rawValue:))
        }
    }

    fileprivate func moment(_ name: String) throws(WireError) -> Date? {
        try optional(name, "expected an RFC 3339 time such as 2026-01-01T00:00:00Z") { value in
            value.string.flatMap(RFC3339.date(from:))
        }
    }

    fileprivate func seconds(_ name: String) throws(WireError) -> Duration? {
        let most = DirectNotification.maximumTTL.components.seconds
        return try optional(name, "expected whole seconds from 1 to \(most)") { value in
            value.int.flatMap { (1...most).contains($0) ? .seconds($0) : nil }
        }
    }

    fileprivate func name(_ name: String) throws(WireError) -> String? {
        try self[name] == nil ? nil : requiredName(name)
    }

    fileprivate func requiredName(_ name: String) throws(WireError) -> String {
        guard let text = try required(name).directName else { throw .invalid(path: path(name), problem: Self.nameRule) }
        return text
    }

    fileprivate func names(_ name: String) throws(WireError) -> [String]? {
        try optional(name, "expected a list of names; \(Self.nameRule)") { value in
            let names = value.array?.compactMap(\.directName) ?? []
            return names.isEmpty || names.count != value.array?.count ? nil : names
        }
    }

    fileprivate func groupName(_ name: String) throws(WireError) -> GroupName {
        guard let group = GroupName(rawValue: try text(name)) else {
            throw .invalid(path: path(name), problem: GroupName.rule)
        }
        return group
    }

    private static var nameRule: String { "a name is 1–256 bytes without control characters" }
}

extension JSONValue {
    /// The name of a group, a role or a type.
    fileprivate var directName: String? {
        guard let text = string, (1...256).contains(text.utf8.count), text.hasNoControls else { return nil }
        return text
    }
}
