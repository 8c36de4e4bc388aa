import PushProtocol
import Testing
import TestSupport

@testable import Providers

/// The payloads specified by two products.
@Suite struct SeedPayloadTests {
    private func payload(_ content: Content) throws -> JSONValue {
        let codec = APNsCodec(topic: "com.familyportal.app"), push = Push.sample(content)
        let request = try codec.request(to: push.targets[0], from: codec.render(push, now: .sample))
        return try WireCoding.decode(JSONValue.self, from: request.body)
    }

    @Test func `a chat message of the family portal`() throws {
        let content = Content(
            title: "New message", body: "Pat: Dinner at six?", badge: 1, sound: "default", category: "chat_message",
            data: [
                "type": "chat_message", "message_id": 123, "sender_id": 456, "sender_name": "Pat", "thread_id": nil,
            ])
        #expect(
            try payload(content) == [
                "aps": [
                    "alert": ["title": "New message", "body": "Pat: Dinner at six?"], "sound": "default", "badge": 1,
                    "category": "chat_message",
                ],
                "data": [
                    "type": "chat_message", "message_id": 123, "sender_id": 456, "sender_name": "Pat",
                    "thread_id": nil,
                ],
            ])
    }

    @Test func `the radar question of hide and seek`() throws {
        let data: [String: JSONValue] = [
            "event_type": "question_asked", "game_id": "5b0c", "question_id": "q1", "question_type": "radar",
            "question_status": "answerable", "parameters": ["radius_m": 3000],
        ]
        let content = Content(
            title: "Hide & Seek", body: "A 3 km radar question has been asked. Your answer timer is running.",
            sound: "default", data: data, interruptionLevel: .timeSensitive,
            apns: APNsOverride(payload: ["aps": ["content-available": 1]]))
        #expect(
            try payload(content) == [
                "aps": [
                    "alert": [
                        "title": "Hide & Seek",
                        "body": "A 3 km radar question has been asked. Your answer timer is running.",
                    ],
                    "sound": "default", "content-available": 1, "interruption-level": "time-sensitive",
                ],
                "data": .object(data),
            ])
    }

    @Test func `the silent endgame of hide and seek`() throws {
        let data: [String: JSONValue] = ["event_type": "phase_changed", "game_id": "5b0c"]
        #expect(
            try payload(Content(data: data, silent: true)) == [
                "aps": ["content-available": 1], "data": .object(data),
            ])
    }
}
