import HTTPAuth
import Hummingbird
import PushProtocol
import RuleEngine
import RuleLanguage

/// `/v1/preferences`: the caller's choices, and the available options.
struct PreferenceRoutes: Sendable {
    let store: PreferenceStore
    let currentRules: CurrentRules
    let gate: BearerAuthenticator
    let now: @Sendable () async throws -> Timestamp

    func add(to router: Router<BasicRequestContext>) {
        router.get("v1/preferences") { request, context in
            await gate.answer(request, context) { caller in
                let settings = try await store.settings(of: PersonKey(caller))
                return .json(.ok, .preferences(settings, defaults(of: caller)))
            }
        }
        router.patch("v1/preferences") { request, context in
            await gate.answer(request, context) { caller in
                let patch = try await request.read(
                    atMost: PreferencesPatch.maximumSize, as: PreferencesPatch.mediaType, PreferencesPatch.init)
                let (defaults, now) = (defaults(of: caller), try await now())
                let settings = try await store.change(PersonKey(caller)) { settings in
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
                return .json(.ok, .preferences(settings, defaults))
            }
        }
    }

    private func defaults(of caller: Caller) -> AppDefaults {
        currentRules.ruleSets[caller.app]?.defaults ?? .standard
    }
}

extension PersonKey {
    init(_ caller: Caller) { self.init(app: caller.app, user: caller.user) }
}

extension Request {
    /// Reads a JSON body. Throws a 400 if the body cannot be read.
    ///
    /// - Parameter other: another accepted media type for JSON.
    func read<Body>(
        atMost limit: Int, as other: String? = nil, _ parse: ([UInt8]) throws(WireError) -> Body
    ) async throws(APIError) -> Body {
        let bytes = try await json(upTo: limit, or: other)
        do {
            return try parse(bytes)
        } catch {
            throw APIError(status: .badRequest, message: error.description)
        }
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
