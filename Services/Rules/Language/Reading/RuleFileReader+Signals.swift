import Yams

extension RuleFileReader {
    /// Reads `presence`: the events that report users with the app open.
    func presence(_ field: Field, _ catalog: [String: EventShape]) -> [SignalSource] {
        sources(field, catalog, keys: ["event", "data", "user", "device", "viewing", "for", "gone"]) { table, shapes in
            let isGone = table["gone"].flatMap(flag) ?? false
            for key in ["viewing", "for"] where isGone {
                if let value = table[key] { report(value, "not allowed with “gone: true”") }
            }
            let duration = table["for"].flatMap { lease($0) } ?? Signal.defaultLease
            return (isGone ? .gone : .present(for: duration), table["viewing"].flatMap { template($0, shapes) })
        }
    }

    /// Reads `reads`: the events that report users who read a thread.
    func reads(_ field: Field, _ catalog: [String: EventShape]) -> [SignalSource] {
        sources(field, catalog, keys: ["event", "data", "user", "thread"]) { table, shapes in
            (.read, table["thread"].flatMap { template($0, shapes) })
        }
    }

    /// Reads `done`: the events that cancel draft notifications of an item. ``doneByReceipts(_:_:)`` reads its other
    /// entries.
    func done(_ field: Field, _ catalog: [String: EventShape]) -> [SignalSource] {
        sources(
            field, catalog, keys: ["event", "data", "item"], required: ["event", "item"],
            where: { !$0.isAboutReceipt }
        ) { table, shapes in
            (.done, table["item"].flatMap { template($0, shapes) })
        }
    }

    /// Reads `revoke`: the events that take back the notifications of an item.
    func revoke(_ field: Field, _ catalog: [String: EventShape]) -> [SignalSource] {
        sources(field, catalog, keys: ["event", "data", "item", "user", "inbox"], required: ["event", "item"]) {
            table, shapes in
            let inbox: RevokedInbox? = table["inbox"].flatMap { choice($0) }
            return (.revoke(keepsInbox: inbox == .keep), table["item"].flatMap { template($0, shapes) })
        }
    }

    /// The key `inbox` of `revoke`.
    private enum RevokedInbox: String, CaseIterable {
        case remove, keep
    }

    /// Reports `revoke` in a file without an item: no notification could be revoked.
    func checkRevocations(_ field: Field, _ rules: [Rule]) {
        guard rules.allSatisfy({ $0.policy.item == nil }) else { return }
        report(field, "no rule has policy.item, so no notification can be revoked; add an item to a rule")
    }

    private func sources(
        _ field: Field, _ catalog: [String: EventShape], keys: [String], required: [String] = ["event", "user"],
        where isSource: (Field) -> Bool = { _ in true },
        _ rest: ([String: Field], [EventShape]) -> (SignalSource.Kind, Template?)
    ) -> [SignalSource] {
        (list(field) ?? []).filter(isSource).compactMap { field in
            guard let table = table(field, keys: keys, required: required),
                let when = condition(field, table, catalog: catalog)
            else { return nil }
            let shapes = when.events.compactMap { catalog[$0] }
            let (kind, thread) = rest(table, shapes)
            let user = table["user"].flatMap { path($0, shapes) }
            guard user != nil || table["user"] == nil && !required.contains("user") else { return nil }
            return SignalSource(
                place: field.path, when: when, user: user, device: table["device"].flatMap { path($0, shapes) },
                thread: thread, kind: kind)
        }
    }

    private func lease(_ field: Field) -> Duration? {
        guard let lease = duration(field) else { return nil }
        guard lease <= Signal.longestLease else {
            report(field, "at most 10m: an open app renews its presence")
            return nil
        }
        return lease
    }
}
