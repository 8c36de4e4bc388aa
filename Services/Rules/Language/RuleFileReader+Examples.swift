import FoundationEssentials
import PushProtocol

extension RuleFileReader {
    /// Tries every rule on the examples of its events: one that no example wakes is dead, and one that cannot say what it
    /// should about an example cannot say it about an event either.
    func check(_ ruleSet: RuleSet, against catalog: [String: EventShape]) {
        for rule in ruleSet.rules {
            let path = "rules.\(rule.name)"
            // Examples have data only, so what a rule asks of source and subject is not tried.
            var tried = rule
            tried.when.attributes = nil
            let alone = RuleSet(
                app: ruleSet.app, version: ruleSet.version, events: [], house: ruleSet.house, rules: [tried])
            let examples = rule.when.events.flatMap { type in
                catalog[type]?.examples.map { RuleFileReader.event(type, data: $0, app: ruleSet.app) } ?? []
            }
            if !examples.contains(where: tried.when.holds) {
                report(line: line(of: "\(path).when"), key: "\(path).when", "none of the event's examples matches")
            }
            for event in examples {
                do {
                    _ = try alone.evaluate(event)
                } catch {
                    let key = "\(path).\(error.place)"
                    report(line: line(of: key), key: key, "with an example of \(event.type): \(error.problem)")
                    break
                }
            }
        }
    }

    /// Tries on the examples what events tell about people.
    func checkSignals(_ ruleSet: RuleSet, against catalog: [String: EventShape]) {
        for source in ruleSet.memberships {
            tryExamples(source.when, source.place, catalog, ruleSet.app, source.signal)
        }
        for source in ruleSet.signals { tryExamples(source.when, source.place, catalog, ruleSet.app, source.signal) }
    }

    private func tryExamples(
        _ when: Rule.Condition, _ place: String, _ catalog: [String: EventShape], _ app: AppID,
        _ signal: (DomainEvent, Scope) throws(RenderError) -> Signal?
    ) {
        let examples = when.events.flatMap { type in
            catalog[type]?.examples.map { RuleFileReader.event(type, data: $0, app: app) } ?? []
        }
        for event in examples {
            do {
                _ = try signal(event, Scope(event: event))
            } catch {
                let key = "\(place).\(error.place)"
                report(line: line(of: key), key: key, "with an example of \(event.type): \(error.problem)")
                return
            }
        }
    }

    private static func event(_ type: String, data: JSONValue, app: AppID) -> DomainEvent {
        DomainEvent(
            app: app, id: "example", source: "/example", type: type, subject: "example",
            time: Date(timeIntervalSince1970: 0), data: data)
    }
}
