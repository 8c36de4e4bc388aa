import FoundationEssentials
import PushProtocol

/// The number of notifications of an app in a state.
struct CensusCount: Hashable, Sendable {
    var app: String
    /// The raw value of a ``CensusState``.
    var state: String
    var number: Int
    var oldestAt: Timestamp?
}

/// The notifications that were decided in one interval, as the decision log has them.
struct CensusInterval: Sendable {
    var start: Timestamp
    var counts: [CensusCount] = []
    /// The number of notifications without an outcome, by app.
    var open: [String: Int] = [:]
    /// The oldest of those, and the ones with new reports against tokens.
    var items: [CensusItem] = []
    /// The notifications that were found missing before.
    var gaps: [UUID: CensusState] = [:]

    /// How an item was found missing before; `nil` if it was not, or has had an outcome since.
    func gap(of item: CensusItem) -> CensusState? {
        let gap = gaps[item.notification]
        return item.state == nil || gap == .missingFeedback ? gap : nil
    }

    /// The items that the reports of the stages are read for.
    func itemsToPlace(now: Timestamp) -> [CensusItem] {
        items.filter { item in
            [nil, .missingFeedback].contains(gap(of: item)) && item.state != .unexplained
                && now - (item.evidenceAt ?? item.decidedAt) > CensusClassifier.grace / 3
        }
    }
}

struct CensusResult: Hashable, Sendable {
    struct Gap: Hashable, Sendable {
        var item: CensusItem
        var state: CensusState
    }

    var start: Timestamp
    var countedAt: Timestamp
    /// By app and state; each notification once.
    private(set) var counts: [CensusCount] = []
    private(set) var gaps: [Gap] = []
    /// The start of the reports that may still be needed; `nil` if none is.
    private(set) var reportsFrom: Timestamp?
    /// Feedback has all reports against tokens up to this time.
    private(set) var evidenceUntil: Timestamp?
    /// Whether a notification has no final state.
    private(set) var isOpen = false
    /// When the interval is counted again.
    var dueAt: Timestamp

    private struct Key: Hashable {
        var app: String
        var state: String
    }

    /// - Parameter trails: of ``CensusInterval/itemsToPlace(now:)``, by notification.
    init(_ interval: CensusInterval, _ trails: [UUID: CensusTrail], by classifier: CensusClassifier) {
        start = interval.start
        countedAt = classifier.now
        dueAt = classifier.now
        var numbers: [Key: (number: Int, oldestAt: Timestamp?)] = [:]
        for count in interval.counts { numbers[Key(app: count.app, state: count.state)] = (count.number, nil) }
        func add(_ number: Int, _ state: CensusState, _ app: String, _ time: Timestamp?) {
            var entry = numbers[Key(app: app, state: state.rawValue)] ?? (0, nil)
            entry.number += number
            entry.oldestAt = [entry.oldestAt, time].compactMap(\.self).min()
            numbers[Key(app: app, state: state.rawValue)] = entry
        }
        var unplaced = interval.open
        var evidence = (isOpen: false, latest: Timestamp?.none)
        for item in interval.items {
            let app = item.app.rawValue
            let trail = trails[item.notification] ?? CensusTrail()
            let placement =
                if let gap = interval.gap(of: item), classifier.isStillMissing(gap, trail) {
                    CensusClassifier.Placement(state: gap, isOpen: true)
                } else {
                    classifier.place(item, trail)
                }
            if let state = item.state {
                // Counted by its outcome.
                if placement.state != state {
                    add(-1, state, app, nil)
                    add(1, placement.state, app, item.decidedAt)
                }
                if state != .unexplained {
                    evidence.isOpen = evidence.isOpen || placement.isOpen
                    evidence.latest = [evidence.latest, item.evidenceAt].compactMap(\.self).max()
                }
            } else {
                unplaced[app, default: 0] -= 1
                add(1, placement.state, app, item.decidedAt)
            }
            isOpen = isOpen || placement.isOpen
            if placement.state.isGap {
                gaps.append(Gap(item: item, state: placement.state))
            } else if placement.isOpen {
                reportsFrom = [reportsFrom, item.decidedAt].compactMap(\.self).min()
            }
        }
        for (app, number) in unplaced where number > 0 {
            add(number, .onTheWay, app, interval.start)
            isOpen = true
            reportsFrom = interval.start
        }
        if !evidence.isOpen { evidenceUntil = evidence.latest }
        counts = numbers.filter { $1.number > 0 }.map { key, entry in
            CensusCount(app: key.app, state: key.state, number: entry.number, oldestAt: entry.oldestAt)
        }.sorted { ($0.app, $0.state) < ($1.app, $1.state) }
    }
}
