import Foundation
import PushProtocol
import Testing

@Suite struct IdentityTests {
    @Test func `a derived id is a UUID of version 5 and deterministic`() throws {
        let user = try #require(UserID(rawValue: "457"))
        let one = DerivedID.notification(source: "/chat", event: "e1", rule: "r", recipient: user)
        #expect(one == DerivedID.notification(source: "/chat", event: "e1", rule: "r", recipient: user))
        #expect(one.uuid.6 >> 4 == 5)
        #expect(one.uuid.8 >> 6 == 0b10)
        #expect(one != DerivedID.notification(source: "/chat", event: "e2", rule: "r", recipient: user))
    }

    @Test func `adjacent parts do not collide`() {
        #expect(
            DerivedID.uuid5(DerivedID.namespace, ["ab", "c"]) != DerivedID.uuid5(DerivedID.namespace, ["a", "bc"]))
    }

    @Test func `a token never prints`() {
        let token = DeviceToken(secret: "deadbeef")
        var dumped = ""
        dump(["token": token], to: &dumped)
        for text in ["\(token)", String(reflecting: token), dumped, "\([token])", String(describing: Optional(token))] {
            #expect(!text.contains("deadbeef"))
        }
    }

    @Test(arguments: ["", "abc", "zz01", "0x12", "ab cd", "ａｂ"])
    func `a text that is not hexadecimal is no APNs token`(text: String) {
        #expect(DeviceToken(text, for: .apns) == nil)
    }

    @Test func `A24: device management's base64 of 32 bytes becomes hexadecimal, and other base64 does not`() {
        let base64 = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
        #expect(
            DeviceToken(base64, for: .apns)?.secret
                == "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f")
        #expect(DeviceToken("AAECAwQFBgcICQoLDA0ODw==", for: .apns) == nil)
        #expect(DeviceToken(String(repeating: "z", count: 64), for: .apns) == nil)
        #expect(DeviceToken(String(base64.dropLast()), for: .apns) == nil)
    }

    @Test func `an APNs token is stored in lower case, an FCM token unchanged`() {
        #expect(DeviceToken("ABCDEF01", for: .apns)?.secret == "abcdef01")
        #expect(DeviceToken("aB:cD_-", for: .fcm)?.secret == "aB:cD_-")
        #expect(DeviceToken("a b", for: .fcm) == nil)
    }

    @Test func `sandbox is parsed as the development environment`() {
        #expect(ProviderEnvironment(clientName: "sandbox") == .development)
        #expect(ProviderEnvironment(clientName: "staging") == nil)
    }
}
