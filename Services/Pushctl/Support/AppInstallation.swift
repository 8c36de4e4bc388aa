import Foundation
import PushProtocol
import ServiceKit

/// Adds the apps of a folder to a deployment's apps file and rules folder.
struct AppInstallation {
    let added: AppCatalog
    let rules: String
    /// The deployment's apps file; created if it is missing.
    let appsFile: String
    /// The deployment's folder of rule files; created if it is missing.
    let rulesFolder: String
    /// Whether files are copied. Otherwise rule files are linked, and credentials are named by their absolute path, so
    /// that changes in the folder take effect.
    let copies: Bool

    /// Rule files first: an app without rules would lose its first events.
    func run() throws {
        let files = FileManager.default
        var catalog =
            files.fileExists(atPath: appsFile) ? try AppCatalog.load(path: appsFile, using: []) : AppCatalog([])
        let folder = URL(filePath: appsFile).deletingLastPathComponent()
        try files.createDirectory(atPath: rulesFolder, withIntermediateDirectories: true)
        for app in added.apps {
            let name = "\(app.id).yaml"
            try replace(
                URL(filePath: rulesFolder).appending(path: name), with: URL(filePath: rules).appending(path: name))
            let credentials = folder.appending(path: "app-credentials/\(app.id)")
            var copied: [String: String] = [:]
            let placed = try app.mappingFiles { file in
                guard copies else { return URL(filePath: file).standardizedFileURL.path }
                let name = URL(filePath: file).lastPathComponent
                guard copied[name, default: file] == file else {
                    throw CommandError("\(app.id): \(copied[name] ?? "") and \(file) have one name; rename one", .input)
                }
                copied[name] = file
                let copy = credentials.appending(path: name)
                try files.createDirectory(
                    at: credentials, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
                try? files.removeItem(at: copy)
                try files.copyItem(at: URL(filePath: file), to: copy)
                try files.setAttributes([.posixPermissions: 0o600], ofItemAtPath: copy.path)
                return copy.path
            }
            catalog = AppCatalog(catalog.apps.filter { $0.id != app.id } + [placed])
        }
        try Data(catalog.yaml(below: folder.standardizedFileURL.path).utf8)
            .write(to: URL(filePath: appsFile), options: .atomic)
    }

    private func replace(_ target: URL, with source: URL) throws {
        let files = FileManager.default
        // A reader never sees a missing or incomplete file.
        let draft = target.deletingLastPathComponent().appending(path: ".\(target.lastPathComponent).new")
        try? files.removeItem(at: draft)
        if copies {
            try files.copyItem(at: source, to: draft)
        } else {
            try files.createSymbolicLink(at: draft, withDestinationURL: source.standardizedFileURL)
        }
        guard rename(draft.path, target.path) == 0 else { throw CommandError("\(target.path): cannot be replaced") }
    }
}

extension AppConfiguration {
    /// Returns the configuration with other paths of its files.
    fileprivate func mappingFiles(_ place: (String) throws -> String) rethrows -> AppConfiguration {
        let apns = try apns.map { apns in
            switch apns.credential {
            case .key(let key):
                APNsAppConfiguration(
                    topic: apns.topic, keyID: key.keyID, teamID: key.teamID, keyFile: try place(key.keyFile),
                    environments: apns.environments)
            case .certificates(let certificates):
                APNsAppConfiguration(
                    topic: apns.topic,
                    certificates: try certificates.mapValues {
                        APNsCertificate(certificateFile: try place($0.certificateFile), keyFile: try place($0.keyFile))
                    })
            }
        }
        let fcm = try fcm.map {
            FCMAppConfiguration(
                serviceAccountFile: try place($0.serviceAccountFile), messagesPerMinute: $0.messagesPerMinute)
        }
        let webPush = try webPush.map {
            WebPushAppConfiguration(
                keyFile: try place($0.keyFile), subject: $0.subject, homePage: $0.homePage)
        }
        let webhooks = try webhooks.map {
            WebhookConfiguration(name: $0.name, url: $0.url, secretFile: try place($0.secretFile), kinds: $0.kinds)
        }
        return AppConfiguration(
            id: id, apns: apns, fcm: fcm, webPush: webPush, bearer: try bearer.map { try $0.mappingFile(place) },
            publishers: try publishers.map { try $0.mappingFile(place) }, webOrigins: webOrigins,
            hasReportQueue: hasReportQueue, webhooks: webhooks, eventBorrowers: eventBorrowers)
    }
}

extension BearerVerification {
    fileprivate func mappingFile(_ place: (String) throws -> String) rethrows -> BearerVerification {
        guard case .file(let file) = keys else { return self }
        return BearerVerification(
            algorithm: algorithm, keys: .file(try place(file)), issuer: issuer, audience: audience,
            userClaim: userClaim, appClaim: appClaim, leeway: leeway)
    }
}
