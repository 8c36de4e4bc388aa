import FoundationEssentials
import PushProtocol

extension RuleFileReader {
    /// Tests every rule on the examples of its events.
    ///
    /// Reports rules that match no example, and rules that cannot be rendered for an example that they match.
    func check(_ ruleSet: RuleSet, against catalog: [String: EventShape]) {
        let tried = Self.withoutAttributes(ruleSet)
        let matching = examples(in: catalog, matching: tried)
        for rule in ruleSet.rules {
            guard let events = matching[rule.name] else {
                let key = "rules.\(rule.name).when"
                report(line: line(of: key), key: key, "none of the event's examples matches")
                continue
            }
            for event in events {
                do {
                    _ = try tried.evaluate(event, by: rule.name, arrivedAt: Timestamp(milliseconds: 0))
                } catch {
                    let key = "rules.\(rule.name).\(error.place)"
                    report(line: line(of: key), key: key, "with an example of \(event.type): \(error.problem)")
                    break
                }
            }
            checkImages(of: rule, on: events)
        }
    }

    /// Reports images that phones do not load. A service leaves such an image out.
    private func checkImages(of rule: Rule, on events: [DomainEvent]) {
        let place = "rules.\(rule.name).say"
        let translated = rule.say.translations.map { ("\(place).languages.\($0.tag).image", $1.image) }
        for (key, template) in [("\(place).image", rule.say.image)] + translated.sorted(by: { $0.0 < $1.0 }) {
            for event in events {
                guard let image = try? template?.render(Scope(event: event)), !image.isEmpty else { continue }
                guard !Rule.isLoadable(image: image) else { continue }
                report(
                    line: line(of: key), key: key,
                    "with an example of \(event.type): expected an https URL, because phones load no other")
                break
            }
        }
    }

    /// Returns the matching examples of each rule. The rule set's index avoids testing every rule on every example.
    private func examples(
        in catalog: [String: EventShape], matching ruleSet: RuleSet
    ) -> [String: [DomainEvent]] {
        var matching: [String: [DomainEvent]] = [:]
        for (type, shape) in catalog.sorted(by: { $0.key < $1.key }) {
            for data in shape.examples {
                let event = Self.event(type, data: data, app: ruleSet.app)
                for rule in ruleSet.rules(for: event) { matching[rule.name, default: []].append(event) }
            }
        }
        return matching
    }

    /// Returns the rules without conditions on source and subject, because examples have only data.
    private static func withoutAttributes(_ ruleSet: RuleSet) -> RuleSet {
        let rules = ruleSet.rules.map { rule in
            var rule = rule
            rule.when.attributes = nil
            return rule
        }
        return RuleSet(app: ruleSet.app, version: ruleSet.version, events: [], defaults: ruleSet.defaults, rules: rules)
    }

    /// Tests the events about users (`presence`, `reads`, `groups`, `done`, `revoke`) on their examples.
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

    static func event(_ type: String, data: JSONValue, app: AppID) -> DomainEvent {
        DomainEvent(
            app: app, id: "example", source: "/example", type: type, subject: "example",
            time: Date(timeIntervalSince1970: 0), data: data)
    }
}
