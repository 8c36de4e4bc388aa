import HTTPAuth
import Hummingbird
import PushProtocol
import RuleEngine
import RuleLanguage

/// `/v1/preferences`: the caller's choices, and the available options. `/v1/operator/preferences` is the same for the
/// app's backend, with an API key; the query names the app and the user.
struct PreferenceRoutes: Sendable {
    static let backendPath: RouterPath = "v1/operator/preferences"

    let store: PreferenceStore
    let currentRules: CurrentRules
    let gate: BearerAuthenticator
    let keys: APIKeyAuthenticator
    let now: @Sendable () async throws -> Timestamp

    func add(to router: Router<BasicRequestContext>) {
        router.get("v1/preferences") { request, context in
            await gate.answer(request, context) { .json(.ok, try await preferences(of: PersonKey($0))) }
        }
        router.patch("v1/preferences") { request, context in
            await gate.answer(request, context) { .json(.ok, try await change(PersonKey($0), by: request)) }
        }
        router.get(Self.backendPath) { request, context in
            await keys.answer(request, context, .readPreferences) { query in
                let person = try PersonKey(query)
                return (person.app, { try await preferences(of: try known(person)) })
            }
        }
        router.patch(Self.backendPath) { request, context in
            await keys.answer(request, context, .writePreferences) { query in
                let person = try PersonKey(query)
                return (person.app, { try await change(try known(person), by: request) })
            }
        }
    }

    private func preferences(of person: PersonKey) async throws -> JSONValue {
        .preferences(try await store.settings(of: person), defaults(of: person.app))
    }

    /// Applies the request's merge patch and returns the new preferences.
    private func change(_ person: PersonKey, by request: Request) async throws -> JSONValue {
        let patch = try await request.read(
            atMost: PreferencesPatch.maximumSize, as: PreferencesPatch.mediaType, PreferencesPatch.init)
        let (defaults, now) = (defaults(of: person.app), try await now())
        let settings = try await store.change(person) { settings in
            let changed: PersonalSettings
            do throws(WireError) { changed = try patch.applied(to: settings, now: now) } catch {
                throw APIError(status: .badRequest, message: error.description)
            }
            if let excess = try PreferencesPatch.excess(before: settings, after: changed) {
                throw APIError(status: .unprocessableContent, message: excess.description)
            }
            if let contradiction = patch.contradiction(defaults, after: changed, now: now) {
                throw APIError(status: .unprocessableContent, message: contradiction.description)
            }
            return changed
        }
        return .preferences(settings, defaults)
    }

    /// Throws a 404 for an app that is not configured, so that a mistyped app stores nothing.
    private func known(_ person: PersonKey) throws(APIError) -> PersonKey {
        guard currentRules.ruleSets[person.app] != nil else { throw APIError.unknownApp }
        return person
    }

    private func defaults(of app: AppID) -> AppDefaults {
        currentRules.ruleSets[app]?.defaults ?? .standard
    }
}

extension PersonKey {
    init(_ caller: Caller) { self.init(app: caller.app, user: caller.user) }

    /// The person that the query parameters `app` and `user` name.
    fileprivate init(_ query: QueryParameters) throws(APIError) {
        self.init(app: try query.app(), user: try query.user())
    }
}

extension JSONValue {
    /// The user's choices, and all options with their effective values.
    fileprivate static func preferences(_ settings: PersonalSettings, _ defaults: AppDefaults) -> JSONValue {
        let types = defaults.types.map { name, type -> (String, JSONValue) in
            func isOn(_ channel: PersonalSettings.Channel) -> JSONValue {
                .bool(type.isCritical || settings.wants(name, by: channel, defaults))
            }
            let ways = PersonalSettings.Channel.allCases.map { ($0.rawValue, isOn($0)) }
            return (
                name,
                [
                    "about": .string(type.about), "on": isOn(.push), "default": .bool(type.isOn),
                    "critical": .bool(type.isCritical),
                    "channels": .object(Dictionary(ways) { first, _ in first }),
                ]
            )
        }
        let channels = PersonalSettings.Channel.allCases.map { ($0.rawValue, JSONValue.bool(settings.allows($0))) }
        return [
            "chosen": settings.json,
            "enabled": .bool(settings.isOn),
            "channels": .object(Dictionary(channels) { first, _ in first }),
            "types": .object(Dictionary(types) { first, _ in first }),
            "zone": .string((settings.zone ?? defaults.zone).name),
        ]
    }
}
