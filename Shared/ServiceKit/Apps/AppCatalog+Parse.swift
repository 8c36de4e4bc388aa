import FoundationEssentials
import Primitives
import PushProtocol

extension AppCatalog {
    /// Parses a catalog. Problems name `path`, and paths in the catalog are relative to it. `files` must exist.
    package static func parse(
        _ text: String, path: String, using files: Files = .all
    ) throws(ConfigurationError) -> AppCatalog {
        var reader = YAMLReader(path: path, using: files)
        var apps: [AppConfiguration] = []
        if let root = reader.compose(text) {
            let entries = reader.members(of: root, known: ["apps"], required: ["apps"])
            for app in entries["apps"].map({ reader.entries(of: $0) }) ?? [] {
                if let id = AppID(rawValue: app.name) {
                    apps.append(reader.app(id, app.entry))
                } else {
                    reader.report(
                        app.entry, "is not an app id: 1–63 characters of a–z, 0–9 and -, not starting with -")
                }
            }
        }
        guard reader.problems.isEmpty else { throw ConfigurationError(reader.problems) }
        return AppCatalog(apps)
    }
}

extension YAMLReader {
    fileprivate mutating func app(_ id: AppID, _ entry: LocatedNode) -> AppConfiguration {
        // `family-portal:` with nothing below it is an app without credentials.
        guard !entry.isNull else { return AppConfiguration(id: id) }
        let members = members(
            of: entry,
            known: [
                "apns", "fcm", "webpush", "bearer", "publishers", "web-origins", "reports", "webhooks", "events-to",
                "recording",
            ],
            required: [])
        return AppConfiguration(
            id: id,
            apns: members["apns"].flatMap { apns($0) }, fcm: members["fcm"].flatMap { fcm($0) },
            webPush: members["webpush"].flatMap { webPush($0) },
            bearer: (members["bearer"].map { elements(of: $0) } ?? []).compactMap { bearer($0, of: id) },
            publishers: (members["publishers"].map { elements(of: $0) } ?? []).compactMap {
                bearer($0, of: id, namesUser: false)
            },
            webOrigins: Set((members["web-origins"].map { elements(of: $0) } ?? []).compactMap { webOrigin($0) }),
            hasReportQueue: members["reports"].map { reportQueue($0) } ?? false,
            webhooks: members["webhooks"].map { webhooks($0) } ?? [],
            eventBorrowers: Set(
                (members["events-to"].map { elements(of: $0) } ?? []).compactMap { borrower($0, of: id) }),
            recording: members["recording"].flatMap { recording($0) })
    }

    /// Reads an app whose rules may use the events of `owner`.
    private mutating func borrower(_ entry: LocatedNode, of owner: AppID) -> AppID? {
        guard let text = text(entry) else { return nil }
        if let app = AppID(rawValue: text), app != owner { return app }
        report(entry, "“\(text)” is not the id of another app")
        return nil
    }

    /// Reads an origin as browsers send it: scheme, host and an unusual port, in lower case (RFC 6454 §6.2). Without TLS
    /// only on this machine.
    private mutating func webOrigin(_ entry: LocatedNode) -> String? {
        guard let text = text(entry) else { return nil }
        let isSecure = text.wholeMatch(of: #/https://[a-z0-9.-]*[a-z0-9](:[1-9][0-9]{0,4})?/#) != nil
        let isLocal = text.wholeMatch(of: #/http://(localhost|127\.0\.0\.1)(:[1-9][0-9]{0,4})?/#) != nil
        // A browser leaves out the scheme's own port.
        if isSecure && !text.hasSuffix(":443") || isLocal && !text.hasSuffix(":80") { return text }
        report(entry, "“\(text)” is not an origin such as https://portal.example or http://localhost:3000")
        return nil
    }

    private mutating func apns(_ entry: LocatedNode) -> APNsAppConfiguration? {
        if has(entry, "certificates") { return apnsWithCertificates(entry) }
        let members = members(
            of: entry, known: ["topic", "key-id", "team-id", "key-file", "environments", "certificates"],
            required: ["topic", "key-id", "team-id", "key-file"])
        let topic = text(members["topic"])
        let keyID = appleID(members["key-id"])
        let teamID = appleID(members["team-id"])
        let keyFile = file(members["key-file"], for: .apns)
        let environments = members["environments"].map { self.environments($0) }
        guard let topic, let keyID, let teamID, let keyFile else { return nil }
        return APNsAppConfiguration(
            topic: topic, key: APNsSigningKey(keyID: keyID, teamID: teamID, keyFile: keyFile),
            environments: environments ?? Set(ProviderEnvironment.allCases))
    }

    private mutating func apnsWithCertificates(_ entry: LocatedNode) -> APNsAppConfiguration? {
        let members = members(of: entry, known: ["topic", "certificates"], required: ["topic"])
        guard let certificates = members["certificates"] else { return nil }
        let environments = self.members(
            of: certificates, known: ProviderEnvironment.allCases.map(\.rawValue), required: [])
        if environments.isEmpty { report(certificates, "names no environment: production, development or both") }
        var byEnvironment: [ProviderEnvironment: APNsCertificate] = [:]
        for (name, entry) in environments {
            guard let environment = ProviderEnvironment(rawValue: name), let certificate = certificate(entry) else {
                continue
            }
            byEnvironment[environment] = certificate
        }
        return text(members["topic"]).map { APNsAppConfiguration(topic: $0, certificates: byEnvironment) }
    }

    private mutating func certificate(_ entry: LocatedNode) -> APNsCertificate? {
        let members = members(of: entry, known: ["certificate-file", "key-file"], required: ["certificate-file"])
        guard let certificateFile = file(members["certificate-file"], for: .apns) else { return nil }
        guard let key = members["key-file"] else {
            return APNsCertificate(certificateFile: certificateFile, keyFile: certificateFile)
        }
        return file(key, for: .apns).map { APNsCertificate(certificateFile: certificateFile, keyFile: $0) }
    }

    private mutating func fcm(_ entry: LocatedNode) -> FCMAppConfiguration? {
        let members = members(
            of: entry, known: ["service-account-file", "messages-per-minute"], required: ["service-account-file"])
        let messagesPerMinute = members["messages-per-minute"].flatMap { quota($0) }
        return file(members["service-account-file"], for: .fcm).map {
            FCMAppConfiguration(serviceAccountFile: $0, messagesPerMinute: messagesPerMinute)
        }
    }

    private mutating func webPush(_ entry: LocatedNode) -> WebPushAppConfiguration? {
        let keys = ["key-file", "subject", "home-page"]
        let members = members(of: entry, known: keys, required: keys)
        let keyFile = file(members["key-file"], for: .webPush)
        let subject = text(members["subject"])
        let homePage = members["home-page"].flatMap { self.homePage($0) }
        guard let keyFile, let subject, let homePage else { return nil }
        return WebPushAppConfiguration(keyFile: keyFile, subject: subject, homePage: homePage)
    }

    private mutating func homePage(_ entry: LocatedNode) -> OutboundURL? {
        guard let text = text(entry) else { return nil }
        do throws(OutboundURL.Refusal) {
            return try OutboundURL(text)
        } catch {
            report(entry, "“\(text)” is not the URL of a page: \(error)")
            return nil
        }
    }

    private mutating func environments(_ entry: LocatedNode) -> Set<ProviderEnvironment> {
        let elements = elements(of: entry)
        if elements.isEmpty, !entry.isNull { report(entry, "names no environment; leave it out to use both") }
        return Set(elements.compactMap { choice($0, of: ProviderEnvironment.allCases) })
    }

    /// Reads a quota of at least 1000 a minute; a smaller one cannot be shared evenly among processes.
    private mutating func quota(_ entry: LocatedNode) -> Int? {
        number(entry, in: 1_000...1_000_000_000)
    }

    mutating func number(_ entry: LocatedNode, in range: ClosedRange<Int>) -> Int? {
        guard let text = text(entry) else { return nil }
        if let number = Int(text), range.contains(number) { return number }
        report(entry, "“\(text)” is not a whole number from \(range.lowerBound) to \(range.upperBound)")
        return nil
    }

    /// Reads a key or team id of Apple: ten characters, A–Z and 0–9.
    private mutating func appleID(_ entry: LocatedNode?) -> String? {
        guard let entry, let text = text(entry) else { return nil }
        let isLegal = text.utf8.count == 10 && text.allSatisfy { $0.isASCII && ($0.isUppercase || $0.isNumber) }
        if !isLegal { report(entry, "“\(text)” is not a 10-character id of A–Z and 0–9") }
        return isLegal ? text : nil
    }
}
