import Crypto
import PushProtocol
import Testing

@testable import ProviderSimulator

/// The state that a connection keeps between requests.
@Suite struct APNsConnectionTests {
    static func push(
        _ simulator: Simulator, _ token: String, at minutes: Int64 = 0, connection: Int = 1,
        in environment: ProviderEnvironment = .production
    ) -> String? {
        simulator.push(environment) {
            $0["authorization"] = "bearer \(token)"
            $0.receivedAt = Fixture.now + .seconds(minutes * 60)
            $0.connection = connection
        }?.reason
    }

    static func token(at minutes: Int64) -> String {
        Signing.providerToken(issuedAt: Fixture.now.seconds + minutes * 60)
    }

    @Test func `one token is valid for the life of a connection`() {
        let simulator = Fixture.simulator()
        let token = Self.token(at: 0)
        for minute in stride(from: 0, through: 60, by: 10) {
            #expect(Self.push(simulator, token, at: Int64(minute)) == nil)
        }
    }

    @Test func `a second token within twenty minutes is rejected`() {
        let simulator = Fixture.simulator()
        #expect(Self.push(simulator, Self.token(at: 0)) == nil)
        #expect(Self.push(simulator, Self.token(at: 0)) == "TooManyProviderTokenUpdates")
        #expect(Self.push(simulator, Self.token(at: 19), at: 19) == "TooManyProviderTokenUpdates")
        #expect(Self.push(simulator, Self.token(at: 20), at: 20) == nil)
    }

    @Test func `the previous token is not a token update`() {
        let simulator = Fixture.simulator()
        let (old, new) = (Self.token(at: 0), Self.token(at: 50))
        #expect(Self.push(simulator, old) == nil)
        #expect(Self.push(simulator, new, at: 50) == nil)
        #expect(Self.push(simulator, old, at: 50) == nil)
    }

    @Test func `a due token refresh is accepted on a young connection`() {
        let simulator = Fixture.simulator()
        #expect(Self.push(simulator, Self.token(at: 0), at: 49) == nil)
        #expect(Self.push(simulator, Self.token(at: 50), at: 50) == nil)
    }

    @Test func `connections count token updates separately`() {
        let simulator = Fixture.simulator()
        #expect(Self.push(simulator, Self.token(at: 0)) == nil)
        #expect(Self.push(simulator, Self.token(at: 0), connection: 2) == nil)
    }

    @Test func `a connection that saw an expired token rejects every other token`() {
        let simulator = Fixture.simulator()
        let fresh = Self.token(at: 61)
        #expect(Self.push(simulator, Self.token(at: 0), at: 61) == "ExpiredProviderToken")
        #expect(Self.push(simulator, fresh, at: 61) == "ExpiredProviderToken")
        #expect(Self.push(simulator, fresh, at: 61, connection: 2) == nil)
        simulator.apnsConnectionClosed(1, in: .production)
        #expect(Self.push(simulator, fresh, at: 61) == nil)
    }

    @Test func `the first key binds the connection`() throws {
        var apps = Fixture.apps
        let others = [("SECONDKEY1", Fixture.teamID), ("THIRDKEY01", "OTHERTEAM1")]
        for (keyID, teamID) in others {
            try apps.add(
                APNsKey(
                    keyID: keyID, teamID: teamID, publicKey: Signing.otherKey.publicKey, topics: [Fixture.bundle],
                    environments: [.production]))
        }
        let simulator = Simulator(state: SimulatorState(apps: apps))
        let tokens = others.map { Signing.providerToken(keyID: $0.0, teamID: $0.1, key: Signing.otherKey) }
        #expect(Self.push(simulator, Self.token(at: 0)) == nil)
        #expect(Self.push(simulator, tokens[0]) == "UnrelatedKeyIdInToken")
        #expect(Self.push(simulator, tokens[1]) == "InvalidProviderToken")
        #expect(Self.push(simulator, tokens[0], connection: 2) == nil)
        #expect(Self.push(simulator, tokens[0], connection: 3, in: .development) == "BadEnvironmentKeyIdInToken")
    }

    @Test func `a key of two apps allows both topics, and two keys with one id conflict`() throws {
        var apps = Fixture.apps
        let second = APNsKey(
            keyID: Fixture.keyID, teamID: Fixture.teamID, publicKey: Signing.apnsKey.publicKey,
            topics: ["com.example.second"], environments: [.production])
        try apps.add(second)
        #expect(apps.apnsKeys[Fixture.keyID]?.topics == [Fixture.bundle, "com.example.voip", "com.example.second"])
        let impostor = APNsKey(
            keyID: Fixture.keyID, teamID: Fixture.teamID, publicKey: Signing.otherKey.publicKey, topics: [],
            environments: [])
        #expect(throws: KnownApps.Conflict.self) { try apps.add(impostor) }
    }
}
