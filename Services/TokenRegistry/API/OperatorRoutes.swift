import FoundationEssentials
import Hummingbird
import PushProtocol

/// What an operator or a server may ask, with an API key that is for it: a user's devices, their end, the end of all that is
/// known of a user, and how many devices there are. Tokens are masked.
struct OperatorRoutes: Sendable {
    private let store: RegistrationStore
    private let keys: KeyGate
    private let census: Census

    init(store: RegistrationStore, keys: KeyGate, census: Census) {
        self.store = store
        self.keys = keys
        self.census = census
    }

    func add(to router: Router<BasicRequestContext>) {
        router.get("v1/operator/devices") { request, context in
            await answer(request, context, .readDevices) { query in
                let user = try query.user()
                return (user.app, { ["devices": .array(try await store.history(of: user).map(\.json))] })
            }
        }
        router.delete("v1/operator/devices") { request, context in
            await answer(request, context, .eraseUsers) { query in
                let user = try query.user()
                return (user.app, { ["erased": .int(Int64(try await store.erase(user)))] })
            }
        }
        router.post("v1/operator/devices/{device}/deactivate") { request, context in
            await answer(request, context, .deactivateDevices) { query in
                let app = try query.app()
                guard let device = context.parameters.get("device").flatMap({ UUID(uuidString: $0) }) else {
                    throw APIRefusal(status: .badRequest, message: "the device in the path is not a UUID")
                }
                return (app, { ["deactivated": .bool(try await deactivate(device, of: app))] })
            }
        }
        router.get("v1/operator/counts") { request, context in
            await answer(request, context, .readCounts) { query in
                let app = try query.has("app") ? query.app() : nil
                return (app, { try await counts(of: app) })
            }
        }
    }

    private func deactivate(_ device: UUID, of app: AppID) async throws -> Bool {
        guard let isChanged = try await store.deactivate(device, of: app) else {
            throw APIRefusal(status: .notFound, message: "the app has no such device")
        }
        return isChanged
    }

    private func counts(of app: AppID?) async throws -> JSONValue {
        let figures = try await census.figures()
        return [
            "counted_at": .string(RFC3339.string(from: figures.countedAt)),
            "counts": .array(figures.counts.filter { app == nil || $0.group.app == app }.map(\.json)),
        ]
    }

    /// Something that was asked for, about one app or, `nil`, about all.
    private typealias Question = (app: AppID?, answer: () async throws -> JSONValue)

    /// Reads what is asked, lets a key through that is for that, and answers.
    private func answer(
        _ request: Request, _ context: BasicRequestContext, _ operation: APIKey.Operation,
        _ read: (Query) throws -> Question
    ) async -> Response {
        await .answering(context, failure: "an operator could not be answered") {
            // Who has no key learns nothing of what a question should look like.
            let caller = try await keys.caller(request.bearerToken, to: operation)
            let question = try read(Query(request))
            try keys.admit(caller, to: operation, of: question.app)
            return .json(.ok, try await question.answer())
        }
    }
}

/// The query of a request, read by name.
private struct Query {
    private let parameters: [String: String]

    /// Of a name that is there twice, the first counts.
    init(_ request: Request) {
        let pairs = request.uri.queryParameters.map { (String($0.key), String($0.value)) }
        parameters = Dictionary(pairs) { first, _ in first }
    }

    func has(_ name: String) -> Bool { parameters[name] != nil }

    func app() throws(APIRefusal) -> AppID {
        guard let app = parameters["app"].flatMap({ AppID(rawValue: $0) }) else {
            throw APIRefusal(status: .badRequest, message: "the query parameter app is missing or not an app id")
        }
        return app
    }

    func user() throws(APIRefusal) -> AppUser {
        let app = try app()
        guard let user = parameters["user"].flatMap({ UserID(rawValue: $0) }) else {
            throw APIRefusal(status: .badRequest, message: "the query parameter user is missing or not a user id")
        }
        return AppUser(app: app, user: user)
    }
}

extension Census.Count {
    fileprivate var json: JSONValue {
        [
            "app": .string(group.app.rawValue), "kind": .string(group.kind.rawValue),
            "environment": .string(group.environment.rawValue), "state": .string(group.state.rawValue),
            "count": .int(Int64(number)),
        ]
    }
}

extension RegistrationRecord {
    fileprivate var json: JSONValue {
        [
            "device": .string(registration.device.uuidString.lowercased()),
            "provider": .string(registration.provider.rawValue),
            "environment": .string(registration.environment.rawValue),
            "kind": .string(registration.kind.rawValue),
            "token": state == .erased ? .null : .string(registration.token.masked),
            "installation": .optional(registration.installation?.rawValue),
            "scope": .optional(scope),
            "topic": .optional(registration.topic),
            "locale": .optional(locale),
            "time_zone": .optional(timeZone),
            "app_version": .optional(appVersion),
            "registered_at": .string(RFC3339.string(from: registration.registeredAt.date)),
            "stale_since": .optional(staleSince.map(RFC3339.string(from:))),
            "state": .string(state.rawValue),
            "reason": .optional(reason),
            "changed_at": .string(RFC3339.string(from: changedAt)),
        ]
    }
}

extension JSONValue {
    static func optional(_ text: String?) -> JSONValue { text.map(JSONValue.string) ?? .null }
}
