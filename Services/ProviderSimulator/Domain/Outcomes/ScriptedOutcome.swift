import PushProtocol

/// What a provider shall do about a request that it would have taken: an answer of its own choosing, or trouble.
struct ScriptedOutcome: Hashable, Sendable {
    enum Conduct: Hashable, Sendable {
        case answer(ScriptedAnswer)
        /// RST_STREAM with this HTTP/2 error code.
        case reset(code: UInt32)
        case dropConnection
        case silence
        /// Left to its GOAWAY, which says that the request was not processed.
        case unprocessed
    }

    var conduct: Conduct
    /// Before anything else happens.
    var delay: Duration = .zero
    /// SETTINGS sent before the answer: this many concurrent streams.
    var streams: Int?
    /// Sent after the answer, or instead of one.
    var goAway: GoAway?
    /// How many requests it is for; `nil` for all.
    var count: Int?

    init(
        _ conduct: Conduct, delay: Duration = .zero, streams: Int? = nil, goAway: GoAway? = nil, count: Int? = nil
    ) {
        self.conduct = conduct
        self.delay = delay
        self.streams = streams
        self.goAway = goAway
        self.count = count
    }

    /// The wire acts, the answer being rendered by the provider whose words it is in.
    func acts(_ render: (ScriptedAnswer) -> Reply) -> [Act] {
        var acts: [Act] = []
        if delay > .zero { acts.append(.wait(delay)) }
        if let streams { acts.append(.limitStreams(streams)) }
        switch conduct {
        case .answer(let answer): acts.append(.respond(render(answer), bodyAfter: answer.bodyDelay))
        case .reset(let code): acts.append(.reset(code: code))
        case .dropConnection: acts.append(.dropConnection)
        case .silence: acts.append(.silence)
        case .unprocessed: break
        }
        if let goAway { acts.append(.goAway(goAway)) }
        return acts
    }
}

/// A scripted answer; what it leaves open is filled in as the provider would.
struct ScriptedAnswer: Hashable, Sendable {
    enum Moment: Hashable, Sendable {
        case absent
        /// So long before the answer.
        case ago(Duration)
        case at(Timestamp)
    }

    var status: Int
    /// APNs' word; need not be one that Apple documents. Google's token endpoint uses it as `error`.
    var reason: String?
    /// Goes with a 410 of APNs.
    var timestamp: Moment = .ago(.zero)
    var retryAfter: String?
    /// FCM's `errorCode`, and what else stands in `details`.
    var errorCode: String?
    var details: [JSONValue] = []
    /// Sent verbatim in place of the rendered body.
    var body: [UInt8]?
    var contentType: String?
    /// Between HEADERS and DATA.
    var bodyDelay: Duration = .zero
    /// Leaves `apns-id` out.
    var omitsID = false
    /// The token endpoint's `expires_in`, a number or a string.
    var expiresIn: JSONValue?

    init(_ status: Int, reason: String? = nil, errorCode: String? = nil) {
        self.status = status
        self.reason = reason
        self.errorCode = errorCode
    }

    /// The same with some of it changed.
    func with(_ change: (inout ScriptedAnswer) -> Void) -> ScriptedAnswer {
        var copy = self
        change(&copy)
        return copy
    }
}
