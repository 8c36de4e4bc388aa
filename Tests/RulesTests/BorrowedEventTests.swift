import AMQP
import Foundation
import Messaging
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import RuleDryRun
@testable import RuleEngine
@testable import RuleLanguage
@testable import Rules

/// Events of one app that reach the rules of another app: `from` under `events`.
@Suite(.timeLimit(.minutes(4))) struct BorrowedEventTests {
    static let shop = ruleFile(say: #"body: "Shop {{name}}""#).replacing("app: test", with: "app: shop")
    static func courier(from owner: String = "shop") -> String {
        ruleFile(say: #"body: "Courier {{name}}""#).replacing("app: test", with: "app: courier")
            .replacing("    examples:", with: "    from: \(owner)\n    examples:")
    }

    let folder = FileManager.default.temporaryDirectory.appending(path: "borrowed-\(UUID().uuidString)")

    private func load(
        _ files: [String: String], shared: Bool = true
    ) throws -> RuleSets {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        for (name, text) in files { try Data(text.utf8).write(to: folder.appending(path: "\(name).yaml")) }
        return try RuleDirectory.load(folder.path, isShared: { _, _ in shared })
    }

    private func problems(_ files: [String: String], shared: Bool = true) -> [String] {
        do {
            _ = try load(files, shared: shared)
            return []
        } catch let error as RuleFileError {
            return error.problems.map { "\($0.file):\($0.line): \($0.key): \($0.problem)" }
        } catch {
            return ["\(error)"]
        }
    }

    @Test func `mistakes are found in all files together`() {
        let place = "courier.yaml:4: events.thing.happened.from"
        #expect(problems(["shop": Self.shop, "courier": Self.courier()]) == [])
        #expect(
            problems(["shop": Self.shop, "courier": Self.courier()], shared: false) == [
                "\(place): the apps file does not allow it; add “courier” to “events-to” of “shop”"
            ])
        #expect(
            problems(["shop": Self.shop, "courier": Self.courier(from: "shpo")])
                == ["\(place): there is no rule file of “shpo”; did you mean “shop”?"])
        #expect(
            problems(["shop": Self.shop.replacing("thing.happened", with: "thing.else"), "courier": Self.courier()])
                == ["\(place): shop.yaml does not list this event; describe it there under “events”"])
        #expect(
            problems(["courier": Self.courier(from: "courier")])
                == ["\(place): the event is this app's own; remove “from”"])
        let third = Self.courier(from: "courier").replacing("app: courier", with: "app: third")
        #expect(
            problems(["shop": Self.shop, "courier": Self.courier(), "third": third])
                == [
                    "third.yaml:4: events.thing.happened.from: “courier” has this event from “shop” itself; name that app"
                ])
    }

    private func inbound(_ routingKey: String, _ body: [UInt8]? = nil) -> Inbound {
        delivered(
            body.map { String(decoding: $0, as: UTF8.self) } ?? cloudEvent(extra: #","subject":"s""#),
            routingKey: routingKey, contentType: body == nil ? "application/cloudevents+json" : "application/json")
    }

    private func handle(_ handler: EventHandler, _ inbound: Inbound) async throws -> Verdict {
        try await handler.handle([Delivery(inbound: inbound, message: try handler.decode(inbound))])[0]
    }

    @Test func `an event is decided by its own app, and its copy by the other app, each once`() async throws {
        let ruleSets = try load(["shop": Self.shop, "courier": Self.courier()])
        try await RulesDatabase.withPool { pool in
            let handler = EventHandler(currentRules: CurrentRules(ruleSets), store: DecisionStore(pool: pool))
            let verdict = try await handle(handler, inbound("shop.thing.happened"))
            #expect(verdict.outbound.map(\.exchange) == [.notifications, .events])
            #expect(verdict.outbound.map(\.routingKey) == ["interactive.shop", "courier.thing.happened"])
            let copy = try #require(verdict.outbound.last)
            let decided = try await handle(handler, inbound(copy.routingKey, copy.body))
            #expect(decided.outbound.map(\.routingKey) == ["interactive.courier"])
            let notification = try Notification.decode(wireBody: decided.outbound[0].body)
            #expect(notification.app.rawValue == "courier" && notification.content.body == "Courier Pat")
            // A repeated event publishes the same copy again, and the other app skips it.
            let repeated = try await handle(handler, inbound("shop.thing.happened"))
            #expect(repeated.outbound.last == copy)
            #expect(try await RulesDatabase.count("rules.event", pool) == 2)
        }
    }

    @Test func `an event that its own app cannot render is copied`() async throws {
        let broken = Self.shop.replacing("{ name: Pat, users: [1, 2] }", with: "{ name: Pat, note: x, users: [1, 2] }")
            .replacing("Shop {{name}}", with: "Shop {{note}}")
        let ruleSets = try load(["shop": broken, "courier": Self.courier()])
        try await RulesDatabase.withPool { pool in
            let handler = EventHandler(currentRules: CurrentRules(ruleSets), store: DecisionStore(pool: pool))
            let verdict = try await handle(handler, inbound("shop.thing.happened"))
            #expect(verdict.disposition.label == "dead-letter")
            #expect(verdict.outbound.map(\.routingKey) == ["courier.thing.happened"])
        }
    }

    @Test func `a preview shows the decisions of both apps`() throws {
        var dryRun = DryRun(try load(["shop": Self.shop, "courier": Self.courier()]))
        dryRun.process(
            event("thing.happened", app: "shop", ["name": "Pat", "users": [1]]), at: moment("2026-01-10T12:00:00Z"))
        #expect(
            dryRun.predictions.map { "\($0.app) \($0.content?.body ?? "")" } == [
                "shop Shop Pat", "courier Courier Pat",
            ])
    }
}
