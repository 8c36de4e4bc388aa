package import PushProtocol

/// A rule's text about one event in one language.
package struct RenderedText: Hashable, Sendable {
    package var content: Content
    /// Replaces the content in the push if the rule's privacy is not `full`.
    package var preview: Content?
}

extension Rule {
    /// The maximum length of a title or subtitle, and of a body, in characters. Longer texts are cut.
    static let maximumTitle = 100
    static let maximumBody = 500
    /// The maximum length of the names of mutes, items and dedupe keys, in characters.
    package static let maximumMute = 200
    /// The maximum length of an indexed name in UTF-8 bytes: a Postgres index row holds at most 2,704 bytes.
    static let maximumNameBytes = 800
    /// The maximum length of a collapse key in UTF-8 bytes (APNs: `apns-collapse-id`).
    static let maximumCollapseKey = 64

    /// Whether phones load an image: only over https. Others are left out of the notification.
    static func isLoadable(image: String) -> Bool { image.hasPrefix("https://") }

    /// Renders the text for one event in the scope's language.
    package func renderedText(_ scope: Scope, defaults: Language) throws(PlacedProblem) -> RenderedText {
        let messageTemplate = messageTemplate(in: scope.localization.language, defaults: defaults)
        let content = try content(messageTemplate, scope, place: "say")
        return RenderedText(content: content, preview: try preview(of: content, messageTemplate, scope))
    }

    /// Returns the template in the nearest available language.
    package func messageTemplate(in language: Language, defaults: Language) -> MessageTemplate {
        guard !say.translations.isEmpty,
            let chosen = language.choice(of: Array(say.translations.keys) + [defaults]),
            let translation = say.translations[chosen]
        else { return say }
        return say.overlaid(by: translation)
    }

    /// Renders a template: the rule's own, or that of a digest's summary.
    package func content(_ say: MessageTemplate, _ scope: Scope, place: String) throws(PlacedProblem) -> Content {
        func text(_ template: Template?, _ place: String, limit: Int = .max) throws(PlacedProblem) -> String? {
            guard let template else { return nil }
            do {
                let text = try template.render(scope)
                // Devices show an empty line for an empty text.
                return text.isEmpty ? nil : text.excerpt(limit)
            } catch {
                throw PlacedProblem(place, error)
            }
        }
        return Content(
            title: try text(say.title, "\(place).title", limit: Rule.maximumTitle),
            subtitle: try text(say.subtitle, "\(place).subtitle", limit: Rule.maximumTitle),
            body: try text(say.body, "\(place).body", limit: Rule.maximumBody), badge: try badge(scope),
            sound: how.kind == .liveActivity ? nil : how.sound, category: how.category,
            thread: try text(how.thread, "how.thread"),
            deepLink: try text(say.deepLink, "\(place).deep-link"),
            image: try text(say.image, "\(place).image").flatMap { Rule.isLoadable(image: $0) ? $0 : nil },
            data: try data(say, scope, place: place), silent: how.kind.isData,
            interruptionLevel: how.interruptionLevel,
            collapseKey: try collapseKey(text(how.collapseKey, "how.collapse-key")), apns: try apns(scope),
            fcm: try fcm(scope), web: try web(scope))
    }

    /// Returns the content that a locked screen may show; `nil` if the rule's privacy is `full`.
    package func preview(of content: Content, _ say: MessageTemplate, _ scope: Scope) throws(PlacedProblem) -> Content?
    {
        var preview = content
        switch how.privacy {
        case .full: return Optional.none
        case .generic: break
        case .idOnly:
            preview.data = nil
            preview.deepLink = nil
            preview.thread = nil
        }
        do {
            preview.title = try say.preview?.title?.render(scope)
            preview.body = try say.preview?.body?.render(scope)
        } catch {
            throw PlacedProblem("say.preview", error)
        }
        preview.subtitle = nil
        preview.image = nil
        return preview
    }

    /// Renders the mute names for one event, the widest first.
    package func mutes(_ scope: Scope) throws(PlacedProblem) -> [String] {
        var names: [String] = []
        for (index, template) in policy.mutes.enumerated() {
            let name = try name(template, scope, "policy.mutes.\(index)").excerpt(bytes: Rule.maximumMute)
            if !name.isEmpty { names.append(name) }
        }
        return names
    }

    /// Renders a short name by which rows are found, such as an item or a dedupe key.
    package func name(_ template: Template, _ scope: Scope, _ place: String) throws(PlacedProblem) -> String {
        do {
            return try template.render(scope).replacing("\0", with: "").excerpt(Rule.maximumMute)
                .excerpt(bytes: Rule.maximumNameBytes)
        } catch {
            throw PlacedProblem(place, error)
        }
    }

    private func data(
        _ say: MessageTemplate, _ scope: Scope, place: String
    ) throws(PlacedProblem) -> [String: JSONValue]? {
        guard let members = say.data else { return nil }
        return try DataTemplate.object(members).render(scope, place: "\(place).data")?.object
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

extension Rule.MessageTemplate {
    /// Returns this template with the members of a translation, where the translation has them.
    func overlaid(by translation: Rule.MessageTemplate) -> Rule.MessageTemplate {
        Rule.MessageTemplate(
            title: translation.title ?? title, subtitle: translation.subtitle ?? subtitle,
            body: translation.body ?? body, deepLink: translation.deepLink ?? deepLink,
            image: translation.image ?? image, data: translation.data ?? data,
            preview: preview.map { preview in
                Preview(
                    title: translation.preview?.title ?? preview.title,
                    body: translation.preview?.body ?? preview.body)
            }, payload: payload, activity: activity)
    }

    /// All tags, including those of the translations.
    var tags: [TemplateTag] {
        [title, subtitle, body, deepLink, image].compactMap(\.self).flatMap(\.tags)
            + [data, payload].compactMap(\.self).flatMap { DataTemplate.object($0).tags } + (activity?.tags ?? [])
            + translations.values.flatMap(\.tags)
    }
}
