import PushProtocol

extension Rule {
    /// The most characters of a title, a subtitle and a body, as a person counts them; what is longer is cut.
    static let maximumTitle = 100
    static let maximumBody = 500
    /// The longest name to mute by, in characters.
    static let maximumMute = 200
    /// The longest collapse key, in UTF-8 bytes (APNs' `apns-collapse-id`).
    static let maximumCollapseKey = 64

    /// What it says about one event.
    func content(_ scope: Scope) throws(PlacedProblem) -> Content {
        func text(_ template: Template?, _ place: String, limit: Int = .max) throws(PlacedProblem) -> String? {
            guard let template else { return nil }
            do {
                let text = try template.render(scope)
                // What renders to nothing is absent: a phone would show an empty line.
                return text.isEmpty ? nil : text.excerpt(limit)
            } catch {
                throw PlacedProblem(place, error)
            }
        }
        return Content(
            title: try text(say.title, "say.title", limit: Rule.maximumTitle),
            subtitle: try text(say.subtitle, "say.subtitle", limit: Rule.maximumTitle),
            body: try text(say.body, "say.body", limit: Rule.maximumBody), badge: try badge(scope), sound: how.sound,
            category: how.category, thread: try text(how.thread, "how.thread"),
            deepLink: try text(say.deepLink, "say.deep-link"), image: try text(say.image, "say.image"),
            data: try data(scope), silent: how.kind == .silent, interruptionLevel: how.interruptionLevel,
            collapseKey: try collapseKey(text(how.collapseKey, "how.collapse-key")), apns: how.apns, fcm: how.fcm)
    }

    /// By what a person can mute what it says about one event, the widest first.
    func mutes(_ scope: Scope) throws(PlacedProblem) -> [String] {
        var names: [String] = []
        for (index, template) in policy.mutes.enumerated() {
            do {
                let name = try template.render(scope)
                if !name.isEmpty { names.append(name.excerpt(Rule.maximumMute)) }
            } catch {
                throw PlacedProblem("policy.mutes.\(index)", error)
            }
        }
        return names
    }

    private func data(_ scope: Scope) throws(PlacedProblem) -> [String: JSONValue]? {
        guard let members = say.data else { return nil }
        return try DataTemplate.object(members).render(scope, place: "say.data")?.object
    }

    private func badge(_ scope: Scope) throws(PlacedProblem) -> Int? {
        guard let template = how.badge, let value = try template.render(scope, place: "how.badge") else { return nil }
        guard let number = value.badgeNumber else {
            let path = template.tags.first?.path ?? "the badge"
            throw PlacedProblem("how.badge", .unsuitable(path: path, expected: JSONValue.badgeExpectation))
        }
        return number
    }

    private func collapseKey(_ key: String?) throws(PlacedProblem) -> String? {
        guard let key else { return nil }
        guard key.utf8.count <= Rule.maximumCollapseKey else {
            let path = how.collapseKey?.tags.first?.path ?? "the collapse key"
            throw PlacedProblem(
                "how.collapse-key",
                .unsuitable(path: path, expected: "short enough: a collapse key has at most 64 bytes"))
        }
        return key
    }
}
