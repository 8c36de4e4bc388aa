import Foundation
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import RegistryStore

/// An event revokes pushes in transit if and only if the user lost the device.
@Suite(.timeLimit(.minutes(2))) struct RevocationTests {
    typealias Fixture = StoreFixture

    /// Takes all events.
    private static func events(_ pool: PostgresPool) async throws -> [DeviceEvent] {
        let seen = Seen()
        _ = try await OutboxStore(pool).drain { announcements in
            await seen.note(announcements.map(\.event))
            return .init(numbers: announcements.map(\.number))
        }
        return await seen.events
    }

    private actor Seen {
        private(set) var events: [DeviceEvent] = []
        func note(_ events: [DeviceEvent]) { self.events += events }
    }

    /// The user's only registration, as a push addresses it.
    private static func target(_ user: String, _ store: RegistrationStore) async throws -> Registration {
        let key = Fixture.user(user)
        let devices = try await store.devices(of: [key])[0]
        return try #require(devices.first)
    }

    /// Registers `a`, runs the loss, and returns the revocations.
    private static func revocations(
        on installation: String? = nil,
        _ lose: (RegistrationStore, PostgresPool) async throws -> Void
    ) async throws -> (target: Registration, events: [DeviceEvent]) {
        try await Fixture.withStore { store, pool in
            try await store.register([Fixture.claim("a", "01", on: installation)])
            let target = try await target("a", store)
            #expect(try await events(pool).map(\.revokes) == [nil])
            try await lose(store, pool)
            return (target, try await events(pool))
        }
    }

    @Test func `another user's registration revokes pushes to the previous user`() async throws {
        let (target, events) = try await Self.revocations { store, _ in
            try await store.register([Fixture.claim("b", "01")])
        }
        #expect(events.map(\.change) == [.replaced, .registered])
        #expect(events.map(\.revokes) == [target.registeredAt, nil])
        #expect(events[0].device?.id == target.device && events[0].user == target.user)
    }

    @Test func `a sign-out in each form revokes pushes`() async throws {
        let installation = RegistrationStore.Installation(app: Fixture.app, id: InstallationID(rawValue: "phone")!)
        let forms: [(String, (RegistrationStore) async throws -> Void)] = [
            ("unregister", { try await $0.unregister([Fixture.claim("a", "01")]) }),
            ("the installation is deleted", { try await $0.end(installation, of: UserID(rawValue: "a")!) }),
            ("another user signs in", { try await $0.register([Fixture.claim("b", "02", on: "phone")]) }),
            (
                "the installation drops it",
                {
                    let claim = Fixture.claim("a", "02", kind: .voip, on: "phone")
                    _ = try await $0.replace(installation, of: UserID(rawValue: "a")!, with: [claim])
                }
            ),
        ]
        for (form, leave) in forms {
            let (target, events) = try await Self.revocations(on: "phone") { store, _ in try await leave(store) }
            let told = events.filter { $0.change == .signedOut }
            #expect(told.map(\.revokes) == [target.registeredAt], "\(form)")
            #expect(told.map(\.device?.id) == [target.device], "\(form)")
        }
    }

    @Test func `an erasure revokes pushes, also to registrations that had ended`() async throws {
        let (target, events) = try await Self.revocations { store, _ in
            try await store.register([Fixture.claim("a", "02")])
            let word = Invalidation(
                app: Fixture.app, device: Fixture.claim("a", "02").device, notRegisteredSince: .now + .seconds(60),
                reason: "Unregistered")
            _ = try await store.deactivate([word])
            try await store.erase(Fixture.user("a"))
        }
        let erased = events.filter { $0.change == .erased }
        #expect(Set(erased.map(\.device?.id)) == [target.device, Fixture.claim("a", "02").device])
        #expect(erased.allSatisfy { $0.revokes != nil })
        #expect(events.filter { $0.change != .erased }.allSatisfy { $0.revokes == nil })
    }

    @Test func `invalidation, staleness, eviction, rotation and correction revoke nothing`() async throws {
        try await Fixture.withStore(devicesPerUser: 1) { store, pool in
            let old = Timestamp.now + .seconds(-86_400 * 300)
            try await store.register([Fixture.claim("a", "01", on: "phone", at: .now + .seconds(-60))])
            try await store.register([Fixture.claim("a", "02", on: "phone")])
            _ = try await store.correct(device: Fixture.claim("a", "02").device, of: Fixture.app, to: .development)
            try await store.register([Fixture.claim("a", "03")])
            let word = Invalidation(
                app: Fixture.app, device: Fixture.claim("a", "03").device, notRegisteredSince: .now + .seconds(60),
                reason: "Unregistered")
            _ = try await store.deactivate([word])
            try await store.register([Fixture.claim("b", "04", .fcm, at: old)])
            let sweep = SweepStore(pool)
            while case .more = try await sweep.advance(now: .now) {}
            let events = try await Self.events(pool)
            #expect(
                Set(events.map(\.change)) == [.registered, .replaced, .corrected, .evicted, .deactivated, .stale])
            #expect(events.allSatisfy { $0.revokes == nil })
        }
    }

    @Test func `ended registrations are revoked when their user leaves or another registers them`() async throws {
        let evicted = Fixture.claim("a", "01")
        for isTaken in [false, true] {
            try await Fixture.withStore(devicesPerUser: 1) { store, pool in
                try await store.register([evicted])
                let target = try await Self.target("a", store)
                try await store.register([Fixture.claim("a", "02")])
                #expect(try await Self.events(pool).last?.change == .evicted)
                if isTaken {
                    try await store.register([Fixture.claim("b", "01")])
                } else {
                    try await store.unregister([evicted])
                }
                let first = try #require(try await Self.events(pool).first)
                #expect(first.change == (isTaken ? .replaced : .signedOut))
                #expect(first.revokes == target.registeredAt && first.device?.active == false)
            }
        }
    }

    @Test func `a device's loss also revokes its earlier tokens and moved registrations`() async throws {
        try await Fixture.withStore { store, pool in
            try await store.register([Fixture.claim("a", "01", on: "phone", at: .now + .seconds(-60))])
            let rotated = try await Self.target("a", store)
            try await store.register([Fixture.claim("a", "02", on: "phone", at: .now + .seconds(-50))])
            let misplaced = try await Self.target("a", store)
            _ = try await store.correct(device: misplaced.device, of: Fixture.app, to: .development)
            let current = try await Self.target("a", store)
            try await store.register([Fixture.claim("a", "09", on: "tablet")])
            _ = try await Self.events(pool)
            try await store.register([Fixture.claim("b", "03", on: "phone")])
            let revoked = try await Self.events(pool).filter { $0.revokes != nil }
            #expect(Set(revoked.map(\.device?.id)) == [rotated.device, misplaced.device, current.device])
            #expect(revoked.allSatisfy { $0.user.rawValue == "a" && $0.change == .signedOut })
        }
    }

    @Test func `a dropped registration that had ended is revoked when another user registers it`() async throws {
        let installation = RegistrationStore.Installation(app: Fixture.app, id: InstallationID(rawValue: "phone")!)
        let (target, events) = try await Self.revocations(on: "phone") { store, pool in
            try await pool.execute(
                "UPDATE registry.registration SET state = 'evicted', state_reason = 'r', ended_at = registered_at")
            let claim = Fixture.claim("a", "02", kind: .voip, on: "phone")
            _ = try await store.replace(installation, of: UserID(rawValue: "a")!, with: [claim])
            try await store.register([Fixture.claim("b", "01")])
        }
        #expect(events.map(\.change) == [.evicted, .registered, .replaced, .registered])
        #expect(events.map(\.revokes) == [nil, nil, target.registeredAt, nil])
        #expect(events[2].device?.id == target.device && events[2].user == target.user)
    }

    @Test func `an update of an installation does not revoke earlier registrations`() async throws {
        try await Fixture.withStore { store, pool in
            let installation = RegistrationStore.Installation(app: Fixture.app, id: InstallationID(rawValue: "phone")!)
            try await store.register([Fixture.claim("a", "01", on: "phone", at: .now + .seconds(-60))])
            for token in ["02", "02", "02"] {
                let claim = Fixture.claim("a", token, on: "phone")
                _ = try await store.replace(installation, of: claim.user, with: [claim])
            }
            #expect(try await Self.events(pool).allSatisfy { $0.revokes == nil })
            // The dropped registration is revoked; the earlier tokens still belong to the user.
            let voip = Fixture.claim("a", "03", kind: .voip, on: "phone")
            _ = try await store.replace(installation, of: voip.user, with: [voip])
            var revoked: [UUID] = []
            for event in try await Self.events(pool) where event.revokes != nil {
                if let device = event.device { revoked.append(device.id) }
            }
            #expect(revoked == [Fixture.claim("a", "02").device])
        }
    }

    @Test func `given two owners within a millisecond, then only the first one is revoked`() async throws {
        try await Fixture.withStore { store, pool in
            let claim = Fixture.claim("a", "01", at: .now + .seconds(-5))
            try await store.register([claim])
            let owners: [(user: String, leaves: Bool)] = [("b", false), ("c", true), ("a", true), ("a", false)]
            for (user, leaves) in owners {
                // The time of the previous registration, plus some microseconds.
                try await pool.execute(
                    """
                    UPDATE registry.registration SET user_id = \(user), state = 'active', state_reason = NULL,
                        registered_at = registered_at + interval '3 microseconds'
                    """)
                if leaves {
                    try await pool.execute(
                        "UPDATE registry.registration SET state = 'signed-out', state_reason = 'x'")
                }
            }
            var limit = Timestamp(milliseconds: 0)
            for event in try await Self.events(pool) { limit = max(limit, event.revokes ?? limit) }
            let last = try await Self.target("a", store)
            #expect(last.registeredAt > limit)
            #expect(last.registeredAt == claim.at! + .milliseconds(4))
        }
    }

    @Test func `concurrent registrations of one token by several users differ by a millisecond`() async throws {
        try await Fixture.withStore { store, pool in
            var seen: [(user: UserID, at: Timestamp)] = []
            for _ in 0..<60 {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for user in ["a", "b", "c"] {
                        group.addTask { try await store.register([Fixture.claim(user, "01")]) }
                    }
                    try await group.waitForAll()
                }
                let row = try #require(
                    try await pool.query("SELECT user_id, registered_at FROM registry.registration").first)
                seen.append((try row.decode(at: 0), Timestamp(try row.decode(Date.self, at: 1))))
            }
            var limits: [UserID: Timestamp] = [:]
            var limit = Timestamp(milliseconds: 0)
            var events: [DeviceEvent] = []
            while case let more = try await Self.events(pool), !more.isEmpty { events += more }
            for event in events {
                guard let revokes = event.revokes else { continue }
                limits[event.user] = revokes
                limit = max(limit, revokes)
            }
            let owner = try #require(seen.last)
            #expect(owner.at > limit)
            for (user, at) in seen where user != owner.user {
                let limit = try #require(limits[user])
                #expect(limit >= at)
            }
        }
    }
}
