package import PushProtocol
package import RuleLanguage
import FoundationEssentials

/// The key of a digest bucket: the items that one rule gathers for one user.
package struct BucketKey: Hashable, Comparable, Sendable {
    package var person: PersonKey
    package var bucket: String

    package init(
        person: PersonKey, bucket: String
    ) {
        self.person = person
        self.bucket = bucket
    }

    package static func < (a: BucketKey, b: BucketKey) -> Bool { (a.person, a.bucket) < (b.person, b.bucket) }
}

/// A due bucket, and the result of its close.
package struct DueBucket: Sendable {
    package var key: BucketKey
    package var rule: String
    package var bucket: Bucket
    package var closing: Bucket.Closing

    package init(key: BucketKey, rule: String, bucket: Bucket) {
        self.key = key
        self.rule = rule
        self.bucket = bucket
        closing = Bucket.Closing(plannedAt: bucket.plannedAt)
    }

    package mutating func close(
        by ruleSets: RuleSets, _ settings: PersonalSettings, _ writes: inout DecisionWrites, now: Timestamp
    ) throws(RenderError) {
        let found = ruleSets.ruleSets[key.person.app]
        writes.decisions += decideClose(by: found, settings, now: now)
        guard let set = found, let rule = set.rule(named: rule), let digest = rule.policy.digest,
            let latest = closing.told.max(by: { $0.saidAt < $1.saidAt })
        else { return }
        let rendered: RenderedNotification
        do {
            rendered = try rule.rendered(closing, digest, settings, set, key, latest, now: now)
        } catch {
            throw RenderError(rule: rule.name, place: error.place, problem: error.problem)
        }
        writes.renderedNotifications.append(rendered)
        writes.held.append(
            DecisionWrites.Held(
                notification: DerivedID.uuid5(rendered.id, ["to", key.person.user.rawValue]), person: key.person,
                rule: rule.name, rendered: rendered.id, event: latest.event, kind: .summary, dueAt: now,
                isKept: !(rule.policy.inbox && rule.policy.digestsAll)))
        if rule.policy.isReported {
            writes.reports.append(
                DecisionWrites.Report(
                    notification: DerivedID.uuid5(rendered.id, ["to", key.person.user.rawValue]),
                    person: key.person, rule: rule.name, correlation: latest.correlation))
        }
    }

    /// Plans the close and decides the items, without the text of the digest.
    ///
    /// - Parameter set: the app's rules; `nil` if it has none.
    mutating func decideClose(by set: RuleSet?, _ settings: PersonalSettings, now: Timestamp) -> [DecisionRecord] {
        guard let set, let rule = set.rule(named: rule), let digest = rule.policy.digest else {
            closing = Bucket.Closing(last: bucket.last, gone: bucket.items, plannedAt: now)
            return bucket.items.filter { !$0.wasSent }.map { decided($0, .drop, .ruleGone, nil) }
        }
        closing = bucket.close(digest, settings, zone: set.defaults.zone, now: now)
        return closing.told.filter { !$0.wasSent }.map { decided($0, .digest, .summedUp, set.version) }
    }

    private func decided(
        _ item: Bucket.Item, _ answer: RuleDecision.Answer, _ reason: RuleDecision.Cause, _ ruleSet: UUID?
    ) -> DecisionRecord {
        DecisionRecord(
            notification: item.notification, step: item.step, event: item.event, rule: rule, person: key.person,
            decision: RuleDecision(answer: answer, reason: reason), ruleSet: ruleSet)
    }
}

extension Rule {
    /// Renders the digest of a closing bucket. Its id follows from the date or, for digests after a window, from the
    /// new items. The latest item does not identify it: a bucket may count earlier items again.
    fileprivate func rendered(
        _ closing: Bucket.Closing, _ digest: Digest, _ settings: PersonalSettings, _ set: RuleSet, _ key: BucketKey,
        _ latest: Bucket.Item, now: Timestamp
    ) throws(PlacedProblem) -> RenderedNotification {
        let localization = Localization(
            language: set.defaults.language(
                preferring: settings.language, among: digest.say.translations.keys, exactly: true),
            zone: settings.zone ?? set.defaults.zone)
        var renderedText = try summary(
            digest, of: closing.told.map(\.values), localization, defaults: set.defaults.language)
        let bucket = DerivedID.uuid5(DerivedID.namespace, ["bucket", key.person.app.rawValue, key.bucket])
        let occasion =
            switch digest.close {
            case .at: closing.last?.date.description ?? ""
            case .after:
                DerivedID.uuid5(
                    bucket, "items", ids: closing.told.filter { !$0.wasSent }.map(\.notification)
                ).uuidString
            }
        // The next digest replaces this one on the screen.
        if renderedText.content.collapseKey == nil {
            renderedText.content.collapseKey = bucket.uuidString.lowercased()
            renderedText.preview?.collapseKey = renderedText.content.collapseKey
        }
        return RenderedNotification(
            id: DerivedID.uuid5(bucket, ["digest", key.person.user.rawValue, occasion]), app: key.person.app,
            rule: name, lane: how.lane, content: renderedText.content, preview: renderedText.preview, mutes: [],
            expiresAt: how.expiresAfter.map { now + $0 }, delivery: how.delivery, devices: how.devices?.ofSummary,
            correlation: latest.correlation,
            traceparent: nil)
    }
}
