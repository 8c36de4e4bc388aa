import PushProtocol

/// The decision: one notification, one person, one moment, and the first answer that ends it
/// (`messaging-and-data` §6.2, in its order). Pure; what is held comes here again.
struct DecisionEngine: Sendable {
    /// How often quiet hours may put the same thing off.
    static let mostQuietHolds = 2
    /// So many minutes after the time that a person chose, a digest still counts as at that time.
    static let chosenTimeTolerance = 60

    var defaults: AppDefaults
    var now: Timestamp

    /// Judges, and charges the person's caps for what is pushed.
    func decide(_ input: DecisionInput, _ person: inout Person) -> RuleDecision {
        var input = input
        input.policy.inbox = defaults.keeps(input.policy, for: person.settings)
        var decision = assess(input, person)
        switch decision.answer {
        case .push, .pushQuietly:
            if !input.isSendable { decision = inbox(input, .unsendable) }
        case .hold, .digest, .inbox, .drop: break
        }
        switch decision.answer {
        case .push where input.isUserVisible, .pushQuietly: charge(input, &person)
        case .push, .hold, .digest, .inbox, .drop: break
        }
        if let key = input.dedupe, let dedupe = input.policy.dedupe {
            switch decision.answer {
            case .push, .pushQuietly, .hold, .digest: person.dedupeUntil[key] = now + dedupe.within
            case .inbox, .drop: break
            }
        }
        return decision
    }

    private func assess(_ input: DecisionInput, _ person: Person) -> RuleDecision {
        if let expiresAt = input.expiresAt, expiresAt <= now { return inbox(input, .expired) }
        guard input.isUserVisible else { return RuleDecision(answer: .push, reason: .notUserVisible) }
        if defaults.isCritical(input.policy) { return critical(input, person) }
        if let key = input.dedupe, let until = person.dedupeUntil[key], until > now {
            return RuleDecision(answer: .drop, reason: .repeated)
        }
        // What is gathered is asked about when it is said: by then people may want other things.
        if input.policy.sumsUpAll, !input.isSummary { return RuleDecision(answer: .digest, reason: .gathered) }
        if let refusal = preferences(input, person.settings) { return inbox(input, refusal) }
        switch input.policy.presence {
        case .app where person.isPresent(now): return inbox(input, .present)
        case .thread where input.thread.map({ person.isViewing($0, now) }) == true: return inbox(input, .viewing)
        case .app, .thread, .ignored: break
        }
        if let opens = capsOpen(input, person) {
            switch input.policy.overflow {
            case .inbox: return inbox(input, .capped)
            case .hold: return hold(input, until: opens, .capped)
            case .digest: return RuleDecision(answer: .digest, reason: .capped)
            }
        }
        return quietHours(input, person)
    }

    private func inbox(_ input: DecisionInput, _ reason: RuleDecision.Cause) -> RuleDecision {
        RuleDecision(answer: input.policy.inbox ? .inbox : .drop, reason: reason)
    }

    /// Holds it, unless nothing would be left of it by then.
    private func hold(_ input: DecisionInput, until: Timestamp, _ reason: RuleDecision.Cause) -> RuleDecision {
        if let expiresAt = input.expiresAt, until >= expiresAt { return inbox(input, reason) }
        guard until <= input.since + input.policy.holdFor else {
            return inbox(input, input.since == now ? reason : .heldTooLong)
        }
        return RuleDecision(answer: .hold(until: until), reason: reason)
    }
}

// MARK: - Critical

extension DecisionEngine {
    private func critical(_ input: DecisionInput, _ person: Person) -> RuleDecision {
        let log = person.capHistory[Cap.criticalLog, default: []]
        guard Cap.ofCritical.opens(after: log, now: now) == nil else { return inbox(input, .criticalLimit) }
        return RuleDecision(answer: .push, reason: .critical)
    }
}

// MARK: - Preferences

extension DecisionEngine {
    /// The switches for everything and for a channel are ceilings: nothing below them is opened again
    /// (`messaging-and-data` §6.3).
    func preferences(_ input: DecisionInput, _ settings: PersonalSettings) -> RuleDecision.Cause? {
        guard settings.isOn else { return .switchedOff }
        guard settings.allows(.push) else { return .channelOff }
        return unwanted(input, settings, by: .push)
    }

    /// Why a person does not want what this is about by this way: the most specific word counts.
    func unwanted(
        _ input: DecisionInput, _ settings: PersonalSettings, by channel: PersonalSettings.Channel
    ) -> RuleDecision.Cause? {
        for name in input.mutes.reversed() {
            guard let mute = settings.mutes[name], mute.until.map({ $0 > now }) ?? true else { continue }
            return mute.isMuted ? .muted : nil
        }
        guard let type = input.policy.type, !settings.wants(type, by: channel, defaults) else { return nil }
        return settings.hasChoice(on: type, by: channel) ? .typeChannelOff : .typeOff
    }
}

// MARK: - Caps

extension DecisionEngine {
    /// The cap's log that each cap of a matter counts in, and the cap.
    private func caps(_ input: DecisionInput) -> [(log: String, cap: Cap)] {
        if defaults.isCritical(input.policy) { return [(Cap.criticalLog, .ofCritical)] }
        return input.policy.caps.compactMap { name in defaults.caps[name].map { (name, $0) } }
    }

    /// When the last of its caps opens; `nil` if all are open.
    private func capsOpen(_ input: DecisionInput, _ person: Person) -> Timestamp? {
        // What sums up a surplus would be a surplus again.
        if input.isSummary, input.policy.overflow == .digest { return nil }
        return caps(input).compactMap { $0.cap.opens(after: person.capHistory[$0.log, default: []], now: now) }.max()
    }

    private func charge(_ input: DecisionInput, _ person: inout Person) {
        for (log, cap) in caps(input) {
            person.capHistory[log] = Array((person.capHistory[log, default: []] + [now]).sorted().suffix(cap.limit))
        }
    }
}

// MARK: - Quiet hours

extension DecisionEngine {
    private func quietHours(_ input: DecisionInput, _ person: Person) -> RuleDecision {
        let wanted = RuleDecision(answer: .push, reason: .wanted)
        let zone = person.settings.zone ?? defaults.zone
        guard input.policy.quietHours != .bypass, !input.isAtChosenTime(person.settings, zone: zone, now: now),
            let end = person.settings.quietHours?.release(from: now, in: zone)
        else { return wanted }
        switch input.policy.quietHours {
        case .bypass: return wanted
        case .silent: return RuleDecision(answer: .pushQuietly, reason: .quietHours)
        case .inbox: return inbox(input, .quietHours)
        case .hold:
            guard input.quietHolds < DecisionEngine.mostQuietHolds else { return inbox(input, .heldTooOften) }
            return hold(input, until: end, .quietHours)
        }
    }
}

extension DecisionInput {
    /// Whether this is a daily digest at the time that the person chose for it. A digest at the rule's own time obeys quiet
    /// hours; a person who chose a time inside of their quiet hours wants it then (`messaging-and-data` §6.6).
    ///
    /// A digest that comes later than ``DecisionEngine/chosenTimeTolerance`` after that time is not at the chosen time any more.
    fileprivate func isAtChosenTime(_ settings: PersonalSettings, zone: Zone, now: Timestamp) -> Bool {
        guard isSummary, case .daily = policy.digest?.close, let chosen = settings.digestTime else { return false }
        let minutes = zone.local(now).second / 60 - chosen.minuteOfDay
        return (minutes + 1440) % 1440 < DecisionEngine.chosenTimeTolerance
    }
}
