import FoundationEssentials
import HTTPAuth
import Hummingbird
import PushProtocol
import RegistryStore

/// The operator API, authorised by API keys: reads, deactivates and erases devices, and counts registrations. Tokens
/// are masked.
struct OperatorRoutes: Sendable {
    let store: RegistrationStore
    let keys: APIKeyAuthenticator
    let registrationCounts: RegistrationCounts

    func add(to router: Router<BasicRequestContext>) {
        router.get("v1/operator/devices") { request, context in
            await keys.answer(request, context, .readDevices) { query in
                let user = AppUser(app: try query.app(), user: try query.user())
                return (user.app, { ["devices": .array(try await store.history(of: user).map(\.json))] })
            }
        }
        router.delete("v1/operator/devices") { request, context in
            await keys.answer(request, context, .eraseUsers) { query in
                let user = AppUser(app: try query.app(), user: try query.user())
                return (user.app, { ["erased": .int(Int64(try await store.erase(user)))] })
            }
        }
        router.post("v1/operator/devices/{device}/deactivate") { request, context in
            await keys.answer(request, context, .deactivateDevices) { query in
                let app = try query.app()
                let device = try context.uuid(inPath: "device")
                return (app, { ["deactivated": .bool(try await deactivate(device, of: app))] })
            }
        }
        router.get("v1/operator/counts") { request, context in
            await keys.answer(request, context, .readCounts) { query in
                let app = try query.has("app") ? query.app() : nil
                return (app, { try await counts(of: app) })
            }
        }
    }

    private func deactivate(_ device: UUID, of app: AppID) async throws -> Bool {
        guard let isChanged = try await store.deactivate(device, of: app) else {
            throw APIError(status: .notFound, message: "the app has no such device")
        }
        return isChanged
    }

    private func counts(of app: AppID?) async throws -> JSONValue {
        let figures = try await registrationCounts.figures()
        return [
            "counted_at": .string(RFC3339.string(from: figures.countedAt)),
            "counts": .array(figures.counts.filter { app == nil || $0.group.app == app }.map(\.json)),
        ]
    }
}

extension RegistrationCounts.Count {
    fileprivate var json: JSONValue {
        [
            "app": .string(group.app.rawValue), "kind": .string(group.kind.rawValue),
            "environment": .string(group.environment.rawValue), "state": .string(group.state.rawValue),
            "count": .int(Int64(number)),
        ]
    }
}

extension HistoryEntry {
    fileprivate var json: JSONValue {
        switch self {
        case .record(let record): record.json
        case .unreadable(let device, let reason):
            ["device": .optional(device?.uuidString.lowercased()), "unreadable": .string(reason)]
        }
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
            "platform": .optional(platform?.rawValue),
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
