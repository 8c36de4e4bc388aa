import Foundation
import HTTPAuth
import Logging
import Primitives
import Providers
import PushProtocol
import PushSending
import RuleDryRun
import ServiceConnections
import ServiceKit

/// Checks the folder of `pushctl app new`: the apps file, the rule files, the credentials and the example events.
struct AppFolderCheck {
    let folder: String
    /// Whether generated credentials are findings.
    var needsRealCredentials = false

    /// One line for each mistake: place, problem and cure.
    private(set) var findings: [String] = []
    /// One line for each correct part.
    private(set) var notes: [String] = []
    /// The apps; `nil` if the file has mistakes.
    private(set) var catalog: AppCatalog?

    var appsFile: String { "\(folder)/apps.yaml" }
    var rules: String { "\(folder)/rules" }

    var json: JSONValue {
        [
            "folder": .string(folder), "apps": .strings(catalog?.ids.map(\.rawValue) ?? []),
            "mistakes": .array(findings.map(Self.json)), "notes": .strings(notes),
        ]
    }

    /// Splits `file:line: problem`. Some mistakes concern no line.
    static func json(_ finding: String) -> JSONValue {
        let parts = finding.wholeMatch(of: /(.+?):([0-9]{1,9}): (.*)/.dotMatchesNewlines())
        return [
            "file": .optional(parts.map { String($0.1) }), "line": .number(parts.flatMap { Int($0.2) }),
            "problem": .string(parts.map { String($0.3) } ?? finding),
        ]
    }

    mutating func run() async {
        await checkApps()
        checkRulesAndEvents()
    }

    private mutating func checkApps() async {
        do throws(ConfigurationError) {
            catalog = try AppCatalog.load(path: appsFile, using: .all)
        } catch {
            findings += error.problems
        }
        guard let catalog else { return }
        if catalog.apps.isEmpty { findings.append("\(appsFile):1: has no app; add one below “apps”") }
        for app in catalog.apps {
            var parts: [String] = []
            if let apns = app.apns, await check(apns, of: app.id) { parts.append("APNs") }
            if let fcm = app.fcm, await check(fcm, of: app.id) { parts.append("FCM") }
            if let webPush = app.webPush, check(webPush, of: app.id) { parts.append("Web Push") }
            if await checkBearer(of: app) { parts.append("bearer tokens") }
            if checkWebhooks(of: app) { parts.append("webhooks") }
            if app.apns == nil, app.fcm == nil, app.webPush == nil {
                report("\(app.id):", "the app has no credentials; add apns, fcm or webpush, or nobody gets a push")
            }
            if app.bearer.isEmpty {
                report("\(app.id):", "the app has no bearer key; add bearer, or no phone can register")
            }
            notes.append("apps.yaml: \(app.id): \(parts.isEmpty ? "no credentials" : parts.joined(separator: ", "))")
        }
    }

    /// Reports a problem at the first line of the apps file that contains `text`.
    private mutating func report(_ text: String, _ problem: String) {
        let content = (try? String(contentsOfFile: appsFile, encoding: .utf8)) ?? ""
        let lines = content.split(separator: "\n", omittingEmptySubsequences: false)
        let line = lines.firstIndex { $0.contains(text) && !$0.drop(while: \.isWhitespace).hasPrefix("#") }
        findings.append("\(appsFile):\((line ?? 0) + 1): \(problem)")
    }

    private mutating func check(_ apns: APNsAppConfiguration, of app: AppID) async -> Bool {
        let count = findings.count
        if apns.topic.wholeMatch(of: NewApp.bundlePattern) == nil {
            report(apns.topic, "topic: “\(apns.topic)” is not a bundle id such as com.example.app")
        }
        guard case .key(let key) = apns.credential else { return findings.count == count }
        checkMode(key.keyFile)
        let pem = (try? String(contentsOfFile: key.keyFile, encoding: .utf8)) ?? ""
        let signed = try? await APNsProviderToken.sign(
            pem: pem, keyID: key.keyID, teamID: key.teamID, issuedAt: Timestamp.now)
        if signed == nil {
            findings.append(
                "\(key.keyFile):1: is not an APNs key; download the .p8 file from Apple's developer account (Keys)")
        }
        if needsRealCredentials, key.teamID == NewApp.simulatedTeam {
            report(key.keyID, "the APNs key is generated; create one at Apple, and set key-id, team-id and key-file")
        }
        return findings.count == count
    }

    private mutating func check(_ fcm: FCMAppConfiguration, of app: AppID) async -> Bool {
        let count = findings.count
        let file = fcm.serviceAccountFile
        checkMode(file)
        do throws(CredentialError) {
            let account = try ServiceAccount.load(path: file)
            _ = try await OAuthGrant.assertion(for: account, now: .now)
            if needsRealCredentials, account.clientEmail.hasSuffix("@\(NewApp.simulatedDomain)") {
                findings.append(
                    "\(file):1: the service account is generated; download one from the Firebase console "
                        + "(Project settings, Service accounts)")
            }
        } catch {
            // CredentialError quotes no key.
            findings.append("\(file):1: \(error); download the JSON key again from the Firebase console")
        }
        return findings.count == count
    }

    private mutating func check(_ webPush: WebPushAppConfiguration, of app: AppID) -> Bool {
        let count = findings.count
        checkMode(webPush.keyFile)
        do throws(VAPIDKey.Problem) {
            _ = try VAPIDKey(file: (try? Data(contentsOf: URL(filePath: webPush.keyFile))) ?? Data())
        } catch {
            findings.append("\(webPush.keyFile):1: \(error)")
        }
        do throws(VAPIDKey.Problem) {
            _ = try VAPIDContact(webPush.subject)
        } catch {
            report(webPush.subject, "subject: \(error)")
        }
        return findings.count == count
    }

    private mutating func checkBearer(of app: AppConfiguration) async -> Bool {
        let count = findings.count
        func fromFiles(_ list: [BearerVerification]) -> [BearerVerification] {
            list.filter { if case .file = $0.keys { true } else { false } }
        }
        let local = AppConfiguration(
            id: app.id, bearer: fromFiles(app.bearer), publishers: fromFiles(app.publishers))
        for verification in local.bearer + local.publishers {
            if case .file(let file) = verification.keys, verification.algorithm == .hs256 { checkMode(file) }
        }
        for holder in TokenHolder.allCases {
            do throws(ConfigurationError) {
                _ = try await BearerVerifier(
                    AppCatalog([local]), of: holder, logger: Logger(label: "check") { _ in SwiftLogNoOpLogHandler() })
            } catch {
                for problem in error.problems { report(holder.member, problem) }
            }
        }
        return findings.count == count && !app.bearer.isEmpty
    }

    private mutating func checkWebhooks(of app: AppConfiguration) -> Bool {
        let count = findings.count
        let settings = try? Environment.settings([.webhookPrivateNetworks, .allowPlaintext])
        let privateNetworks = (try? settings?.boolean(.webhookPrivateNetworks)) ?? false
        let plaintext = (try? settings?.boolean(.allowPlaintext)) ?? false
        for webhook in app.webhooks {
            if let refusal = webhook.url.refusal(privateNetworks: privateNetworks, plaintext: plaintext) {
                report(webhook.url.text, "the webhook \(webhook.name) is refused: \(refusal); use a public https URL")
            }
            checkMode(webhook.secretFile)
            let text = (try? String(contentsOfFile: webhook.secretFile, encoding: .utf8)) ?? ""
            if WebhookSecret.secrets(in: text) == nil {
                findings.append(
                    "\(webhook.secretFile):1: \(WebhookSecret.rule), one a line; "
                        + "create one with: echo whsec_$(openssl rand -base64 32)")
            }
        }
        return findings.count == count && !app.webhooks.isEmpty
    }

    /// Reports a secret file that every user of the machine can read.
    private mutating func checkMode(_ file: String) {
        let attributes = try? FileManager.default.attributesOfItem(atPath: file)
        guard let mode = attributes?[.posixPermissions] as? Int, mode & 0o004 != 0 else { return }
        findings.append("\(file):1: is readable by all users of the machine; run chmod 600 \(file)")
    }

    private mutating func checkRulesAndEvents() {
        let examples: ExampleEvents
        do {
            examples = try ExampleEvents(rules: rules)
        } catch {
            findings += error.lines.map { "\(rules)/\($0)" }
            return
        }
        notes.append("rules: \(examples.apps.sorted().map { "\($0).yaml" }.joined(separator: ", ")), no mistakes")
        if let catalog {
            for app in catalog.ids where !examples.apps.contains(app) {
                report("\(app):", "the app has no rule file; write \(rules)/\(app).yaml")
            }
            for app in examples.apps.sorted() where catalog[app] == nil {
                findings.append("\(rules)/\(app).yaml:1: \(appsFile) has no app \(app); add it, or delete the file")
            }
        }
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "\(folder)/events")) ?? []
        for name in names.sorted() where name.hasSuffix(".json") { check(event: name, by: examples) }
    }

    private mutating func check(event name: String, by examples: ExampleEvents) {
        let path = "\(folder)/events/\(name)"
        let event: JSONValue
        do {
            event = try WireCoding.decode(
                JSONValue.self, from: Array(FileManager.default.contents(atPath: path) ?? Data()))
        } catch {
            findings.append("\(path):1: \(error); write a structured CloudEvent")
            return
        }
        guard let type = event.object?["type"]?.string else {
            findings.append("\(path):1: has no “type”; set the event type, such as message.sent")
            return
        }
        let apps = examples.apps(listing: type)
        guard let app = apps.first else {
            findings.append(
                "\(path):1: no rule file lists the event “\(type)”; add it below “events”, or correct the type")
            return
        }
        do {
            let decisions = try examples.decisions(on: event, of: app)
            if decisions.isEmpty {
                findings.append("\(path):1: no rule notifies anyone of this event; correct the event, or add a rule")
            }
            notes += decisions.map { "events/\(name): \($0)" }
        } catch {
            findings.append("\(path):1: the event is refused: \(error); correct the event")
        }
    }
}
