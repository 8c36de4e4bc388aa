import ArgumentParser
import Foundation
import PushProtocol
import PushSending

/// `pushctl app new`: writes the folder of a new app.
struct AppNewCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "new", abstract: "Write a folder with an app, its credentials, two rules and example events.",
        discussion: """
            Asks on a terminal for missing answers. Without a terminal, with --simulated or --json, missing credentials are \
            generated; only the provider simulator accepts them. An existing folder is not changed.

                pushctl app new my-app
                pushctl app new my-app --bundle-id com.example.my-app --team-id FGHIJ67890 --key-file AuthKey_ABCDE12345.p8
            """)

    @Argument(help: "The app's name in Heliograph: 1–63 characters of a–z, 0–9 and -.") var name: String
    @Option(help: "The folder (default: the name).") var folder: String?
    @Option(help: "The bundle id of the iOS app.") var bundleId: String?
    @Option(help: "The id of the Apple developer team.") var teamId: String?
    @Option(help: "The id of the APNs key (default: from the name AuthKey_<id>.p8 of the key file).") var keyId: String?
    @Option(help: "The APNs key, a .p8 file; it is copied.") var keyFile: String?
    @Option(help: "The package name of the Android app.") var package: String?
    @Option(help: "The JSON key file of the Firebase service account; it is copied.") var serviceAccount: String?
    @Flag(help: "Generate the missing credentials, and ask nothing.") var simulated = false
    @OptionGroup var output: OutputOption

    func run() async throws {
        guard let app = AppID(rawValue: name) else {
            throw CommandError("“\(name)” is not an app's name: \(AppID.rule)", .usage)
        }
        var answers = self
        if !simulated, !output.json, isatty(STDIN_FILENO) == 1 { answers.askForMissing() }
        let writer = try await answers.writer(of: app)
        let folder = folder ?? name
        try writer.write(to: folder)
        let kind = writer.new.isSimulated ? ", with credentials for the simulator" : ""
        try output.write(
            ["app": .string(name), "folder": .string(folder), "simulated": .bool(writer.new.isSimulated)],
            text: ["wrote \(folder)\(kind); its README.md has the next commands"])
    }

    private mutating func askForMissing() {
        func ask(_ question: String, _ value: inout String?) {
            guard value == nil else { return }
            // Unbuffered, unlike print.
            FileHandle.standardOutput.write(Data("\(question): ".utf8))
            let answer = readLine()?.trimmingCharacters(in: .whitespaces) ?? ""
            if !answer.isEmpty { value = answer }
        }
        ask("Bundle id of the iOS app (empty: none, or simulated)", &bundleId)
        if bundleId != nil {
            ask("APNs key, a .p8 file (empty: simulated)", &keyFile)
            if keyFile != nil {
                if keyId == nil { keyId = Self.keyID(inNameOf: keyFile ?? "") }
                ask("Key id", &keyId)
                ask("Team id", &teamId)
            }
        }
        ask("JSON key of the Firebase service account (empty: none, or simulated)", &serviceAccount)
        if serviceAccount != nil { ask("Package name of the Android app", &package) }
    }

    /// Checks the answers and reads the files.
    func writer(of app: AppID) async throws -> AppFolderWriter {
        let hasApple = bundleId != nil || keyFile != nil
        let hasGoogle = serviceAccount != nil || package != nil
        // Without any answer, the app has both platforms.
        let all = !hasApple && !hasGoogle
        var new = NewApp(app: app, apns: nil, hasFCM: hasGoogle || all, package: package, isSimulated: false)
        var apnsKey: Data?
        if hasApple || all {
            let bundle = bundleId ?? "com.example.\(app)"
            guard bundle.wholeMatch(of: NewApp.bundlePattern) != nil else {
                throw CommandError("--bundle-id “\(bundle)” is not a bundle id such as com.example.app", .usage)
            }
            new.apns = NewApp.APNs(
                bundle: bundle, keyID: NewApp.simulatedKeyID(of: app), teamID: NewApp.simulatedTeam)
            if let keyFile {
                guard bundleId != nil else { throw CommandError("--key-file needs --bundle-id", .usage) }
                let keyID = try appleID(keyId ?? Self.keyID(inNameOf: keyFile), "--key-id")
                let teamID = try appleID(teamId, "--team-id")
                apnsKey = try read(keyFile)
                let pem = String(decoding: apnsKey ?? Data(), as: UTF8.self)
                guard (try? await APNsProviderToken.sign(pem: pem, keyID: keyID, teamID: teamID, issuedAt: .now)) != nil
                else { throw CommandError("\(keyFile): is not an APNs key (.p8) as downloaded from Apple", .input) }
                new.apns = NewApp.APNs(bundle: bundle, keyID: keyID, teamID: teamID)
            } else {
                guard keyId == nil, teamId == nil else {
                    throw CommandError("--key-id and --team-id need --key-file", .usage)
                }
                new.isSimulated = true
            }
        } else if keyId != nil || teamId != nil {
            throw CommandError("--key-id and --team-id need --key-file and --bundle-id", .usage)
        }
        let account = try serviceAccount.map(read)
        if let account, let serviceAccount {
            _ = try await OAuthGrant.assertion(
                for: try ServiceAccount(Array(account), path: serviceAccount), now: .now)
        }
        if new.hasFCM, account == nil { new.isSimulated = true }
        return AppFolderWriter(new: new, apnsKey: apnsKey, serviceAccount: account)
    }

    private func read(_ file: String) throws -> Data {
        guard let data = FileManager.default.contents(atPath: file) else {
            throw CommandError("\(file): cannot be read", .notFound)
        }
        return data
    }

    private func appleID(_ id: String?, _ option: String) throws -> String {
        guard let id else { throw CommandError("\(option) is missing; it has 10 characters of A–Z and 0–9", .usage) }
        guard id.wholeMatch(of: /[A-Z0-9]{10}/) != nil else {
            throw CommandError("\(option) “\(id)” is not an id of 10 characters of A–Z and 0–9", .usage)
        }
        return id
    }

    /// Returns the key id in the name that Apple gives the file: AuthKey_ABCDE12345.p8.
    static func keyID(inNameOf file: String) -> String? {
        let name = file.split(separator: "/").last ?? ""
        return name.wholeMatch(of: /AuthKey_([A-Z0-9]{10})\.p8/).map { String($0.1) }
    }
}
