import ArgumentParser
import FoundationEssentials
import HTTPAuth
import Primitives
import PushProtocol

/// `pushctl keys …`: the API keys of the operator APIs.
struct KeysCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "keys", abstract: "Manage API keys of the registry, of rules and of events-api.",
        discussion: """
            Needs DATABASE_URL of the schema's owner. Each service has its own keys and operations. Keys of rules are
            valid for events-api too:

            registry  \(APIKeyService.registry.operations.map(\.rawValue).joined(separator: ", "))
            rules     \(APIKeyService.rules.operations.map(\.rawValue).joined(separator: ", "))
            """,
        subcommands: [Create.self, List.self, Revoke.self])

    struct Create: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Create a key and print it once. Only its digest is stored.")
        @OptionGroup var options: ServiceOption
        @Option(help: "A description, such as the caller's name.") var name: String
        @Option(help: "The app that the key is valid for.") var app: String?
        @Flag(help: "Valid for all apps.") var allApps = false
        @Option(help: "An operation to allow; may be repeated.")
        var may: [String]
        @Option(help: "Days until the key expires.") var days: Int?
        @OptionGroup var output: OutputOption

        func run() async throws {
            guard (1...128).contains(name.utf8.count) else {
                throw CommandError("--name must have 1 to 128 bytes", .usage)
            }
            let app = try scope()
            let service = options.service
            let operations = try may.map(service.operation)
            guard days.map({ (1...36_500).contains($0) }) ?? true else {
                throw CommandError("--days must be 1 to 36500", .usage)
            }
            let expiry = days.map { Date().addingTimeInterval(Double($0) * 86_400) }
            var random = SystemRandomNumberGenerator()
            let key = APIKey(using: &random)
            let name = name
            try await withDatabase {
                try await APIKeyStore($0, schema: service.schema).add(
                    key, name: name, app: app, operations: operations, expiresAt: expiry)
            }
            // Only the key goes to standard output, so that it can be piped into a secret store.
            OutputOption.remark("key \(key.id); the secret is shown only once, store it safely")
            try output.write(
                ["id": .string(key.id), "secret": .string(key.secret), "expires_at": .time(expiry)],
                text: [key.secret])
        }

        private func scope() throws -> AppID? {
            switch (app, allApps) {
            case (nil, true): return nil
            case (let name?, false): return try AppID(named: name)
            case (nil, false): throw CommandError("give --app or --all-apps", .usage)
            case (.some, true): throw CommandError("either --app or --all-apps, not both", .usage)
            }
        }
    }

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List all keys of a service, the latest first, without their secrets.")
        @OptionGroup var options: ServiceOption
        @OptionGroup var output: OutputOption

        func run() async throws {
            let service = options.service
            let entries = try await withDatabase { try await APIKeyStore($0, schema: service.schema).list() }
            let now = Date()
            try output.write(
                ["keys": .array(entries.map { $0.json(now: now) })],
                text: APIKeyStore.StoredAPIKey.table(entries, now: now).lines(
                    orNone: "no keys; create one with pushctl keys create"))
        }
    }

    struct Revoke: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Revoke a key permanently and immediately.")
        @OptionGroup var options: ServiceOption
        @Argument(help: "The key's id, as `list` prints it.") var id: String
        @OptionGroup var output: OutputOption

        func run() async throws {
            // Accepts a whole key as well as its id.
            let id = APIKey(id)?.id ?? id
            let service = options.service
            let isKnown = try await withDatabase { try await APIKeyStore($0, schema: service.schema).revoke(id) }
            guard isKnown else {
                throw CommandError(
                    "the \(service.rawValue) has no key with that id; pushctl keys list --service \(service.rawValue) lists them",
                    .notFound
                )
            }
            try output.write(["revoked": .string(id)], text: ["revoked \(id)"])
        }
    }

    struct ServiceOption: ParsableArguments {
        @Option(help: "The service: registry or rules.") var service = APIKeyService.registry
    }
}

extension APIKeyService: ExpressibleByArgument {}

extension APIKeyService {
    /// Parses an operation that keys of this service may have.
    func operation(_ word: String) throws(CommandError) -> APIKey.Operation {
        guard let operation = APIKey.Operation(rawValue: word), operations.contains(operation) else {
            throw CommandError(
                "--may for \(rawValue) must be one of \(operations.map(\.rawValue).joined(separator: ", "))", .usage)
        }
        return operation
    }
}

extension APIKeyStore.StoredAPIKey {
    /// `active`, `expired` or `revoked`.
    func state(now: Date) -> String {
        let isOver = expiresAt.map { $0 <= now } ?? false
        return revokedAt != nil ? "revoked" : isOver ? "expired" : "active"
    }

    static func table(_ keys: [APIKeyStore.StoredAPIKey], now: Date) -> TextTable {
        var table = TextTable([
            .left("id"), .left("state"), .left("app"), .left("operations"), .left("name"), .left("expires"),
            .left("last used"), .left("revoked"),
        ])
        for key in keys {
            table.add([
                key.id, key.state(now: now), key.app?.rawValue ?? "every app", key.operations.joined(separator: ","),
                key.name, key.expiresAt.map(RFC3339.string(from:)), key.lastUsedAt.map(RFC3339.string(from:)),
                key.revokedAt.map(RFC3339.string(from:)),
            ])
        }
        return table
    }

    func json(now: Date) -> JSONValue {
        [
            "id": .string(id), "state": .string(state(now: now)), "app": .optional(app?.rawValue),
            "operations": .strings(operations), "name": .string(name), "created_at": .time(createdAt),
            "expires_at": .time(expiresAt), "last_used_at": .time(lastUsedAt), "revoked_at": .time(revokedAt),
        ]
    }
}
