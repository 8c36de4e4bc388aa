package import Primitives
package import PushProtocol

/// One app: its provider credentials and the keys of bearer tokens. For an app without credentials, senders
/// report the outcome `skipped`; everything else works.
package struct AppConfiguration: Hashable, Sendable {
    package let id: AppID
    package let apns: APNsAppConfiguration?
    package let fcm: FCMAppConfiguration?
    package let webPush: WebPushAppConfiguration?
    /// The trusted keys of users' bearer tokens; empty disables registration over HTTP.
    package let bearer: [BearerVerification]
    /// The trusted keys of publishers' bearer tokens; empty if publishers use API keys only.
    package let publishers: [BearerVerification]
    /// The origins of the app's web clients, such as `https://portal.example` (RFC 6454 §6.2).
    package let webOrigins: Set<String>
    /// Whether the app's upstream has a queue of reports.
    package let hasReportQueue: Bool
    package let webhooks: [WebhookConfiguration]
    /// The apps whose rule files may use this app's events.
    package let eventBorrowers: Set<AppID>
    /// How long rules keep events and the inputs of their decisions; `nil`: they are not recorded.
    package let recording: RecordingTerms?

    package init(
        id: AppID, apns: APNsAppConfiguration? = nil, fcm: FCMAppConfiguration? = nil,
        webPush: WebPushAppConfiguration? = nil,
        bearer: [BearerVerification] = [], publishers: [BearerVerification] = [], webOrigins: Set<String> = [],
        hasReportQueue: Bool = false, webhooks: [WebhookConfiguration] = [], eventBorrowers: Set<AppID> = [],
        recording: RecordingTerms? = nil
    ) {
        self.id = id
        self.apns = apns
        self.fcm = fcm
        self.webPush = webPush
        self.bearer = bearer
        self.publishers = publishers
        self.webOrigins = webOrigins
        self.hasReportQueue = hasReportQueue
        self.webhooks = webhooks
        self.eventBorrowers = eventBorrowers
        self.recording = recording
    }
}

/// An app's credentials with APNs: one signing key for both environments, or a certificate for each.
package struct APNsAppConfiguration: Hashable, Sendable {
    /// The app's bundle topic.
    package let topic: String
    package let credential: APNsCredential
    /// The environments the credential is used for.
    package let environments: Set<ProviderEnvironment>

    package init(
        topic: String, key: APNsSigningKey,
        environments: Set<ProviderEnvironment> = Set(ProviderEnvironment.allCases)
    ) {
        self.topic = topic
        credential = .key(key)
        self.environments = environments
    }

    package init(
        topic: String, keyID: String, teamID: String, keyFile: String,
        environments: Set<ProviderEnvironment> = Set(ProviderEnvironment.allCases)
    ) {
        self.init(
            topic: topic, key: APNsSigningKey(keyID: keyID, teamID: teamID, keyFile: keyFile),
            environments: environments)
    }

    package init(topic: String, certificates: [ProviderEnvironment: APNsCertificate]) {
        self.topic = topic
        credential = .certificates(certificates)
        environments = Set(certificates.keys)
    }
}

package enum APNsCredential: Hashable, Sendable {
    /// Signs the provider token of each request.
    case key(APNsSigningKey)
    /// Presented in the TLS handshake.
    case certificates([ProviderEnvironment: APNsCertificate])
}

/// A push certificate and its private key, PEM files; one file may hold both.
package struct APNsCertificate: Hashable, Sendable {
    package let certificateFile: String
    package let keyFile: String

    package init(certificateFile: String, keyFile: String) {
        self.certificateFile = certificateFile
        self.keyFile = keyFile
    }
}

/// A signing key of a developer team.
package struct APNsSigningKey: Hashable, Sendable {
    /// The 10-character id of the signing key.
    package let keyID: String
    /// The 10-character id of the developer team.
    package let teamID: String
    /// The path of the ES256 signing key (PKCS#8 PEM, `.p8`).
    package let keyFile: String
}

package struct FCMAppConfiguration: Hashable, Sendable {
    /// The path of the service account's JSON key, which also names the project.
    package let serviceAccountFile: String
    /// The project's quota in messages a minute; nil uses `FCM_QUOTA`. For several apps of a project, the lowest
    /// applies.
    package let messagesPerMinute: Int?

    package init(serviceAccountFile: String, messagesPerMinute: Int? = nil) {
        self.serviceAccountFile = serviceAccountFile
        self.messagesPerMinute = messagesPerMinute
    }
}

/// An app's identity at the push services of browsers. Without it, the registry takes no Web Push subscription.
package struct WebPushAppConfiguration: Hashable, Sendable {
    /// The path of the VAPID private key: 32 bytes in base64url, as most Web Push libraries write it.
    package let keyFile: String
    /// How a push service reaches the sender: a `mailto:` or `https:` URI (RFC 8292 §2.1). The sender checks it.
    package let subject: String
    /// The page that opens from a notification without a link of its own.
    package let homePage: OutboundURL

    package init(keyFile: String, subject: String, homePage: OutboundURL) {
        self.keyFile = keyFile
        self.subject = subject
        self.homePage = homePage
    }
}
