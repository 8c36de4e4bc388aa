package import PushProtocol
package import RuleLanguage

/// Decides one notification to one user: the first condition that applies determines the decision.
///
/// `Services/Rules/README.md` lists the conditions in order. Pure. A held notification is decided again after the hold.
package struct DecisionEngine: Sendable {
    /// The maximum number of times that quiet hours hold a notification.
    static let mostQuietHolds = 2
    /// The minutes after a user's digest time during which a digest still counts as on time.
    static let chosenTimeTolerance = 60

    package var defaults: AppDefaults
    package var now: Timestamp

    package init(
        defaults: AppDefaults, now: Timestamp
    ) {
        self.defaults = defaults
        self.now = now
    }

    /// Decides the notification, and adds a push to the user's cap history.
    package func decide(_ input: DecisionInput, _ person: inout Person) -> RuleDecision {
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
        // Preferences apply when the digest is sent. The user can change them until then.
        if input.policy.digestsAll, !input.isSummary { return RuleDecision(answer: .digest, reason: .gathered) }
        if let refusal = preferences(input, person.settings) { return inbox(input, refusal) }
        switch input.policy.presence {
        case .app where person.isPresent(now): return inbox(input, .present)
        case .thread where input.thread.map({ person.isViewing($0, now) }) == true: return inbox(input, .viewing)
        case .app, .thread, .ignored: break
        }
        if let nextPush = nextPushTime(input, person) {
            switch input.policy.overflow {
            case .inbox: return inbox(input, .capped)
            case .hold: return hold(input, until: nextPush, .capped)
            case .digest: return RuleDecision(answer: .digest, reason: .capped)
            }
        }
        return quietHours(input, person)
    }

    private func inbox(_ input: DecisionInput, _ reason: RuleDecision.Cause) -> RuleDecision {
        RuleDecision(answer: input.policy.inbox ? .inbox : .drop, reason: reason)
    }

    /// Holds the notification, unless it would expire first or exceed the rule's maximum hold.
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
        guard Cap.criticalCap.nextPush(after: log, now: now) == nil else { return inbox(input, .criticalLimit) }
        return RuleDecision(answer: .push, reason: .critical)
    }
}

// MARK: - Preferences

extension DecisionEngine {
    /// Returns the reason why the user's settings refuse a push; `nil` if they allow it.
    ///
    /// The switches for everything and for a channel take precedence over types and mutes.
    package func preferences(_ input: DecisionInput, _ settings: PersonalSettings) -> RuleDecision.Cause? {
        guard settings.isOn else { return .switchedOff }
        guard settings.allows(.push) else { return .channelOff }
        return unwanted(input, settings, by: .push)
    }

    /// Returns the reason why the user does not want the notification on a channel; `nil` if they do.
    ///
    /// The most specific setting counts.
    package func unwanted(
        _ input: DecisionInput, _ settings: PersonalSettings, by channel: PersonalSettings.Channel
    ) -> RuleDecision.Cause? {
        for name in input.mutes.reversed() {
            guard let mute = settings.mutes[name], mute.until.map({ $0 > now }) ?? true else { continue }
            return mute.isMuted ? .muted : nil
        }
        guard let type = input.policy.type, !settings.wants(type, by: channel, defaults) else { return nil }
        return settings.hasChannelChoice(on: type, by: channel) ? .typeChannelOff : .typeOff
    }
}

// MARK: - Caps

extension DecisionEngine {
    /// Returns the notification's caps, with the name of each cap's history.
    private func caps(_ input: DecisionInput) -> [(log: String, cap: Cap)] {
        if defaults.isCritical(input.policy) { return [(Cap.criticalLog, .criticalCap)] }
        return input.policy.caps.compactMap { name in defaults.caps[name].map { (name, $0) } }
    }

    /// Returns the time at which all caps allow a push; `nil` if they do now.
    private func nextPushTime(_ input: DecisionInput, _ person: Person) -> Timestamp? {
        // The digest contains the notifications over the cap, so the cap does not apply to it again.
        if input.isSummary, input.policy.overflow == .digest { return nil }
        return caps(input).compactMap { $0.cap.nextPush(after: person.capHistory[$0.log, default: []], now: now) }.max()
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
            let end = (person.settings.quietHours ?? defaults.quietHours)?.release(from: now, in: zone)
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
    /// Whether this is a digest at the local time that the user chose. Such a digest ignores quiet hours.
    ///
    /// A digest at the rule's own time obeys quiet hours. So does a digest that is later than
    /// ``DecisionEngine/chosenTimeTolerance`` after the chosen time.
    fileprivate func isAtChosenTime(_ settings: PersonalSettings, zone: Zone, now: Timestamp) -> Bool {
        guard isSummary, case .at = policy.digest?.close, let chosen = settings.digestTime else { return false }
        let minutes = zone.local(now).second / 60 - chosen.minuteOfDay
        return (minutes + 1440) % 1440 < DecisionEngine.chosenTimeTolerance
    }
}
