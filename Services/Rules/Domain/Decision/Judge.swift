import PushProtocol

/// The decision: one notification, one person, one moment, and the first answer that ends it
/// (`messaging-and-data` §6.2, in its order). Pure; what is held comes here again.
struct Judge: Sendable {
    /// How often quiet hours may put the same thing off.
    static let mostQuietHolds = 2
    /// So many minutes after the time that a person chose, a digest still counts as at that time.
    static let chosenTimeTolerance = 60

    var house: HouseRules
    var now: Timestamp

    /// Judges, and charges the person's caps for what is pushed.
    func judge(_ matter: Matter, _ person: inout Person) -> Judgement {
        var matter = matter
        matter.policy.inbox = house.keeps(matter.policy, for: person.settings)
        var judgement = decide(matter, person)
        switch judgement.answer {
        case .push, .pushQuietly:
            if !matter.isSendable { judgement = inbox(matter, .unsendable) }
        case .hold, .digest, .inbox, .drop: break
        }
        switch judgement.answer {
        case .push where matter.isNoise, .pushQuietly: charge(matter, &person)
        case .push, .hold, .digest, .inbox, .drop: break
        }
        if let key = matter.dedupe, let dedupe = matter.policy.dedupe {
            switch judgement.answer {
            case .push, .pushQuietly, .hold, .digest: person.told[key] = now + dedupe.within
            case .inbox, .drop: break
            }
        }
        return judgement
    }

    private func decide(_ matter: Matter, _ person: Person) -> Judgement {
        if let expiresAt = matter.expiresAt, expiresAt <= now { return inbox(matter, .expired) }
        guard matter.isNoise else { return Judgement(answer: .push, reason: .noiseless) }
        if house.isCritical(matter.policy) { return critical(matter, person) }
        if let key = matter.dedupe, let until = person.told[key], until > now {
            return Judgement(answer: .drop, reason: .repeated)
        }
        // What is gathered is asked about when it is said: by then people may want other things.
        if matter.policy.sumsUpAll, !matter.isSummary { return Judgement(answer: .digest, reason: .gathered) }
        if let refusal = preferences(matter, person.settings) { return inbox(matter, refusal) }
        switch matter.policy.presence {
        case .app where person.isPresent(now): return inbox(matter, .present)
        case .thread where matter.thread.map({ person.isViewing($0, now) }) == true: return inbox(matter, .viewing)
        case .app, .thread, .ignored: break
        }
        if let opens = capsOpen(matter, person) {
            switch matter.policy.surplus {
            case .inbox: return inbox(matter, .capped)
            case .hold: return hold(matter, until: opens, .capped)
            case .digest: return Judgement(answer: .digest, reason: .capped)
            }
        }
        return quietHours(matter, person)
    }

    private func inbox(_ matter: Matter, _ reason: Judgement.Cause) -> Judgement {
        Judgement(answer: matter.policy.inbox ? .inbox : .drop, reason: reason)
    }

    /// Holds it, unless nothing would be left of it by then.
    private func hold(_ matter: Matter, until: Timestamp, _ reason: Judgement.Cause) -> Judgement {
        if let expiresAt = matter.expiresAt, until >= expiresAt { return inbox(matter, reason) }
        guard until <= matter.since + matter.policy.holdFor else {
            return inbox(matter, matter.since == now ? reason : .heldTooLong)
        }
        return Judgement(answer: .hold(until: until), reason: reason)
    }
}

// MARK: - Critical

extension Judge {
    private func critical(_ matter: Matter, _ person: Person) -> Judgement {
        let log = person.logs[Cap.criticalLog, default: []]
        guard Cap.ofCritical.opens(after: log, now: now) == nil else { return inbox(matter, .criticalStorm) }
        return Judgement(answer: .push, reason: .critical)
    }
}

// MARK: - Preferences

extension Judge {
    /// The switches for everything and for a channel are ceilings: nothing below them is opened again
    /// (`messaging-and-data` §6.3).
    func preferences(_ matter: Matter, _ settings: PersonalSettings) -> Judgement.Cause? {
        guard settings.isOn else { return .switchedOff }
        guard settings.allows(.push) else { return .channelOff }
        return unwanted(matter, settings, by: .push)
    }

    /// Why a person does not want what this is about by this way: the most specific word counts.
    func unwanted(
        _ matter: Matter, _ settings: PersonalSettings, by channel: PersonalSettings.Channel
    ) -> Judgement.Cause? {
        for name in matter.mutes.reversed() {
            guard let mute = settings.mutes[name], mute.until.map({ $0 > now }) ?? true else { continue }
            return mute.isMuted ? .muted : nil
        }
        guard let type = matter.policy.type, !settings.wants(type, by: channel, house) else { return nil }
        return settings.hasWord(on: type, by: channel) ? .typeChannelOff : .typeOff
    }
}

// MARK: - Caps

extension Judge {
    /// The cap's log that each cap of a matter counts in, and the cap.
    private func caps(_ matter: Matter) -> [(log: String, cap: Cap)] {
        if house.isCritical(matter.policy) { return [(Cap.criticalLog, .ofCritical)] }
        return matter.policy.caps.compactMap { name in house.caps[name].map { (name, $0) } }
    }

    /// When the last of its caps opens; `nil` if all are open.
    private func capsOpen(_ matter: Matter, _ person: Person) -> Timestamp? {
        // What sums up a surplus would be a surplus again.
        if matter.isSummary, matter.policy.surplus == .digest { return nil }
        return caps(matter).compactMap { $0.cap.opens(after: person.logs[$0.log, default: []], now: now) }.max()
    }

    private func charge(_ matter: Matter, _ person: inout Person) {
        for (log, cap) in caps(matter) {
            person.logs[log] = Array((person.logs[log, default: []] + [now]).sorted().suffix(cap.limit))
        }
    }
}

// MARK: - Quiet hours

extension Judge {
    private func quietHours(_ matter: Matter, _ person: Person) -> Judgement {
        let wanted = Judgement(answer: .push, reason: .wanted)
        let zone = person.settings.zone ?? house.zone
        guard matter.policy.quietHours != .bypass, !matter.isAtChosenTime(person.settings, zone: zone, now: now),
            let end = person.settings.quietHours?.release(from: now, in: zone)
        else { return wanted }
        switch matter.policy.quietHours {
        case .bypass: return wanted
        case .silent: return Judgement(answer: .pushQuietly, reason: .quietHours)
        case .inbox: return inbox(matter, .quietHours)
        case .hold:
            guard matter.quietHolds < Judge.mostQuietHolds else { return inbox(matter, .heldTooOften) }
            return hold(matter, until: end, .quietHours)
        }
    }
}

extension Matter {
    /// Whether this is a daily digest at the time that the person chose for it. A digest at the rule's own time obeys quiet
    /// hours; a person who chose a time inside of their quiet hours wants it then (`messaging-and-data` §6.6).
    ///
    /// A digest that comes later than ``Judge/chosenTimeTolerance`` after that time is not at the chosen time any more.
    fileprivate func isAtChosenTime(_ settings: PersonalSettings, zone: Zone, now: Timestamp) -> Bool {
        guard isSummary, case .daily = policy.digest?.close, let chosen = settings.digestTime else { return false }
        let minutes = zone.local(now).second / 60 - chosen.minuteOfDay
        return (minutes + 1440) % 1440 < Judge.chosenTimeTolerance
    }
}
