import Foundation
import HeliographClient
import Testing

/// Clear commands as APNs and FCM deliver them.
@Suite struct ShownNotificationTests {
    private func cleared(_ payload: String) throws -> [String] {
        let value = try JSONSerialization.jsonObject(with: Data(payload.utf8))
        return HeliographClient.clearedNotifications(in: value as? [AnyHashable: Any] ?? [:])
    }

    @Test func `a clear command names identifiers, from APNs and from FCM`() throws {
        let apns = #"{"aps":{"content-available":1},"data":{"heliograph_clear":["5b0c","room/1"]}}"#
        #expect(try cleared(apns) == ["5b0c", "room/1"])
        let fcm = #"{"aps":{"content-available":1},"heliograph_clear":"[\"5b0c\",\"room/1\"]"}"#
        #expect(try cleared(fcm) == ["5b0c", "room/1"])
    }

    @Test(arguments: [
        #"{"aps":{"alert":"x"},"data":{"chat":"9"}}"#, #"{"data":{"heliograph_clear":7}}"#,
        #"{"heliograph_clear":"no JSON"}"#, #"{"data":{"heliograph_clear":["a",1]}}"#, "{}",
    ]) func `another push names none`(payload: String) throws {
        #expect(try cleared(payload) == [])
    }
}
