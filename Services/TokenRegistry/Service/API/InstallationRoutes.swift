import Foundation
import HTTPAuth
import Hummingbird
import Providers
import PushProtocol
import RegistryStore

/// `/v1/installations`: the caller's registrations by installation. `/v1/registrations`: ends a single one.
///
/// The bearer token names the user and the app, so that callers reach their own registrations only. A `PUT` of another
/// user's installation takes it over, as any registration does.
struct InstallationRoutes: Sendable {
    let store: RegistrationStore
    let gate: BearerAuthenticator
    let changes: RateLimiter<Caller>
    var webPush = WebPushTerms()

    func add(to router: Router<BasicRequestContext>) {
        router.get("v1/installations") { request, context in
            await gate.answer(request, context) { caller in
                let records = try await store.registrations(of: AppUser(app: caller.app, user: caller.user))
                return .json(.ok, .installations(records))
            }
        }
        let group = router.group("v1/installations/{installation}")
        group.put { request, context in
            await gate.answer(request, context) { caller in
                try changes.check(caller)
                let installation = try installation(of: caller, context)
                let body = try await read(request, of: caller)
                let user = AppUser(app: caller.app, user: caller.user)
                let claims = body.claims(of: user, on: installation.id)
                let replaced = try await store.replace(installation, of: caller.user, with: claims)
                changes.spend(replaced.changes, of: caller)
                let refused = claims.refusedActivities(stored: replaced.records)
                return .json(
                    replaced.isNew ? .created : .ok, .installation(installation.id, replaced.records, refused: refused))
            }
        }
        group.get { request, context in
            await gate.answer(request, context) { caller in
                let installation = try installation(of: caller, context)
                let records = try await store.registrations(on: installation, of: caller.user)
                guard !records.isEmpty else {
                    throw APIError(
                        status: .notFound,
                        message: "you have nothing registered on this installation; PUT it to register")
                }
                return .json(.ok, .installation(installation.id, records))
            }
        }
        group.delete { request, context in
            await gate.answer(request, context) { caller in
                try changes.check(caller)
                changes.spend(try await store.end(try installation(of: caller, context), of: caller.user), of: caller)
                return Response(status: .noContent)
            }
        }
        router.delete("v1/registrations/{registration}") { request, context in
            await gate.answer(request, context) { caller in
                let device = try context.uuid(inPath: "registration")
                try changes.check(caller)
                let user = AppUser(app: caller.app, user: caller.user)
                changes.spend(try await store.end(device, of: user), of: caller)
                return Response(status: .noContent)
            }
        }
    }

    private func installation(
        of caller: Caller, _ context: BasicRequestContext
    ) throws(APIError) -> RegistrationStore.Installation {
        RegistrationStore.Installation(app: caller.app, id: try context.id(inPath: "installation"))
    }

    private func read(_ request: Request, of caller: Caller) async throws(APIError) -> InstallationBody {
        let policy = webPush.policy
        let body = try await request.read(atMost: InstallationBody.maximumSize) { bytes throws(WireError) in
            try InstallationBody(bytes, policy: policy)
        }
        if let path = body.webPush, !webPush.isServed(caller.app) {
            throw APIError(status: .unprocessableContent, message: "\(path): \(WebPushTerms.refusal)")
        }
        if let contradiction = body.contradiction {
            throw APIError(status: .unprocessableContent, message: contradiction.description)
        }
        return body
    }
}

/// Which Web Push subscriptions are registered.
struct WebPushTerms: Sendable {
    /// The push services that a subscription may name.
    var policy = WebPushEndpoint.Policy.publicInternet
    /// Whether the app has a Web Push key. Without it, no process could send to the subscription.
    var isServed: @Sendable (AppID) -> Bool = { _ in true }

    static let refusal =
        "the app has no Web Push key, so nothing would reach this browser; the operator adds webpush to the app's entry "
        + "of the apps file"
}

extension JSONValue {
    /// - Parameter refused: registrations of the request that were not stored. The member is absent without any.
    fileprivate static func installation(
        _ id: InstallationID, _ records: [RegistrationRecord], refused: [JSONValue] = []
    ) -> JSONValue {
        // The latest registration has the current device data.
        let latest = records.max { $0.registration.registeredAt < $1.registration.registeredAt }
        var members: [String: JSONValue] = [
            "id": .string(id.rawValue),
            "locale": .optional(latest?.locale),
            "time_zone": .optional(latest?.timeZone),
            "app_version": .optional(latest?.appVersion),
            "registrations": .array(records.map(\.own)),
        ]
        if !refused.isEmpty { members["refused"] = .array(refused) }
        return .object(members)
    }

    /// - Parameter records: grouped by installation, with those without one last.
    fileprivate static func installations(_ records: [RegistrationRecord]) -> JSONValue {
        var named: [(id: InstallationID, records: [RegistrationRecord])] = []
        var nameless: [RegistrationRecord] = []
        for record in records {
            guard let id = record.registration.installation else {
                nameless.append(record)
                continue
            }
            if named.last?.id == id {
                named[named.count - 1].records.append(record)
            } else {
                named.append((id, [record]))
            }
        }
        return [
            "installations": .array(named.map { installation($0.id, $0.records) }),
            "registrations": .array(nameless.map(\.own)),
        ]
    }
}

extension [RegistrationRequest] {
    /// The requests for Live Activities that were not stored, with the reason: their tokens belong to other users.
    fileprivate func refusedActivities(stored: [RegistrationRecord]) -> [JSONValue] {
        let devices = Set(stored.map(\.registration.device))
        return filter { $0.kind == .liveActivity && !devices.contains($0.device) }.map { claim in
            [
                "kind": .string(claim.kind.rawValue), "scope": .optional(claim.scope),
                "reason": "the Live Activity belongs to another user on another installation; end it on this device",
            ]
        }
    }
}

extension RegistrationRecord {
    /// A registration as its user sees it, with a masked token.
    fileprivate var own: JSONValue {
        [
            "id": .string(registration.device.uuidString.lowercased()),
            "kind": .string(registration.kind.rawValue),
            "provider": .string(registration.provider.rawValue),
            "environment": .string(registration.environment.rawValue),
            "token": .string(registration.token.masked),
            "topic": .optional(registration.topic),
            "scope": .optional(scope),
            "platform": .optional(platform?.rawValue),
            "registered_at": .string(RFC3339.string(from: registration.registeredAt.date)),
        ]
    }
}
