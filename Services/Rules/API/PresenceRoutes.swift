import HTTPAuth
import Hummingbird
import PushProtocol
import RuleEngine
import RuleLanguage

/// `/v1/presence/{device}` and `/v1/receipts`: open apps of the caller, and opened or dismissed notifications.
struct PresenceRoutes: Sendable {
    let presence: PresenceStore
    let receipts: ReceiptStore
    let currentRules: CurrentRules
    /// Absent in tests without a bus.
    let reporter: ReceiptReporter?
    let gate: BearerAuthenticator
    let now: @Sendable () async throws -> Timestamp

    func add(to router: Router<BasicRequestContext>) {
        let group = router.group("v1/presence/{device}")
        group.put { request, context in
            await gate.answer(request, context) { caller in
                let device: InstallationID = try context.id(inPath: "device")
                let body = try await request.read(atMost: HeartbeatBody.maximumSize, HeartbeatBody.init)
                let now = try await now()
                let expiry = now + body.lease
                let isKept = try await presence.keep(
                    PersonKey(caller), on: device, viewing: body.viewing, until: expiry, now: now)
                guard isKept else {
                    throw APIError(
                        status: .unprocessableContent,
                        message: "the app is open on \(PresenceStore.mostDevices) of your devices, the maximum")
                }
                return .json(.ok, ["expires_at": .string(RFC3339.string(from: expiry.date))])
            }
        }
        group.delete { request, context in
            await gate.answer(request, context) { caller in
                try await presence.end(PersonKey(caller), on: try context.id(inPath: "device"))
                return Response(status: .noContent)
            }
        }
        router.post("v1/receipts") { request, context in
            await gate.answer(request, context) { caller in
                let body = try await request.read(atMost: ReceiptsBody.maximumSize, ReceiptsBody.init)
                let person = PersonKey(caller)
                let now = try await now()
                try await receipts.keep(
                    body.receipts, of: person, clearsShown: currentRules.clearsRead(person.app), now: now)
                if let ruleSet = currentRules.ruleSets.ruleSets[person.app] {
                    try await receipts.finishItems(body.receipts, of: person, by: ruleSet, now: now)
                }
                if let reporter, reporter.isReported(person.app) {
                    try await reporter.publish(try await receipts.reports(body.receipts, of: person), of: person)
                }
                return Response(status: .noContent)
            }
        }
    }
}
