import FoundationEssentials

extension Outcomes: CanonicalMessage {
    package init(_ reader: inout JSONReader, of body: [UInt8]) throws(JSONReader.Unreadable) {
        var members = try SortedObjectReader(&reader)
        let accepted =
            try members.find(#""accepted":"#, &reader)
            ? try reader.optional { (reader) throws(JSONReader.Unreadable) in try Outcome.acceptances(&reader) } : nil
        try members.require(#""app":"#, &reader)
        let app = try reader.validated(AppID.self)
        let environment: ProviderEnvironment? =
            try members.find(#""environment":"#, &reader) ? try reader.optionalEnumValue() : nil
        try members.require(#""lane":"#, &reader)
        let lane = try reader.enumValue(Lane.self)
        try members.require(#""origin":"#, &reader)
        let origin = try reader.enumValue(Origin.self)
        let listed =
            try members.find(#""outcomes":"#, &reader)
            ? try reader.optional { (reader) throws(JSONReader.Unreadable) in
                try reader.elements { (reader) throws(JSONReader.Unreadable) in try Outcome(&reader) }
            } : nil
        guard listed != nil || accepted != nil else { throw JSONReader.Unreadable(missing: #""outcomes":"#) }
        let routeHealth =
            try members.find(#""pulse":"#, &reader)
            ? try reader.optional { (reader) throws(JSONReader.Unreadable) in try RouteHealth(&reader) } : nil
        try members.require(#""trace":"#, &reader)
        let trace = try Trace(&reader)
        try members.end(&reader, ofType: #""heliograph.outcomes""#, upToVersion: Self.messageVersion)
        self.init(
            trace: trace, app: app, origin: origin, environment: environment, lane: lane, routeHealth: routeHealth,
            outcomes: (listed ?? []) + (accepted ?? []))
    }
}

extension Outcome {
    fileprivate static func acceptances(_ reader: inout JSONReader) throws(JSONReader.Unreadable) -> [Outcome] {
        var members = try SortedObjectReader(&reader)
        try members.require(#""at":"#, &reader)
        let at = try reader.timestamp()
        try members.require(#""devices":"#, &reader)
        var outcomes = try reader.ids {
            Outcome(notification: $0, device: $0, answer: .accepted(id: nil), at: at, registeredAt: nil)
        }
        if try members.find(#""ids":"#, &reader), try !reader.consumeNull() {
            try reader.list(of: &outcomes) { (reader) throws(JSONReader.Unreadable) in
                try reader.optionalString()
            } set: {
                $0.answer = .accepted(id: $1.map { ProviderMessageID($0) })
            }
        }
        try members.require(#""notifications":"#, &reader)
        try reader.column(of: &outcomes) { (reader) throws(JSONReader.Unreadable) in
            try reader.uuid()
        } set: {
            $0.notification = $1
        }
        try members.end(&reader)
        return outcomes
    }

    fileprivate init(_ reader: inout JSONReader) throws(JSONReader.Unreadable) {
        var members = try SortedObjectReader(&reader)
        try members.require(#""answer":"#, &reader)
        let answer = try Answer(&reader)
        try members.require(#""at":"#, &reader)
        let at = try reader.timestamp()
        let device =
            try members.find(#""device":"#, &reader)
            ? try reader.optional { (reader) throws(JSONReader.Unreadable) in try reader.uuid() } : nil
        let elsewhere: ProviderEnvironment? =
            try members.find(#""elsewhere":"#, &reader) ? try reader.optionalEnumValue() : nil
        try members.require(#""notification":"#, &reader)
        let notification = try reader.uuid()
        let owner = try members.find(#""owner":"#, &reader) ? try reader.optionalInteger() : nil
        let refusedFID = try members.find(#""refusedFID":"#, &reader) ? try reader.optionalString() : nil
        let registeredAt = try members.find(#""registeredAt":"#, &reader) ? try reader.optionalTimestamp() : nil
        try members.end(&reader)
        self.init(
            notification: notification, device: device, answer: answer, at: at, registeredAt: registeredAt,
            elsewhere: elsewhere, refusedFID: refusedFID, owner: owner.map(UserHash.init(rawValue:)))
    }
}

extension Outcome.Answer {
    fileprivate init(_ reader: inout JSONReader) throws(JSONReader.Unreadable) {
        var members = try SortedObjectReader(&reader)
        try members.require(#""disposition":"#, &reader)
        let disposition = try reader.enumValue(Disposition.self)
        let id = try members.find(#""id":"#, &reader) ? try reader.optionalString() : nil
        var reason = ""
        if disposition.hasReason {
            try members.require(#""reason":"#, &reader)
            reason = try reader.string()
        }
        let since = try members.find(#""since":"#, &reader) ? try reader.optionalTimestamp() : nil
        let suspectToken =
            try members.find(#""suspectToken":"#, &reader)
            ? try reader.optional { (reader) throws(JSONReader.Unreadable) in try reader.bool() } : nil
        try members.end(&reader)
        switch disposition {
        case .accepted: self = .accepted(id: id.map { ProviderMessageID($0) })
        case .unregistered: self = .unregistered(since: since, reason: reason)
        case .rejected: self = .rejected(reason: reason, suspectToken: suspectToken ?? false)
        case .throttled: self = .throttled(reason: reason)
        case .misconfigured: self = .misconfigured(reason: reason)
        case .expired: self = .expired
        case .skipped: self = .skipped(reason: reason)
        case .unknown: self = .unknown(reason: reason)
        }
    }
}

extension Outcome.Answer.Disposition {
    fileprivate var hasReason: Bool {
        switch self {
        case .accepted, .expired: false
        case .unregistered, .rejected, .throttled, .misconfigured, .skipped, .unknown: true
        }
    }
}

extension RouteHealth {
    fileprivate init(_ reader: inout JSONReader) throws(JSONReader.Unreadable) {
        var members = try SortedObjectReader(&reader)
        let acceptedAt = try members.find(#""acceptedAt":"#, &reader) ? try reader.optionalTimestamp() : nil
        try members.require(#""answered":"#, &reader)
        let answered = Int(try reader.integer())
        try members.require(#""minute":"#, &reader)
        let minute = try reader.timestamp()
        try members.require(#""sender":"#, &reader)
        let sender = try reader.uuid()
        let spike =
            try members.find(#""storm":"#, &reader)
            ? try reader.optional { (reader) throws(JSONReader.Unreadable) in try BadTokenSpike(&reader) } : nil
        try members.end(&reader)
        self.init(sender: sender, minute: minute, answered: answered, acceptedAt: acceptedAt, badTokenSpike: spike)
    }
}

extension RouteHealth.BadTokenSpike {
    fileprivate init(_ reader: inout JSONReader) throws(JSONReader.Unreadable) {
        var members = try SortedObjectReader(&reader)
        try members.require(#""since":"#, &reader)
        let since = try reader.timestamp()
        try members.require(#""until":"#, &reader)
        let until = try reader.timestamp()
        try members.end(&reader)
        self.init(since: since, until: until)
    }
}
