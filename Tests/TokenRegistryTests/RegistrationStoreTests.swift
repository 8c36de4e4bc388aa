import Foundation
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import RegistryStore

@Suite(.timeLimit(.minutes(2))) struct RegistrationStoreTests {
    typealias Fixture = StoreFixture

    @Test func `registering twice gives one registration with the later time`() async throws {
        try await Fixture.withStore { store, _ in
            let claim = Fixture.claim("a", "01")
            try await store.register([claim])
            let first = try #require(try await store.records(of: Fixture.user("a")).first)
            try await store.register([claim])
            let history = try await store.records(of: Fixture.user("a"))
            #expect(history.count == 1)
            #expect(history[0].registration.registeredAt >= first.registration.registeredAt)
            #expect(history[0].changedAt == first.changedAt)
        }
    }

    @Test func `a token registered by another user belongs to that user only`() async throws {
        try await Fixture.withStore { store, _ in
            try await store.register([Fixture.claim("a", "01"), Fixture.claim("a", "02")])
            try await store.register([Fixture.claim("b", "01")])
            #expect(try await store.tokens(of: "a") == ["02"])
            #expect(try await store.tokens(of: "b") == ["01"])
        }
    }

    @Test func `a user can sign out only their own devices`() async throws {
        try await Fixture.withStore { store, _ in
            try await store.register([Fixture.claim("a", "01")])
            try await store.unregister([Fixture.claim("b", "01")])
            #expect(try await store.tokens(of: "a") == ["01"])
            try await store.unregister([Fixture.claim("a", "01")])
            #expect(try await store.tokens(of: "a") == [])
            try await store.register([Fixture.claim("a", "01")])
            #expect(try await store.tokens(of: "a") == ["01"])
        }
    }

    @Test func `one user in two apps has separate registrations`() async throws {
        let other = try #require(AppID(rawValue: "hide-and-seek"))
        try await Fixture.withStore { store, _ in
            try await store.register([Fixture.claim("a", "01"), Fixture.claim("a", "01", app: other)])
            try await store.unregister([Fixture.claim("a", "01")])
            #expect(try await store.tokens(of: "a") == [])
            #expect(try await store.tokens(of: "a", app: other) == ["01"])
        }
    }

    @Test func `an invalidation applies at the registration's own millisecond, and not one before`() async throws {
        try await Fixture.withStore { store, _ in
            let claim = Fixture.claim("a", "01")
            try await store.register([claim])
            let at = try #require(try await store.records(of: Fixture.user("a")).first).registration.registeredAt
            func invalidation(_ since: Timestamp) -> Invalidation {
                Invalidation(app: Fixture.app, device: claim.device, notRegisteredSince: since, reason: "Unregistered")
            }
            let before = Timestamp(milliseconds: at.milliseconds - 1)
            #expect(try await store.deactivate([invalidation(before)]).isEmpty)
            #expect(try await store.tokens(of: "a") == ["01"])
            #expect(try await store.deactivate([invalidation(before), invalidation(at)]) == [claim.device])
            #expect(try await store.tokens(of: "a") == [])
            #expect(try await store.deactivate([invalidation(at)]).isEmpty)
        }
    }

    @Test(arguments: [Int64.min, 0, 253_402_300_800_000_000, .max])
    func `an invalidation with any time is accepted`(_ milliseconds: Int64) async throws {
        try await Fixture.withStore { store, _ in
            let claim = Fixture.claim("a", "01")
            try await store.register([claim])
            let word = Invalidation(
                app: Fixture.app, device: claim.device, notRegisteredSince: Timestamp(milliseconds: milliseconds),
                reason: "Unregistered")
            #expect(try await store.deactivate([word]) == (milliseconds > 0 ? [claim.device] : []))
        }
    }

    @Test func `an invalidation of another app does not drop others in the batch`() async throws {
        let other = try #require(AppID(rawValue: "hide-and-seek"))
        try await Fixture.withStore { store, _ in
            let claim = Fixture.claim("a", "01")
            try await store.register([claim])
            let words = [Fixture.app, other].enumerated().map { index, app in
                Invalidation(
                    app: app, device: claim.device, notRegisteredSince: .now + .seconds(index), reason: "Unregistered")
            }
            #expect(try await store.deactivate(words) == [claim.device])
        }
    }

    @Test func `a corrected environment moves the registration with its owner and time`() async throws {
        try await Fixture.withStore { store, _ in
            let claim = Fixture.claim("a", "01", environment: .development)
            try await store.register([claim])
            #expect(try await store.correct(device: claim.device, of: Fixture.app, to: .production))
            #expect(try await store.correct(device: claim.device, of: Fixture.app, to: .production) == false)
            let devices = try await store.devices(of: [Fixture.user("a")])[0]
            #expect(devices.map(\.environment) == [.production])
            #expect(devices.map(\.device) == [Fixture.claim("a", "01").device])
            let states = try await store.records(of: Fixture.user("a")).map(\.state)
            #expect(Set(states) == [.active, .replaced])
        }
    }

    @Test func `a command for one app changes no registration of another`() async throws {
        let other = try #require(AppID(rawValue: "hide-and-seek"))
        try await Fixture.withStore { store, _ in
            let claim = Fixture.claim("a", "01", environment: .development)
            try await store.register([claim])
            let invalidation = Invalidation(
                app: other, device: claim.device, notRegisteredSince: .now + .seconds(60), reason: "Unregistered")
            #expect(try await store.deactivate([invalidation]).isEmpty)
            #expect(try await store.correct(device: claim.device, of: other, to: .production) == false)
            #expect(try await store.tokens(of: "a") == ["01"])
        }
    }

    @Test func `beyond the limit, the device registered longest ago is evicted`() async throws {
        try await Fixture.withStore { store, _ in
            for number in 0...RegistrationStore.defaultDevicesPerUser {
                try await store.register([Fixture.claim("a", String(format: "%04x", number))])
            }
            try await store.register([Fixture.claim("b", "ff")])
            let tokens = try await store.tokens(of: "a")
            #expect(tokens.count == RegistrationStore.defaultDevicesPerUser)
            #expect(!tokens.contains("0000"))
            #expect(try await store.tokens(of: "b") == ["ff"])
        }
    }

    @Test func `every string may contain SQL and template syntax`() async throws {
        try await Fixture.withStore { store, _ in
            for text in ["'; DROP TABLE registry.registration; --", "{{x}}", "\\", "\"", "{1,2}", "NULL", "é👩‍👧"] {
                try await store.register([Fixture.claim(text, text, .fcm)])
                #expect(try await store.tokens(of: text) == [text])
            }
        }
    }
}

@Suite(.timeLimit(.minutes(2))) struct RegistrationRaceTests {
    typealias Fixture = StoreFixture

    @Test func `two users who register one token at once leave exactly one owner`() async throws {
        try await Fixture.withStore { store, _ in
            for round in 0..<25 {
                let token = String(format: "%04x", round)
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for user in ["a", "b"] { group.addTask { try await store.register([Fixture.claim(user, token)]) } }
                    try await group.waitForAll()
                }
                let owners = try await store.devices(of: [Fixture.user("a"), Fixture.user("b")]).filter {
                    $0.contains { $0.token.secret == token }
                }
                #expect(owners.count == 1)
            }
        }
    }

    @Test func `two hundred parallel upserts of one registration give one row`() async throws {
        try await Fixture.withStore { store, pool in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<200 { group.addTask { try await store.register([Fixture.claim("a", "01")]) } }
                try await group.waitForAll()
            }
            let rows = try await pool.query("SELECT count(*) FROM registry.registration").single(Int.self)
            #expect(rows == 1)
        }
    }

    @Test func `two hundred parallel upserts of one installation leave one token`() async throws {
        try await Fixture.withStore { store, _ in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<200 {
                    group.addTask {
                        // Each has its own user: only the installation is shared.
                        let claim = Fixture.claim("u\(number)", String(format: "%04x", number), on: "phone")
                        try await store.register([claim])
                    }
                }
                try await group.waitForAll()
            }
            let users = (0..<200).map { Fixture.user("u\($0)") }
            #expect(try await store.devices(of: users).joined().count == 1)
        }
    }

    @Test func `of two concurrent registrations on an installation, the later one keeps it`() async throws {
        try await Fixture.withStore { store, pool in
            for round in 0..<150 {
                // Later registrations would hide the result, so each pair has its own installation.
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for side in ["a", "b"] {
                        let token = String(format: "%02x%04x", side == "a" ? 1 : 2, round)
                        group.addTask {
                            try await store.register([Fixture.claim("\(side)\(round)", token, on: "phone-\(round)")])
                        }
                    }
                    try await group.waitForAll()
                }
            }
            let shared = try await pool.query(
                """
                SELECT count(*) FROM (
                    SELECT installation FROM registry.registration WHERE state = 'active'
                    GROUP BY installation HAVING count(*) <> 1
                ) AS shared
                """
            ).single(Int.self)
            #expect(shared == 0)
        }
    }

    @Test func `the device limit holds under concurrent registrations`() async throws {
        try await Fixture.withStore(devicesPerUser: 5) { store, _ in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<60 {
                    group.addTask { try await store.register([Fixture.claim("a", String(format: "%04x", number))]) }
                }
                try await group.waitForAll()
            }
            #expect(try await store.tokens(of: "a").count == 5)
        }
    }

    @Test func `batches of the same tokens in opposite orders do not deadlock`() async throws {
        let claims = (0..<100).map { Fixture.claim("u\($0)", String(format: "%04x", $0)) }
        try await Fixture.withStore { store, _ in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for round in 0..<20 {
                    group.addTask { try await store.register(round.isMultiple(of: 2) ? claims : claims.reversed()) }
                }
                try await group.waitForAll()
            }
            let users = claims.map { AppUser(app: $0.app, user: $0.user) }
            #expect(try await store.devices(of: users).filter { !$0.isEmpty }.count == 100)
        }
    }

    @Test func `a concurrent invalidation never undoes a later registration`() async throws {
        try await Fixture.withStore { store, _ in
            let claim = Fixture.claim("a", "01")
            for _ in 0..<25 {
                try await store.register([claim])
                let at = try #require(try await store.records(of: Fixture.user("a")).first).registration.registeredAt
                try await eventually("the clock moves on") { Timestamp.now.milliseconds > at.milliseconds }
                try await withThrowingTaskGroup(of: Void.self) { group in
                    group.addTask { try await store.register([claim]) }
                    group.addTask {
                        _ = try await store.deactivate([
                            Invalidation(
                                app: Fixture.app, device: claim.device, notRegisteredSince: at, reason: "Unregistered")
                        ])
                    }
                    try await group.waitForAll()
                }
                #expect(try await store.tokens(of: "a") == ["01"])
            }
        }
    }

    @Test func `users beyond the limit of one query are all found`() async throws {
        try await Fixture.withStore { store, _ in
            let names = (0..<RegistrationStore.usersPerQuery * 2 + 1).map { "user-\($0)" }
            try await store.register(names.enumerated().map { Fixture.claim($1, String(format: "%08x", $0)) })
            let devices = try await store.devices(of: names.map { Fixture.user($0) })
            #expect(devices.map { $0.map(\.user.rawValue) } == names.map { [$0] })
        }
    }
}
