/// A scripted outcome of a request that passed the provider's checks: a response or a fault.
struct ScriptedOutcome: Hashable, Sendable {
    enum Behavior: Hashable, Sendable {
        case answer(ScriptedResponse)
        /// The stream or the connection fails.
        case transportFault(TransportFault, at: FaultPoint, ScriptedResponse)
        /// Only a GOAWAY, which marks the request as unprocessed.
        case unprocessed
    }

    enum TransportFault: Hashable, Sendable {
        /// RST_STREAM with this HTTP/2 error code.
        case reset(code: UInt32)
        /// Resets the TCP connection.
        case drop
        /// Closes TLS and TCP.
        case close
        /// Never answers this request.
        case silence
        /// Stops reading and writing on the connection, and keeps it open.
        case stall
    }

    enum FaultPoint: String, Hashable, Sendable, CaseIterable {
        /// After the request was read, before any response.
        case request
        /// After the response HEADERS.
        case headers
        /// After the complete response.
        case answer
    }

    /// The requests of its scope that an outcome applies to.
    enum Trigger: Hashable, Sendable {
        /// The next requests, in the order of the script.
        case sequence
        /// A random share of the requests, 0 to 1.
        case share(Double)
        /// Every n-th request.
        case every(Int)
    }

    var behavior: Behavior
    /// Before any other action.
    var latency = Latency.none
    /// SETTINGS_MAX_CONCURRENT_STREAMS, sent before the response.
    var streams: Int?
    /// Sent after the response, or instead of one.
    var goAway: GoAway?
    /// The number of requests it applies to; `nil` for all.
    var count: Int?
    var trigger = Trigger.sequence
    /// The number of requests in its scope before it starts.
    var skip = 0
    /// Its name in the log and the summary; `nil` derives one from its behaviour.
    var name: String?
    /// Whether the provider processed the request despite the fault: the phone has it, and the sender cannot know.
    var isProcessedDespiteFault = false

    init(
        _ behavior: Behavior, delay: Duration = .zero, streams: Int? = nil, goAway: GoAway? = nil, count: Int? = nil
    ) {
        self.behavior = behavior
        latency = .fixed(delay)
        self.streams = streams
        self.goAway = goAway
        self.count = count
    }

    init(_ transportFault: TransportFault, count: Int? = nil) {
        self.init(.transportFault(transportFault, at: .request, ScriptedResponse(200)), count: count)
    }

    /// A copy with its delay drawn from the distribution.
    func sampled(_ random: inout SeededRandom) -> ScriptedOutcome {
        if case .fixed = latency { return self }
        var sampled = self
        sampled.latency = .fixed(latency.sample(&random))
        return sampled
    }

    /// The response that the provider intends, even if the fault truncates it.
    var answer: ScriptedResponse? {
        switch behavior {
        case .answer(let answer), .transportFault(_, at: .headers, let answer),
            .transportFault(_, at: .answer, let answer):
            answer
        case .transportFault(_, at: .request, _), .unprocessed: nil
        }
    }

    /// Whether the request was processed: accepted in the response, or accepted despite the fault.
    var isProcessed: Bool { answer?.isAcceptance ?? false || (answer == nil && isProcessedDespiteFault) }

    /// The actions on the wire. `render` encodes the response for the provider.
    func actions(_ render: (ScriptedResponse) -> Reply) -> [WireAction] {
        var actions: [WireAction] = []
        if case .fixed(let delay) = latency, delay > .zero { actions.append(.wait(delay)) }
        if let streams { actions.append(.limitStreams(streams)) }
        switch behavior {
        case .answer(let answer): actions.append(.respond(render(answer), bodyAfter: answer.bodyDelay))
        case .transportFault(let transportFault, let point, let answer):
            switch point {
            case .request: break
            case .headers: actions.append(.begin(render(answer)))
            case .answer: actions.append(.respond(render(answer), bodyAfter: answer.bodyDelay))
            }
            actions.append(transportFault.action)
        case .unprocessed: break
        }
        if let goAway { actions.append(.goAway(goAway)) }
        return actions
    }
}

extension ScriptedOutcome.TransportFault {
    var action: WireAction {
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
    /// Its name in the log and the summary; `nil` for an ordinary acceptance.
    var label: String? {
        if let name { return name }
        var words: [String] = []
        switch behavior {
        case .answer(let answer):
            if let label = answer.label { words.append(label) }
            if answer.bodyDelay > .zero { words.append("late body") }
            if answer.omitsID { words.append("no id") }
        case .transportFault(let transportFault, let point, _):
            words.append(transportFault.name)
            if point != .request { words.append("after \(point.rawValue)") }
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
