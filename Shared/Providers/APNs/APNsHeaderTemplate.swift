import PushProtocol

/// The headers of a push as its requests carry them.
struct APNsHeaderTemplate: Sendable {
    let pushType: APNsPushType
    let topic: String
    let fields: ProviderRequestBatch.HeaderTemplate
    /// The value of `apns-expiration`; absent: no such header.
    let expiration: Int64?
    /// Whether the collapse id of each request is its notification's id.
    let collapsesByNotification: Bool

    init(_ headers: APNsHeaders) {
        pushType = headers.pushType
        topic = headers.topic
        fields = headers.template
        expiration = headers.expiration
        collapsesByNotification = headers.collapsesByNotification
    }

    /// Copies `template` with another expiration.
    private init(_ template: APNsHeaderTemplate, expiration: Int64?) {
        pushType = template.pushType
        topic = template.topic
        fields = template.fields
        self.expiration = expiration
        collapsesByNotification = template.collapsesByNotification
    }

    /// Templates for pushes without header overrides, built once for each app. Most pushes use them.
    struct Defaults: Sendable {
        private var templates: [APNsHeaderTemplate] = []

        init(bundle: String) {
            for isSilent in [false, true] {
                for expiresAt in [nil, Timestamp(milliseconds: 0)] {
                    // Default headers are always valid.
                    guard
                        let headers = try? APNsHeaders(
                            for: Content(silent: isSilent), bundle: bundle, expiresAt: expiresAt)
                    else { return }
                    templates.append(APNsHeaderTemplate(headers))
                }
            }
        }

        /// The template for a content; `nil` when the content overrides headers.
        func template(for content: Content, expiresAt: Timestamp?) -> APNsHeaderTemplate? {
            guard content.apns?.headers == nil, content.collapseKey == nil else { return nil }
            return template(silent: content.silent, expiresAt: expiresAt)
        }

        /// The template for a push without header overrides and collapse key.
        func template(silent: Bool, expiresAt: Timestamp?) -> APNsHeaderTemplate? {
            guard templates.count == 4 else { return nil }
            let position = (silent ? 2 : 0) + (expiresAt == nil ? 0 : 1)
            return APNsHeaderTemplate(templates[position], expiration: expiresAt?.seconds)
        }
    }
}
