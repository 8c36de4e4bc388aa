import Crypto
import CryptoExtras
import PushProtocol
import Testing

@testable import ProviderSimulator

/// Key rotation while the simulator runs.
@Suite struct AcceptedKeysTests {
    private func apns(_ key: P256.Signing.PrivateKey, revokesOthers: Bool = false) -> JSONValue {
        [
            "provider": "apns", "key_id": .string(Fixture.keyID),
            "public_key": .string(key.publicKey.pemRepresentation),
            "revokes_others": .bool(revokesOthers),
        ]
    }

    private func push(_ simulator: Simulator, _ key: P256.Signing.PrivateKey, on connection: Int) -> String? {
        simulator.push {
            $0["authorization"] = "bearer " + Signing.providerToken(key: key)
            $0.connection = connection
        }?.reason
    }

    @Test func `a second key under the same id is valid beside the first, until the first is revoked`() throws {
        let simulator = Fixture.simulator()
        // One token, reused as on an open connection.
        let first = "bearer " + Signing.providerToken()
        #expect(simulator.push { $0["authorization"] = first }?.status == 200)
        #expect(push(simulator, Signing.otherKey, on: 2) == "InvalidProviderToken")
        #expect(try simulator.state.keys.add(apns(Signing.otherKey)) == 1)
        #expect(simulator.push { $0["authorization"] = first }?.status == 200)
        #expect(push(simulator, Signing.otherKey, on: 2) == nil)
        #expect(try simulator.state.keys.add(apns(Signing.otherKey, revokesOthers: true)) == 1)
        #expect(simulator.push { $0["authorization"] = first }?.reason == "InvalidProviderToken")
        #expect(push(simulator, Signing.apnsKey, on: 3) == "InvalidProviderToken")
        #expect(push(simulator, Signing.otherKey, on: 4) == nil)
    }

    @Test func `an account's second key has its own id, and the first can be revoked`() throws {
        let simulator = Fixture.simulator()
        func ask(_ keyID: String, _ key: _RSA.Signing.PrivateKey) -> Int? {
            let header = TokenEndpointTests.header.merging(["kid": .string(keyID)])
            return TokenEndpointTests.ask(
                Signing.rs256(header, TokenEndpointTests.claims, key: key), simulator)?.status
        }
        #expect(ask("key-9", Signing.otherAccountKey) == 400)
        var posted: JSONValue = [
            "provider": "fcm", "account": .string(Fixture.account), "key_id": "key-9",
            "public_key": .string(Signing.otherAccountKey.publicKey.pemRepresentation),
        ]
        _ = try simulator.state.keys.add(posted)
        #expect(ask("key-9", Signing.otherAccountKey) == 200 && ask("key-1", Signing.accountKey) == 200)
        posted = posted.merging(["revokes_others": true])
        _ = try simulator.state.keys.add(posted)
        #expect(ask("key-9", Signing.otherAccountKey) == 200 && ask("key-1", Signing.accountKey) == 400)
    }

    @Test(arguments: [
        (#"{}"#, "provider is missing"), (#"{"provider":"apns"}"#, "key_id is missing"),
        (#"{"provider":"apns","key_id":"ABC123DEFG","public_key":"x"}"#, "public_key is not a P-256"),
        (#"{"provider":"fcm","key_id":"k","public_key":"x"}"#, "account is missing"),
        (#"{"provider":"fcm","account":"a","key_id":"k","public_key":"x"}"#, "public_key is not an RSA"),
        (#"{"provider":"apns","key_id":"k","account":"a"}"#, "account has no meaning"),
    ]) func `an invalid key is rejected with a reason`(text: String, problem: String) throws {
        let value = try ProviderJSON.value(of: Array(text.utf8))
        let error = #expect(throws: ControlRequestError.self) { try Fixture.simulator().state.keys.add(value) }
        #expect(error?.description.hasPrefix(problem) == true)
    }

    @Test func `a key that no app uses is rejected by its id`() throws {
        let otherAuthority = apns(Signing.otherKey).merging(["key_id": "STRANGER00"])
        let error = #expect(throws: ControlRequestError.self) {
            try Fixture.simulator().state.keys.add(otherAuthority)
        }
        #expect(error?.description == "no app signs as STRANGER00")
    }
}
