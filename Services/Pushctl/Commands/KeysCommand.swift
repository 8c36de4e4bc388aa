import ArgumentParser
import Foundation
import PushProtocol

/// `pushctl keys …`: the API keys of servers and operators.
struct KeysCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "keys", abstract: "API keys for the operator APIs of the registry and of rules.",
        discussion: """
            They need DATABASE_URL to be that of the schema's owner. Each service has its own keys.

            registry  \(KeyedService.registry.operations.map(\.rawValue).joined(separator: ", "))
            rules     \(KeyedService.rules.operations.map(\.rawValue).joined(separator: ", "))
            """,
        subcommands: [Create.self, List.self, Revoke.self])

    struct Create: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Makes a key and prints it, this once: only its digest is kept.")
        @OptionGroup var choice: Choice
        @Option(help: "What it is for, for people: who calls with it.") var name: String
        @Option(help: "The app that it is for.") var app: String?
        @Flag(help: "It is for every app.") var allApps = false
        @Option(help: "What it may be used for; may be given several times.")
        var may: [String]
        @Option(help: "After how many days it expires.") var days: Int?

        func run() async throws {
            guard (1...128).contains(name.utf8.count) else { throw Refusal("--name has 1 to 128 bytes") }
            let app = try scope()
            let service = choice.service
            let operations = try may.map(service.operation)
            guard days.map({ (1...36_500).contains($0) }) ?? true else { throw Refusal("--days is 1 to 36500") }
            let expiry = days.map { Date().addingTimeInterval(Double($0) * 86_400) }
            var random = SystemRandomNumberGenerator()
            let key = APIKey(using: &random)
            let name = name
            try await withDatabase {
                try await KeyStore($0, of: service).add(
                    key, name: name, app: app, operations: operations, expiresAt: expiry)
            }
            // The key alone on standard output: it can be piped into a secret store.
            FileHandle.standardError.write(
                Data("key \(key.id), shown this once: keep it as a secret\n".utf8))
            print(key.secret)
        }

        private func scope() throws -> AppID? {
            switch (app, allApps) {
            case (nil, true): return nil
            case (let name?, false): return try AppID(named: name)
            case (nil, false): throw Refusal("for which app? Say --app, or --all-apps")
            case (.some, true): throw Refusal("either --app or --all-apps, not both")
            }
        }
    }

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lists all keys of a service, the latest first; none of them in clear.")
        @OptionGroup var choice: Choice

        func run() async throws {
            let service = choice.service
            let entries = try await withDatabase { try await KeyStore($0, of: service).list() }
            if entries.isEmpty { print("there is no key; pushctl keys create makes one") }
            let now = Date()
            for entry in entries { print(entry.line(now: now)) }
        }
    }

    struct Revoke: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Revokes a key for good, at once.")
        @OptionGroup var choice: Choice
        @Argument(help: "The key's id, as `list` prints it.") var id: String

        func run() async throws {
            // Who pastes the whole key means it, and it is in their shell's history now.
            let id = APIKey(id)?.id ?? id
            let service = choice.service
            let isKnown = try await withDatabase { try await KeyStore($0, of: service).revoke(id) }
            guard isKnown else {
                throw Refusal(
                    "the \(service.rawValue) has no key with that id; pushctl keys list --service \(service.rawValue) prints them"
                )
            }
            print("revoked \(id)")
        }
    }

    /// The service that a command is about.
    struct Choice: ParsableArguments {
        @Option(help: "Whose keys: registry or rules.") var service = KeyedService.registry
    }
}

extension KeyedService: ExpressibleByArgument {}

extension KeyedService {
    /// What a key of this service may be used for, as an operator writes it.
    func operation(_ word: String) throws(Refusal) -> APIKey.Operation {
        guard let operation = APIKey.Operation(rawValue: word), operations.contains(operation) else {
            throw Refusal("--may, for \(rawValue), is one of \(operations.map(\.rawValue).joined(separator: ", "))")
        }
        return operation
    }
}

extension KeyStore.Entry {
    /// `4k7v0q2m9x1c  active  family-portal  devices:read  support desk  (until …, last used …)`
    func line(now: Date) -> String {
        var notes: [String] = []
        if let revokedAt { notes.append("revoked \(RFC3339.string(from: revokedAt))") }
        if let expiresAt { notes.append("until \(RFC3339.string(from: expiresAt))") }
        notes.append(lastUsedAt.map { "last used \(RFC3339.string(from: $0))" } ?? "never used")
        let isOver = expiresAt.map { $0 <= now } ?? false
        let state = revokedAt != nil ? "revoked" : isOver ? "expired" : "active"
        return [id, state, app?.rawValue ?? "every app", operations.joined(separator: ","), name]
            .joined(separator: "  ") + "  (\(notes.joined(separator: ", ")))"
    }
}
