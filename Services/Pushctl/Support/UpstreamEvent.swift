import AMQP
import ArgumentParser
import DecisionLog
import Foundation
import PushProtocol

/// An event that a command publishes like an upstream service.
struct UpstreamEvent {
    let event: DomainEvent
    /// The structured CloudEvent.
    let body: [UInt8]

    /// Reads a structured CloudEvent.
    ///
    /// - Parameter name: the event's origin, for errors.
    init(_ body: [UInt8], app: AppID, name: String) throws {
        self.body = body
        do {
            event = try CloudEvents.decode(
                routingKey: app.rawValue, contentType: CloudEvents.structuredContentType, headers: [:], body: body)
        } catch {
            throw CommandError("\(name): \(error)", .input)
        }
    }

    /// Words a new event with this data.
    init(type: String, data: JSONValue, identity: EventIdentity, app: AppID) throws {
        let envelope: JSONValue = [
            "specversion": "1.0", "id": .string(identity.id ?? UUID().uuidString.lowercased()),
            "source": .string(identity.source), "type": .string(type), "time": .string(RFC3339.string(from: Date())),
            "datacontenttype": "application/json", "data": data,
        ]
        try self.init(try WireCoding.encode(envelope), app: app, name: "the event")
    }

    private var routingKey: String { "\(event.app).\(event.type)" }

    /// The result of ``publish()`` for `--json`.
    var receipt: JSONValue {
        [
            "id": .string(event.id), "source": .string(event.source), "type": .string(event.type),
            "routing_key": .string(routingKey),
        ]
    }

    /// ``receipt`` with the decisions about the event, as `explain --json` prints them.
    func receipt(with explanation: Explanation) -> JSONValue {
        .object(
            (receipt.object ?? [:]).merging(
                ["complete": .bool(explanation.isComplete), "explanation": explanation.json]) { $1 })
    }

    /// The result of ``publish()`` as text.
    var line: String { "published \(event.type) \(event.id) as \(routingKey)" }

    /// The command that prints the decisions about the event.
    var explainCommand: String { "pushctl explain \(event.id) --app \(event.app)" }

    /// Publishes the event, and returns after the broker's confirm.
    func publish() async throws {
        let message = AMQPMessage(
            exchange: ExchangeName.events.name, routingKey: routingKey,
            properties: AMQPProperties(
                contentType: CloudEvents.structuredContentType, messageID: event.id, type: event.type),
            body: body)
        try await Pushctl.publish(message, "event")
    }

    /// Waits until the decision log has every decision and outcome of the event, or the time is over.
    ///
    /// - Returns: what the log has; `nil` without a decision.
    func explanation(within time: Duration) async throws -> Explanation? {
        let (id, app, source) = (event.id, event.app, event.source)
        return try await withDatabase { database in
            let store = ExplanationStore(database)
            let end = ContinuousClock.now + time
            while true {
                let found = try await store.explain(.init(event: id, app: app)).first { $0.source == source }
                if found?.isComplete == true || .now >= end { return found }
                try await Task.sleep(for: .milliseconds(200))
            }
        }
    }
}

/// `--id` and `--source`, for commands that word an event.
struct EventIdentity: ParsableArguments {
    @Option(help: "The event's id. The same id and source again is the same event, which is decided once.")
    var id: String?
    @Option(help: "The event's source.") var source = "/pushctl"
}

/// `--wait` and `--timeout`, for commands that publish an event.
struct WaitOption: ParsableArguments {
    @Flag(help: "Wait for the decisions and the providers' answers, and print them. Needs the database.")
    var wait = false
    @Option(help: "The seconds to wait.") var timeout = 30

    func validate() throws {
        guard (1...600).contains(timeout) else { throw ValidationError("--timeout takes 1 to 600 seconds") }
    }

    /// Publishes an event. Prints its id, and the decisions about it or how to see them.
    func publish(_ event: UpstreamEvent, _ output: OutputOption) async throws {
        try await event.publish()
        guard wait else {
            return try output.write(event.receipt, text: [event.line, "next: \(event.explainCommand)"])
        }
        if !output.json { print(event.line) }
        let explanation = try await explained(event)
        try output.write(event.receipt(with: explanation), text: explanation.lines)
        guard explanation.isComplete else {
            throw CommandError("not complete after \(timeout) s; see the rest with \(event.explainCommand)", .temporary)
        }
    }

    /// Returns the decisions, or throws with the next step if there are none.
    func explained(_ event: UpstreamEvent) async throws -> Explanation {
        guard let explanation = try await event.explanation(within: .seconds(timeout)) else {
            throw CommandError(
                "no decision after \(timeout) s: the event waits in its queue, was dropped, or is dead-lettered; see "
                    + "pushctl dead show rules.events.app.\(event.event.app)", .temporary)
        }
        return explanation
    }
}
