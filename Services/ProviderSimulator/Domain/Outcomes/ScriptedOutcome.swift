import PushProtocol

/// What a provider shall do about a request that it would have taken: an answer of its own choosing, or trouble.
struct ScriptedOutcome: Hashable, Sendable {
    enum Conduct: Hashable, Sendable {
        case answer(ScriptedAnswer)
        /// The stream or the connection breaks.
        case breakage(Breakage, at: Moment, ScriptedAnswer)
        /// Left to its GOAWAY, which says that the request was not processed.
        case unprocessed
    }

    enum Breakage: Hashable, Sendable {
        /// RST_STREAM with this HTTP/2 error code.
        case reset(code: UInt32)
        /// TCP is reset.
        case drop
        /// TLS and TCP are closed in order.
        case close
        /// This request is left as it is for good.
        case silence
        /// The whole connection goes silent, open as it is.
        case stall
    }

    /// How far the answer got before it broke.
    enum Moment: String, Hashable, Sendable, CaseIterable {
        /// The request was read, nothing was answered.
        case request
        /// The answer's HEADERS are out.
        case headers
        /// The whole answer is out.
        case answer
    }

    /// Which requests of its scope an outcome is for.
    enum Occasion: Hashable, Sendable {
        /// All, when its turn has come.
        case turn
        /// This share of them, drawn; 0 to 1.
        case share(Double)
        /// Each so many-th.
        case every(Int)
    }

    var conduct: Conduct
    /// Before anything else happens.
    var latency = Latency.none
    /// SETTINGS sent before the answer: this many concurrent streams.
    var streams: Int?
    /// Sent after the answer, or instead of one.
    var goAway: GoAway?
    /// How many requests it is for; `nil` for all.
    var count: Int?
    var occasion = Occasion.turn
    /// So many requests of its scope pass before it begins.
    var skip = 0
    /// What the log and the summary call it; `nil` for a name made of what it does.
    var name: String?
    /// Whether a request that broke was processed all the same: the phone has it, and the sender cannot know.
    var isAccepted = false

    init(
        _ conduct: Conduct, delay: Duration = .zero, streams: Int? = nil, goAway: GoAway? = nil, count: Int? = nil
    ) {
        self.conduct = conduct
        latency = .fixed(delay)
        self.streams = streams
        self.goAway = goAway
        self.count = count
    }

    /// A break before anything was answered.
    init(_ breakage: Breakage, count: Int? = nil) {
        self.init(.breakage(breakage, at: .request, ScriptedAnswer(200)), count: count)
    }

    /// The same with its latency drawn.
    func drawn(_ draws: inout Draws) -> ScriptedOutcome {
        if case .fixed = latency { return self }
        var drawn = self
        drawn.latency = .fixed(latency.draw(&draws))
        return drawn
    }

    /// The answer that the provider means, whether or not all of it gets out.
    var answer: ScriptedAnswer? {
        switch conduct {
        case .answer(let answer), .breakage(_, at: .headers, let answer), .breakage(_, at: .answer, let answer): answer
        case .breakage(_, at: .request, _), .unprocessed: nil
        }
    }

    /// Whether the request was taken: what was answered 200, or broke after it had been processed.
    var isTaken: Bool { answer?.status == 200 || (answer == nil && isAccepted) }

    /// The wire acts, the answer being rendered by the provider whose words it is in.
    func acts(_ render: (ScriptedAnswer) -> Reply) -> [Act] {
        var acts: [Act] = []
        if case .fixed(let delay) = latency, delay > .zero { acts.append(.wait(delay)) }
        if let streams { acts.append(.limitStreams(streams)) }
        switch conduct {
        case .answer(let answer): acts.append(.respond(render(answer), bodyAfter: answer.bodyDelay))
        case .breakage(let breakage, let moment, let answer):
            switch moment {
            case .request: break
            case .headers: acts.append(.begin(render(answer)))
            case .answer: acts.append(.respond(render(answer), bodyAfter: answer.bodyDelay))
            }
            acts.append(breakage.act)
        case .unprocessed: break
        }
        if let goAway { acts.append(.goAway(goAway)) }
        return acts
    }
}

extension ScriptedOutcome.Breakage {
    var act: Act {
        switch self {
        case .reset(let code): .reset(code: code)
        case .drop: .dropConnection
        case .close: .closeConnection
        case .silence: .silence
        case .stall: .stall
        }
    }

    var name: String {
        switch self {
        case .reset(let code): "reset \(code)"
        case .drop: "drop"
        case .close: "close"
        case .silence: "silence"
        case .stall: "stall"
        }
    }
}

extension ScriptedOutcome {
    /// Under which name the log and the summary know it; `nil` for an ordinary acceptance.
    var label: String? {
        if let name { return name }
        var words: [String] = []
        switch conduct {
        case .answer(let answer):
            if let word = answer.word { words.append(word) }
            if answer.bodyDelay > .zero { words.append("late body") }
            if answer.omitsID { words.append("no id") }
        case .breakage(let breakage, let moment, _):
            words.append(breakage.name)
            if moment != .request { words.append("after \(moment.rawValue)") }
        case .unprocessed: break
        }
        if let streams { words.append("\(streams) streams") }
        if let goAway { words.append("goaway \(goAway.lastStream.name)") }
        return words.isEmpty ? nil : words.joined(separator: " ")
    }
}

extension GoAway.LastStream {
    var name: String {
        switch self {
        case .before: "before"
        case .included: "included"
        case .graceful: "graceful"
        case .exactly(let stream): "\(stream)"
        }
    }
}
