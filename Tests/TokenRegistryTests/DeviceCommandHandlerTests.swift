import Foundation
import Logging
import Messaging
import PushProtocol
import ServiceKit
import Testing
import TestSupport

@testable import RegistryStore
@testable import TokenRegistry

@Suite(.timeLimit(.minutes(2))) struct DeviceCommandHandlerTests {
    typealias Fixture = StoreFixture

    static func inbound(_ command: DeviceCommand.Command, app: AppID = Fixture.app) throws -> Inbound {
        let id = DerivedID.uuid5(DerivedID.namespace, ["\(command)"])
        let message = DeviceCommand(trace: Trace(id: id, correlation: "e", causation: "e"), app: app, command: command)
        return Inbound(
            queue: .registryDevices, exchange: "devices", routingKey: message.routingKey, body: try message.wireBody())
    }

    static func registrant(_ token: String, at: Timestamp? = nil) -> RegistrationPayload {
        RegistrationPayload(
            user: UserID(rawValue: "a")!, provider: .apns, environment: .production, token: DeviceToken(secret: token),
            kind: .voip, installation: InstallationID(rawValue: "phone"), locale: "de-CH", at: at)
    }

    private func handle(
        _ inbound: [Inbound], _ store: RegistrationStore
    ) async throws -> [Disposition] {
        let handler = DeviceCommandHandler(store: store, apps: [Fixture.app], logger: Logger(label: "tests"))
        let batch = try inbound.map { Delivery(inbound: $0, message: try handler.decode($0)) }
        return try await handler.handle(batch).map(\.disposition)
    }

    @Test func `a campaign of a revoked event is cancelled, and no other`() async throws {
        try await Fixture.withStore { store, pool in
            let campaigns = CampaignStore(pool)
            var ids: [UUID] = []
            for _ in 0..<2 {
                let notification = AudienceFixture.notification(.everyone, campaign: UUID())
                let audience = try #require(notification.audience)
                _ = try await campaigns.open(notification, to: audience)
                ids.append(audience.campaign)
            }
            #expect(ids[0] != ids[1])
            let state = { (id: UUID) in try await campaigns.summary(of: id)?.state }
            let other = try Self.inbound(.cancel(campaign: ids[1]), app: AppID(rawValue: "other")!)
            let answers = try await handle(
                [Self.inbound(.cancel(campaign: ids[0])), Self.inbound(.cancel(campaign: UUID())), other], store)
            #expect(answers.prefix(2) == [.done, .done])
            #expect(try await state(ids[0]) == "cancelled")
            #expect(try await state(ids[1]) != "cancelled")
            // A repeat changes nothing.
            #expect(try await handle([Self.inbound(.cancel(campaign: ids[0]))], store) == [.done])
            #expect(try await state(ids[0]) == "cancelled")
        }
    }

    @Test func `a command with another app than its routing key is rejected`() async throws {
        try await Fixture.withStore { store, _ in
            let handler = DeviceCommandHandler(store: store, apps: [Fixture.app], logger: Logger(label: "tests"))
            let message = DeviceCommand(
                trace: Trace(id: UUID(), correlation: "e", causation: "e"), app: Fixture.app,
                command: .register(Self.registrant("01")))
            func isTaken(_ routingKey: String) throws -> Bool {
                let inbound = Inbound(
                    queue: .registryDevices, exchange: "devices", routingKey: routingKey, body: try message.wireBody())
                do throws(WireError) {
                    _ = try handler.decode(inbound)
                    return true
                } catch {
                    #expect(error.code == "wrong-routing-key")
                    return false
                }
            }
            let keys = [
                "command.register", "command.register.\(Fixture.app)", "command.register.bank", "command.unregister",
            ]
            let taken = try keys.map(isTaken)
            #expect(taken == [true, true, false, false])
        }
    }

    @Test func `a batch is applied in order, and a repeat changes nothing`() async throws {
        try await Fixture.withStore { store, _ in
            let at = Timestamp.now + .seconds(-60)
            let user = UserID(rawValue: "a")!
            let batch = [
                try Self.inbound(.register(Self.registrant("01", at: at))),
                try Self.inbound(
                    .unregister(
                        user: user, provider: .apns, environment: .production, token: DeviceToken(secret: "01"),
                        at: at + .seconds(1))),
                try Self.inbound(.register(Self.registrant("02", at: at + .seconds(2)))),
            ]
            for _ in 0..<2 {
                #expect(try await handle(batch, store) == [.done, .done, .done])
                #expect(try await store.tokens(of: "a") == ["02"])
            }
            let record = try #require(try await store.records(of: Fixture.user("a")).first)
            #expect(record.registration.kind == .voip && record.locale == "de-CH")
            #expect(record.registration.registeredAt == at + .seconds(2))
        }
    }

    @Test func `a command of an unconfigured app is dead-lettered, and other apps continue`() async throws {
        let other = try #require(AppID(rawValue: "other"))
        try await Fixture.withStore { store, _ in
            let dispositions = try await handle(
                [
                    try Self.inbound(.register(Self.registrant("01")), app: other),
                    try Self.inbound(.register(Self.registrant("02"))),
                ], store)
            guard case .deadLetter(let reason) = dispositions[0] else { return #expect(Bool(false)) }
            #expect(reason.code == "unknown-app" && dispositions[1] == .done)
            #expect(try await store.tokens(of: "a") == ["02"])
        }
    }

    @Test func `a value that cannot be stored is rejected with the member's name`() async throws {
        try await Fixture.withStore { store, _ in
            var registrants: [(String, RegistrationPayload)] = [("command.token", Self.registrant("XY"))]
            for (name, path) in [
                ("kind", \RegistrationPayload.appVersion), ("scope", \.scope), ("topic", \.topic), ("locale", \.locale),
                ("timeZone", \.timeZone), ("appVersion", \.appVersion),
            ] {
                var registrant = Self.registrant("01")
                if name == "kind" { registrant.kind = .fid } else { registrant[keyPath: path] = "a b" }
                registrants.append(("command.\(name)", registrant))
            }
            let handler = DeviceCommandHandler(store: store, apps: [Fixture.app], logger: Logger(label: "tests"))
            for (path, registrant) in registrants {
                let inbound = try Self.inbound(.register(registrant))
                let error = #expect(throws: WireError.self) { try handler.decode(inbound) }
                #expect(
                    error.map { "\($0)".hasPrefix("\(path) is invalid") } == true,
                    "\(path): \(String(describing: error))")
            }
        }
    }
}
