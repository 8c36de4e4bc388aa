import DecisionLog
import FeedbackStore
import FoundationEssentials
import Primitives
import PushProtocol
import RegistryStore

/// The state of a deployment at one time, for `pushctl status`.
struct StatusReport: Sendable {
    struct Queue: Hashable, Sendable {
        var name: String
        /// The messages that no consumer has taken; `nil` for a missing queue.
        var ready: Int?
        /// `nil` for a missing queue.
        var consumers: Int?
        /// `nil` for a missing dead-letter queue.
        var deadLetters: Int?

        /// Whether the queue or its dead-letter queue does not exist.
        var isMissing: Bool { ready == nil || deadLetters == nil }

        /// Whether an operator should look at it.
        var isNotable: Bool { isMissing || ready != 0 || consumers == 0 || deadLetters != 0 }
    }

    /// The parts whose server cannot be reached now, with the reason.
    struct Outages: Hashable, Sendable {
        var broker: String?
        var database: String?
    }

    /// The part that is read from the database.
    struct Stored: Sendable {
        var census: Census
        var routes: [RouteStatusStore.RouteStatus]
        var guards: [QuarantineStore.TrippedGuard]
        var quarantined: Int
        /// Not finished, the latest first.
        var campaigns: [CampaignStore.CampaignSummary]
        var deadRows: [(table: String, count: Int)]
    }

    var at: Date
    /// `nil` without `AMQP_URL`, and while the broker cannot be reached.
    var queues: [Queue]?
    /// `nil` without `DATABASE_URL`, and while the database cannot be reached.
    var stored: Stored?
    var outages = Outages()
    var services: [ServiceProbe.Answer]

    var isIncomplete: Bool { queues?.contains(where: \.isMissing) ?? false }

    // MARK: - JSON

    var json: JSONValue {
        [
            "at": .time(at),
            "queues": queues.map { .array($0.map(Self.json)) } ?? .null,
            "routes": stored.map { .array($0.routes.map(Self.json)) } ?? .null,
            "guards": stored.map { .array($0.guards.map(QuarantineReport.json)) } ?? .null,
            "quarantined": stored.map { .number($0.quarantined) } ?? .null,
            "campaigns": stored.map { .array($0.campaigns.map(\.json)) } ?? .null,
            "dead_rows": stored.map {
                .array($0.deadRows.map { ["table": .string($0.table), "count": .number($0.count)] })
            }
                ?? .null,
            "census": stored?.census.json ?? .null,
            "services": .array(services.map(\.json)),
            "away": ["broker": .optional(outages.broker), "database": .optional(outages.database)],
        ]
    }

    private static func json(_ queue: Queue) -> JSONValue {
        [
            "queue": .string(queue.name), "missing": .bool(queue.isMissing), "ready": .number(queue.ready),
            "consumers": .number(queue.consumers), "dead_letters": .number(queue.deadLetters),
        ]
    }

    private static func json(_ route: RouteStatusStore.RouteStatus) -> JSONValue {
        [
            "app": .string(route.app), "provider": .string(route.provider), "environment": .string(route.environment),
            "state": .string(state(route)), "answered": .number(route.answered),
            "accepted_at": .time(route.acceptedAt), "suspected_since": .time(route.suspectedSince),
            "guard_tripped_since": .time(route.guardTrippedSince),
        ]
    }

    /// `guarded`: feedback ends no registration. `suspected`: a sender suspects the route. Otherwise `open`.
    private static func state(_ route: RouteStatusStore.RouteStatus) -> String {
        route.guardTrippedSince != nil ? "guarded" : route.suspectedSince != nil ? "suspected" : "open"
    }

    // MARK: - Text

    /// One screen.
    func lines(all: Bool, isColored: Bool) -> [String] {
        var lines = ["Heliograph at \(RFC3339.seconds(from: at))"]
        lines += section("Queues", isColored, queueLines(all: all, isColored))
        if let stored {
            lines += section("Routes", isColored, Self.routeLines(stored.routes, isColored))
            lines += section("Guards", isColored, Self.guardLines(stored))
            lines += section(
                "Campaigns", isColored,
                stored.campaigns.isEmpty
                    ? ["none is under way"] : CampaignReport.table(stored.campaigns).lines(isColored: isColored))
            if !stored.deadRows.isEmpty {
                lines += section("Dead rows", isColored, stored.deadRows.map { "\($0.count) in \($0.table)" })
            }
            lines += section("Census", isColored, stored.census.lines.map(TextTable.printable))
        } else {
            lines += section(
                "Database", isColored, [Self.unread(outages.database, "DATABASE_URL is not set", isColored)])
        }
        if !services.isEmpty { lines += section("Services", isColored, serviceLines(isColored)) }
        return lines
    }

    private func section(_ title: String, _ isColored: Bool, _ lines: [String]) -> [String] {
        ["", isColored ? TextTable.colored(title, .bold) : title] + lines.map { "  \($0)" }
    }

    private func queueLines(all: Bool, _ isColored: Bool) -> [String] {
        guard let queues else { return [Self.unread(outages.broker, "AMQP_URL is not set", isColored)] }
        var table = TextTable([.left("queue"), .right("ready"), .right("consumers"), .right("dead letters")])
        for queue in queues where all || queue.isNotable {
            table.add([
                TextTable.Cell(queue.name), Self.cell(queue.ready, .plain),
                Self.cell(queue.consumers, queue.consumers == 0 ? .red : .plain),
                Self.cell(queue.deadLetters, queue.deadLetters == 0 ? .plain : .yellow),
            ])
        }
        let quiet = queues.count { !$0.isNotable }
        let ready = queues.reduce(0) { $0 + ($1.ready ?? 0) }
        var lines = table.isEmpty ? [] : table.lines(isColored: isColored)
        lines.append("\(queues.count) queues, \(ready) messages ready; \(quiet) are empty and consumed")
        let missing = queues.count(where: \.isMissing)
        if missing > 0 { lines.append("\(missing) queues are missing; run pushctl topology apply") }
        return lines
    }

    private static func cell(_ number: Int?, _ style: TextTable.Style) -> TextTable.Cell {
        number.map { TextTable.Cell($0, style) } ?? TextTable.Cell("missing", .red)
    }

    private static func unread(_ outage: String?, _ reason: String, _ isColored: Bool) -> String {
        guard let outage else { return "not read: \(reason)" }
        let line = "away: \(TextTable.printable(outage))"
        return isColored ? TextTable.colored(line, .red) : line
    }

    private static func routeLines(_ routes: [RouteStatusStore.RouteStatus], _ isColored: Bool) -> [String] {
        guard !routes.isEmpty else { return ["none is listed: a sender reports a route with its first rejection"] }
        var table = TextTable([
            .left("app"), .left("provider"), .left("environment"), .left("state"), .right("answers in 10 min"),
            .left("last accepted"),
        ])
        for route in routes {
            let state = state(route)
            table.add([
                TextTable.Cell(route.app), TextTable.Cell(route.provider), TextTable.Cell(route.environment),
                TextTable.Cell(state, state == "open" ? .green : .red), TextTable.Cell(route.answered),
                TextTable.Cell(route.acceptedAt.map(RFC3339.seconds(from:))),
            ])
        }
        return table.lines(isColored: isColored)
    }

    private static func guardLines(_ stored: Stored) -> [String] {
        let tripped = stored.guards.map { "\($0.route) tripped since \(RFC3339.seconds(from: $0.since))" }
        let rest = stored.quarantined > 0 ? ["\(stored.quarantined) registrations are quarantined"] : []
        return tripped.isEmpty && rest.isEmpty ? ["none is tripped, nothing is quarantined"] : tripped + rest
    }

    private func serviceLines(_ isColored: Bool) -> [String] {
        var table = TextTable([.left("service"), .left("state"), .left("problems")])
        for service in services {
            table.add([
                TextTable.Cell(service.url),
                TextTable.Cell(service.isReady ? "ready" : "not ready", service.isReady ? .green : .red),
                TextTable.Cell(service.problems.joined(separator: "; ")),
            ])
        }
        return table.lines(isColored: isColored)
    }
}
