// Publishes one event of family-portal over HTTP, with Foundation only: swiftc -parse-as-library publish.swift
//
// EVENTS_API_URL   the address of events-api
// EVENTS_API_KEY   an API key for `events:publish`, bound to the app
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The server refused the event, or did not accept it after all attempts.
struct PublishError: Error {
    let detail: String
}

struct ChatMessageCreated: Encodable {
    struct Message: Encodable {
        var id: Int
        var text: String
        var threadID: Int?

        enum CodingKeys: String, CodingKey {
            case id, text
            case threadID = "thread_id"
        }

        /// Writes null for nil: rules dead-letters an event without a member that a rule reads.
        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(id, forKey: .id)
            try container.encode(text, forKey: .text)
            try container.encode(threadID, forKey: .threadID)
        }
    }
    struct Sender: Encodable {
        var id: Int
        var name: String
    }

    var message: Message
    var sender: Sender
    var participants: [Int]
}

struct Event<Content: Encodable>: Encodable {
    var specversion = "1.0"
    var id = UUID().uuidString.lowercased()
    var source: String
    var type: String
    var time = Date()
    var data: Content
}

/// Returns once the event is accepted. The id makes a repetition harmless.
func publish(_ event: some Encodable, to url: URL, key: String, attempts: Int = 5) async throws {
    let encoder = JSONEncoder()
    encoder.dateEncodingStrategy = .iso8601
    var request = URLRequest(url: url.appendingPathComponent("v1/events"), timeoutInterval: 30)
    request.httpMethod = "POST"
    request.httpBody = try encoder.encode(event)
    request.setValue("application/cloudevents+json", forHTTPHeaderField: "Content-Type")
    request.setValue("Bearer \(key)", forHTTPHeaderField: "Authorization")
    for attempt in 1... {
        var pause = pow(2, Double(attempt - 1)) * Double.random(in: 0.5...1)
        do {
            let (data, response) = try await URLSession.shared.data(for: request)
            guard let response = response as? HTTPURLResponse else { throw URLError(.badServerResponse) }
            if response.statusCode == 202 { return }
            let detail = "status \(response.statusCode): \(String(decoding: data, as: UTF8.self))"
            guard response.statusCode == 429 || response.statusCode >= 500, attempt < attempts else {
                throw PublishError(detail: detail)
            }
            pause += response.value(forHTTPHeaderField: "Retry-After").flatMap(Double.init) ?? 0
        } catch let error as URLError {
            guard attempt < attempts else { throw PublishError(detail: "no answer: \(error.localizedDescription)") }
        }
        try await Task.sleep(nanoseconds: UInt64(pause * 1_000_000_000))
    }
}

@main struct Publish {
    static func main() async {
        let environment = ProcessInfo.processInfo.environment
        guard let url = environment["EVENTS_API_URL"].flatMap(URL.init), let key = environment["EVENTS_API_KEY"] else {
            fail("EVENTS_API_URL and EVENTS_API_KEY are not set")
        }
        let event = Event(
            source: "/family-portal/chat", type: "chat.message.created",
            data: ChatMessageCreated(
                message: .init(id: 123, text: "Dinner is at seven.", threadID: nil),
                sender: .init(id: 456, name: "Pat"), participants: [456, 457, 458]))
        do {
            try await publish(event, to: url, key: key)
            print("accepted", event.id)
        } catch let error as PublishError {
            fail(error.detail)
        } catch {
            fail("\(error)")
        }
    }

    static func fail(_ text: String) -> Never {
        FileHandle.standardError.write(Data((text + "\n").utf8))
        exit(1)
    }
}
