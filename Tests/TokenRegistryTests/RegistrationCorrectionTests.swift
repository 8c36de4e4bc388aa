import FoundationEssentials
import PushProtocol
import Testing
import TestSupport

@testable import RegistryStore

/// A registration is moved to its correct environment. Of two, the later one wins.
@Suite(.timeLimit(.minutes(2))) struct RegistrationCorrectionTests {
    typealias Fixture = StoreFixture

    private let misplaced = Fixture.claim("a", "01", environment: .production)
    private let placed = Fixture.claim("a", "01", environment: .development)

    private func active(_ store: RegistrationStore, _ user: String = "a") async throws -> [ProviderEnvironment] {
        try await store.devices(of: [Fixture.user(user)])[0].map(\.environment)
    }

    @Test func `a token registered in both environments ends as one registration`() async throws {
        try await Fixture.withStore { store, _ in
            try await store.register([placed])
            try await store.register([misplaced])
            #expect(try await store.correct(device: misplaced.device, of: Fixture.app, to: .development))
            #expect(try await active(store) == [.development])
        }
    }

    @Test func `the later owner keeps the token`() async throws {
        try await Fixture.withStore { store, _ in
            try await store.register([misplaced])
            try await store.register([Fixture.claim("b", "01", environment: .development)])
            #expect(try await store.correct(device: misplaced.device, of: Fixture.app, to: .development))
            #expect(try await active(store) == [])
            #expect(try await active(store, "b") == [.development])
        }
        try await Fixture.withStore { store, _ in
            try await store.register([Fixture.claim("b", "01", environment: .development)])
            try await store.register([misplaced])
            #expect(try await store.correct(device: misplaced.device, of: Fixture.app, to: .development))
            #expect(try await active(store) == [.development])
            #expect(try await active(store, "b") == [])
        }
    }

    @Test func `a correction does not revive a later sign-out there`() async throws {
        try await Fixture.withStore { store, _ in
            try await store.register([placed])
            try await store.register([misplaced])
            try await store.unregister([placed])
            #expect(try await store.correct(device: misplaced.device, of: Fixture.app, to: .development))
            #expect(try await active(store) == [])
        }
    }

    @Test func `a newer registration revives an ended one there`() async throws {
        try await Fixture.withStore { store, _ in
            try await store.register([placed])
            try await store.unregister([placed])
            try await store.register([misplaced])
            #expect(try await store.correct(device: misplaced.device, of: Fixture.app, to: .development))
            #expect(try await active(store) == [.development])
        }
    }

    @Test func `a correction can be reverted`() async throws {
        try await Fixture.withStore { store, _ in
            try await store.register([misplaced])
            #expect(try await store.correct(device: misplaced.device, of: Fixture.app, to: .development))
            #expect(try await store.correct(device: placed.device, of: Fixture.app, to: .production))
            #expect(try await active(store) == [.production])
        }
    }

    @Test func `an FCM registration has no other environment`() async throws {
        try await Fixture.withStore { store, _ in
            let claim = Fixture.claim("a", "fcm:01", .fcm)
            try await store.register([claim])
            #expect(try await store.correct(device: claim.device, of: Fixture.app, to: .development) == false)
            #expect(try await active(store) == [.production])
        }
    }

    @Test func `many concurrent corrections and registrations leave one owner`() async throws {
        try await Fixture.withStore { store, _ in
            try await store.register([misplaced])
            try await withThrowingDiscardingTaskGroup { group in
                for number in 0..<40 {
                    group.addTask {
                        if number.isMultiple(of: 2) {
                            _ = try await store.correct(device: misplaced.device, of: Fixture.app, to: .development)
                        } else {
                            try await store.register([misplaced])
                        }
                    }
                }
            }
            _ = try await store.correct(device: misplaced.device, of: Fixture.app, to: .development)
            #expect(try await active(store) == [.development])
        }
    }
}
