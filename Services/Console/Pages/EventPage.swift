import FoundationEssentials
import PushProtocol

/// One event from its arrival to the providers' words, for each user.
struct EventPage {
    let explanations: JSONValue
    let app: String
    let event: String
    /// Whether users and devices are hidden, for support links.
    var isRedacted = false

    func page(formToken: String?, role: Role?) -> Page {
        let events = explanations["events"]?.array ?? []
        return Page(
            title: isRedacted ? "An event" : "Event \(event)", section: .why,
            content: "\(events.map { part($0, formToken: formToken, role: role) })")
    }

    private func part(_ event: JSONValue, formToken: String?, role: Role?) -> HTML {
        let stories = event["stories"]?.array ?? []
        let arrived = event["arrived_at"]?.string.flatMap { RFC3339.date(from: $0) }
        let running = (event["crowds"]?.array ?? []).map { crowd -> HTML in
            "<p>The rule \(crowd["rule"]?.string ?? "") is being decided for more people: \(Int(crowd["decided"]?.int ?? 0)) so far.</p>"
        }
        return """
            <section class="event"><p>\(event["type"]?.string ?? "") from \(event["source"]?.string ?? ""), app
            \(event["app"]?.string ?? ""), arrived \(Parts.time(event["arrived_at"])).</p>\(running)
            \(stories.isEmpty ? "<p class=\"none\">No rule wanted to tell anyone of it.</p>" : "")
            \(stories.map { story($0, since: arrived) })\(revocations(event))\(more(event))</section>
            \(isRedacted ? nil : actions(formToken: formToken, role: role))
            """
    }

    private func story(_ story: JSONValue, since arrived: Date?) -> HTML {
        let user = story["user"]?.string ?? ""
        let steps = steps(of: story).map { step -> HTML in
            let delay = step.at.string.flatMap { RFC3339.date(from: $0) }.flatMap { at in
                arrived.map { "+\(Self.spelled(at.timeIntervalSince($0)))" }
            }
            return "<li><b>\(delay ?? "–")</b> \(step.text)</li>"
        }
        let person: HTML = isRedacted ? "A user" : Parts.link(Parts.personPath(user, app: app), user)
        return """
            <article><h2>\(person) · rule \(story["rule"]?.string ?? "")</h2><ol class="steps">\(steps)</ol></article>

            """
    }

    private struct Step {
        var at: JSONValue
        var text: HTML
    }

    /// Decisions, the devices' results and receipts, in the order of their times.
    private func steps(of story: JSONValue) -> [Step] {
        let meanings = explanations["reasons"]
        var steps = (story["decisions"]?.array ?? []).map { decision -> Step in
            let until: HTML? = decision["until"]?.string.map { until -> HTML in ", until \(Parts.time(.string(until)))"
            }
            return Step(
                at: decision["at"] ?? .null,
                text:
                    "decided: \(Parts.word(decision["answer"]?.string ?? ""))\(until) – \(Parts.reason(decision["reason"], meanings))"
            )
        }
        steps += (story["outcomes"]?.array ?? []).map { outcome in
            let device = outcome["device"]?.string.map { isRedacted ? "a device" : "device \($0)" } ?? "no device"
            return Step(
                at: outcome["at"] ?? .null,
                text: """
                    \(outcome["origin"]?.string ?? ""), \(device): \(Parts.word(outcome["disposition"]?.string ?? ""))
                    \(outcome["reason"]?.string.map { reason -> HTML in "– \(reason)" })
                    """)
        }
        steps += (story["receipts"]?.array ?? []).map { receipt in
            Step(at: receipt["at"] ?? .null, text: "the user: \(Parts.word(receipt["what"]?.string ?? ""))")
        }
        steps.sort { ($0.at.string ?? "") < ($1.at.string ?? "") }
        if let until = story["waits_until"]?.string {
            steps.append(Step(at: .null, text: "waits until \(Parts.time(.string(until)))"))
        }
        return steps
    }

    private func revocations(_ event: JSONValue) -> HTML {
        let rows = (event["revocations"]?.array ?? []).map { revocation in
            Parts.row([
                Parts.time(revocation["requested_at"]), "\(revocation["requested_by"]?.string ?? "a rule")",
                "\(revocation["reason"]?.string ?? "–")", Parts.time(revocation["ended_at"]),
            ])
        }
        guard !rows.isEmpty else { return "" }
        return Parts.table("Revocations", ["Requested", "By", "Reason", "Done"], rows, none: "")
    }

    private func more(_ event: JSONValue) -> HTML? {
        guard !isRedacted, let next = event["next"]?.string else { return nil }
        let query = FormCoding.text([("app", app), ("id", self.event), ("after", next)])
        return "<p>\(Parts.link("/event?\(query)", "More users"))</p>"
    }

    private func actions(formToken: String?, role: Role?) -> HTML? {
        guard let formToken, let role else { return nil }
        let fields: HTML = """
            <input type="hidden" name="form_token" value="\(formToken)"><input type="hidden" name="app" value="\(app)">
            <input type="hidden" name="id" value="\(event)">
            """
        let revoke: HTML = """
            <form class="card" method="post" action="/event/revoke"><h2>Take it back</h2>\(fields)
            <p>Held and queued pushes are dropped, and phones clear the copies that they show.</p>
            <label>Reason, for the audit log <input name="reason" required maxlength="200"></label>
            <button class="danger">Revoke for all users</button></form>
            """
        return """
            <div class="cards">\(role >= .operate ? revoke : nil)
            <form class="card" method="post" action="/event/link"><h2>A link for support</h2>\(fields)
            <p>The link shows this event without users and devices, to anyone who has it, for 24 hours.</p>
            <button>Make a link</button></form></div>
            """
    }

    /// `250 ms`, `1.2 s`, `3 min`, `5.0 h`.
    static func spelled(_ seconds: Double) -> String {
        func decimal(_ value: Double) -> String {
            let tenths = Int((value * 10).rounded())
            return "\(tenths / 10).\(abs(tenths % 10))"
        }
        switch seconds {
        case ..<1: return "\(Int((seconds * 1000).rounded())) ms"
        case ..<120: return "\(decimal(seconds)) s"
        case ..<7200: return "\(Int(seconds / 60)) min"
        default: return "\(decimal(seconds / 3600)) h"
        }
    }
}
