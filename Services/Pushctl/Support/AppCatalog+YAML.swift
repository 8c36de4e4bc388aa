import Foundation
import Primitives
import PushProtocol
import ServiceKit

extension AppCatalog {
    /// The apps file with these apps. Reading it gives an equal catalog.
    ///
    /// - Parameter folder: the file's folder. Paths below it are written relative to it.
    func yaml(below folder: String) -> String {
        var lines = ["# Written by pushctl app install.", apps.isEmpty ? "apps: {}" : "apps:"]
        for app in apps {
            lines.append("  \(app.id):")
            if let apns = app.apns { lines += apns.yaml(folder) }
            if let fcm = app.fcm { lines += fcm.yaml(folder) }
            if let webPush = app.webPush { lines += webPush.yaml(folder) }
            if !app.bearer.isEmpty { lines.append("    bearer:") }
            for bearer in app.bearer { lines += bearer.yaml(folder) }
            if !app.publishers.isEmpty { lines.append("    publishers:") }
            for publisher in app.publishers { lines += publisher.yaml(folder, namesUser: false) }
            if !app.webOrigins.isEmpty {
                lines.append("    web-origins: [\(app.webOrigins.sorted().map { quoted($0) }.joined(separator: ", "))]")
            }
            if app.hasReportQueue { lines.append("    reports: { queue: true }") }
            if !app.webhooks.isEmpty { lines.append("    webhooks:") }
            for webhook in app.webhooks { lines += webhook.yaml(folder) }
            if !app.eventBorrowers.isEmpty {
                let borrowers = app.eventBorrowers.sorted().map { quoted($0.rawValue) }
                lines.append("    events-to: [\(borrowers.joined(separator: ", "))]")
            }
            if let recording = app.recording {
                lines.append("    recording: { days: \(recording.days), at-most: \(recording.limit) }")
            }
        }
        return lines.joined(separator: "\n") + "\n"
    }
}

extension APNsAppConfiguration {
    fileprivate func yaml(_ folder: String) -> [String] {
        var lines = ["    apns:", "      topic: \(quoted(topic))"]
        switch credential {
        case .key(let key):
            lines += [
                "      key-id: \(quoted(key.keyID))", "      team-id: \(quoted(key.teamID))",
                "      key-file: \(quoted(key.keyFile, below: folder))",
                "      environments: [\(environments.sorted().map(\.rawValue).joined(separator: ", "))]",
            ]
        case .certificates(let certificates):
            lines.append("      certificates:")
            for (environment, files) in certificates.sorted(by: { $0.key < $1.key }) {
                lines += [
                    "        \(environment.rawValue):",
                    "          certificate-file: \(quoted(files.certificateFile, below: folder))",
                    "          key-file: \(quoted(files.keyFile, below: folder))",
                ]
            }
        }
        return lines
    }
}

extension FCMAppConfiguration {
    fileprivate func yaml(_ folder: String) -> [String] {
        ["    fcm:", "      service-account-file: \(quoted(serviceAccountFile, below: folder))"]
            + (messagesPerMinute.map { ["      messages-per-minute: \($0)"] } ?? [])
    }
}

extension WebPushAppConfiguration {
    fileprivate func yaml(_ folder: String) -> [String] {
        [
            "    webpush:", "      key-file: \(quoted(keyFile, below: folder))", "      subject: \(quoted(subject))",
            "      home-page: \(quoted(homePage.text))",
        ]
    }
}

extension WebhookConfiguration {
    fileprivate func yaml(_ folder: String) -> [String] {
        [
            "      - name: \(quoted(name.rawValue))", "        url: \(quoted(url.text))",
            "        secret-file: \(quoted(secretFile, below: folder))",
            "        events: [\(kinds.map(\.rawValue).sorted().joined(separator: ", "))]",
        ]
    }
}

extension BearerVerification {
    fileprivate func yaml(_ folder: String, namesUser: Bool = true) -> [String] {
        var members: [(String, String?)] = [("algorithm", algorithm.rawValue)]
        switch keys {
        case .file(let file): members.append(("key-file", quoted(file, below: folder)))
        case .url(let url): members.append(("jwks-url", quoted(url)))
        }
        members += [
            ("issuer", issuer.map { quoted($0) }), ("audience", audience.map { quoted($0) }),
            ("user-claim", namesUser ? quoted(userClaim) : nil), ("app-claim", appClaim.map { quoted($0.name) }),
            ("app-value", appClaim.map { quoted($0.value) }), ("leeway", "\(leeway.components.seconds)s"),
        ]
        let given = members.compactMap { name, value in value.map { "\(name): \($0)" } }
        return given.enumerated().map { "      \($0.offset == 0 ? "-" : " ") \($0.element)" }
    }
}

/// A YAML scalar in double quotes, with the escapes of JSON, which YAML accepts.
private func quoted(_ text: String) -> String {
    (try? WireCoding.text(JSONValue.string(text))) ?? "\"\""
}

private func quoted(_ path: String, below folder: String) -> String {
    quoted(path.hasPrefix("\(folder)/") ? String(path.dropFirst(folder.count + 1)) : path)
}
