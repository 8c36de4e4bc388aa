import Foundation
import Glibc
import HTTP2
import Providers
import PushProtocol
import PushSending
import ServiceKit

/// The checks of the apps file, its credentials, and certificate files. Findings name files, never their content.
struct CredentialDoctor: Sendable {
    private static let expiryWarning = 30.0

    let catalog: AppCatalog
    var now = Timestamp.now

    /// The apps file of `--apps` or `HELIOGRAPH_APPS`, or the finding that it cannot be read.
    static func catalog(_ path: String?) -> (catalog: AppCatalog?, finding: Finding) {
        let check = "apps"
        guard path != nil || Environment.isSet(.apps) else {
            return (
                nil,
                .skipped(check, "HELIOGRAPH_APPS is not set", cure: "name the apps file with --apps or HELIOGRAPH_APPS")
            )
        }
        do {
            let catalog = try Environment.apps(path)
            guard !catalog.apps.isEmpty else {
                return (catalog, .warning(check, "the apps file lists no app", cure: "add an app to the file"))
            }
            return (catalog, .ok(check, "the apps file lists \(catalog.apps.count) apps"))
        } catch {
            return (
                nil, .error(check, "\(error)", cure: "correct the apps file; Services/Pushctl/README.md lists its keys")
            )
        }
    }

    func findings() async -> [Finding] {
        var findings: [Finding] = []
        for app in catalog.apps {
            switch app.apns?.credential {
            case .key(let key): findings.append(await signingKey(key, of: app.id))
            case .certificates(let certificates):
                for (environment, certificate) in certificates.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
                    findings.append(
                        Self.certificate(
                            certificate.certificateFile, "push certificate of \(app.id) (\(environment.rawValue))",
                            now: now, cure: "create a new certificate in Apple's developer account"))
                }
            case nil: break
            }
            if let fcm = app.fcm { findings.append(await serviceAccount(fcm.serviceAccountFile, of: app.id)) }
            if let webPush = app.webPush { findings.append(vapidKey(webPush.keyFile, of: app.id)) }
            for verification in app.bearer + app.publishers {
                if case .file(let path) = verification.keys, !FileManager.default.isReadableFile(atPath: path) {
                    findings.append(
                        .error(
                            "credentials", "\(path): the bearer key of \(app.id) cannot be read",
                            cure: "check the path and the file's permissions"))
                }
            }
        }
        return findings.orOK("credentials", "no app has credentials of a provider") + permissions() + quotas()
            + Self.trustFiles(now: now)
    }

    private func signingKey(_ key: APNsSigningKey, of app: AppID) async -> Finding {
        let name = "\(key.keyFile): the signing key of \(app)"
        guard let pem = try? String(contentsOfFile: key.keyFile, encoding: .utf8) else {
            return .error("credentials", "\(name) cannot be read", cure: "check the path and the file's permissions")
        }
        let token = try? await APNsProviderToken.sign(
            pem: pem, keyID: key.keyID, teamID: key.teamID, issuedAt: now)
        guard token != nil else {
            return .error(
                "credentials", "\(name) is not an ES256 key (PKCS#8 PEM)",
                cure: "download the .p8 file from Apple again")
        }
        return .ok("credentials", "the signing key \(key.keyID) of \(app) signs")
    }

    private func vapidKey(_ path: String, of app: AppID) -> Finding {
        guard let contents = FileManager.default.contents(atPath: path) else {
            return .error(
                "credentials", "\(path): the VAPID key of \(app) cannot be read",
                cure: "check the path and the file's permissions")
        }
        do throws(VAPIDKey.Problem) {
            let key = try VAPIDKey(file: contents)
            return .ok("credentials", "the VAPID key of \(app) has the public key \(key.publicKey)")
        } catch {
            return .error("credentials", "\(path): \(error)", cure: "write the private key into the file, as one line")
        }
    }

    private func serviceAccount(_ path: String, of app: AppID) async -> Finding {
        let cure = "create a new key of the service account in Google's console"
        do {
            let account = try ServiceAccount.load(path: path)
            guard (try? await OAuthGrant.form(for: account, now: now)) != nil else {
                return .error("credentials", "\(path): the private key of \(app) is not an RSA key (PEM)", cure: cure)
            }
            return .ok("credentials", "the service account of \(app) signs for the project \(account.projectID)")
        } catch {
            return .error("credentials", "\(error)", cure: cure)
        }
    }

    /// The finding about a certificate file (PEM).
    static func certificate(_ path: String, _ name: String, now: Timestamp, cure: String) -> Finding {
        let check = "certificates"
        guard let pem = FileManager.default.contents(atPath: path) else {
            return .error(
                check, "\(path): the \(name) cannot be read", cure: "check the path and the file's permissions")
        }
        let expiry: Date
        do throws(HTTP2Error) { expiry = try CertificateFile.expiry(of: Array(pem)) } catch {
            return .error(check, "\(path): the \(name) \(error)", cure: cure)
        }
        let days = CertificateExpiry.days(until: expiry, now: now)
        let text = "the \(name) expires on \(RFC3339.seconds(from: expiry))"
        switch days {
        case ..<0: return .error(check, "\(path): the \(name) expired on \(RFC3339.seconds(from: expiry))", cure: cure)
        case ..<expiryWarning: return .warning(check, "\(path): \(text)", cure: cure)
        default: return .ok(check, text)
        }
    }

    /// Certificates that broker and providers are verified with.
    private static func trustFiles(now: Timestamp) -> [Finding] {
        let environment = ProcessInfo.processInfo.environment
        return ["AMQP_CA_FILE", "PROVIDER_CA_FILE"].compactMap { name in
            environment[name].flatMap { path in
                path.isEmpty
                    ? nil
                    : certificate(
                        path, "certificate of \(name)", now: now,
                        cure: "replace the file by the authority's new certificate")
            }
        }
    }

    /// Private keys that every user of the machine can read.
    private func permissions() -> [Finding] {
        let files = catalog.apps.flatMap { app -> [String] in
            let apns: [String] =
                switch app.apns?.credential {
                case .key(let key): [key.keyFile]
                case .certificates(let certificates): certificates.values.map(\.keyFile)
                case nil: []
                }
            return apns + (app.fcm.map { [$0.serviceAccountFile] } ?? []) + (app.webPush.map { [$0.keyFile] } ?? [])
        }
        return Set(files).sorted().compactMap { path in
            var status = stat()
            guard stat(path, &status) == 0, status.st_mode & 0o004 != 0 else { return nil }
            return .warning(
                "credentials", "\(path): every user of this machine can read it", cure: "chmod o-rwx \(path)")
        }
    }

    /// Apps of one project with different quotas.
    private func quotas() -> [Finding] {
        var quotas: [String: Set<Int?>] = [:]
        for app in catalog.apps {
            guard let fcm = app.fcm, let account = try? ServiceAccount.load(path: fcm.serviceAccountFile) else {
                continue
            }
            quotas[account.projectID, default: []].insert(fcm.messagesPerMinute)
        }
        return quotas.filter { $0.value.count > 1 }.keys.sorted().map { project in
            Finding.warning(
                "quotas", "the apps of the project \(project) have different quotas; the lowest applies to all",
                cure: "give each the same messages-per-minute in the apps file")
        }.orOK("quotas", "\(quotas.count) projects of FCM have one quota each")
    }

    // MARK: - Hosts

    /// The hosts that the services reach for these apps.
    func hosts() -> [String] {
        var hosts: Set<String> = []
        for app in catalog.apps {
            if let apns = app.apns {
                if apns.environments.contains(.production) { hosts.insert("api.push.apple.com") }
                if apns.environments.contains(.development) { hosts.insert("api.sandbox.push.apple.com") }
            }
            if let fcm = app.fcm {
                hosts.insert("fcm.googleapis.com")
                let account = try? ServiceAccount.load(path: fcm.serviceAccountFile)
                if let host = account.flatMap({ URL(string: $0.tokenURI)?.host() }) { hosts.insert(host) }
            }
            for verification in app.bearer + app.publishers {
                if case .url(let url) = verification.keys, let host = URL(string: url)?.host() { hosts.insert(host) }
            }
        }
        return hosts.sorted()
    }
}
