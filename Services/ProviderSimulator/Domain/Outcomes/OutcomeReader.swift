import PushProtocol

/// Reads one posted outcome. The README of the simulator describes every key.
struct OutcomeReader {
    private static let known: Set<String> = Set(answering).union([
        "provider", "token", "app", "count", "share", "every", "skip", "name", "delay_ms", "max_streams", "reset",
        "goaway", "drop", "close", "silence", "stall", "after", "accepted",
    ])
    /// The keys that describe a response.
    private static let answering = [
        "status", "reason", "timestamp", "retry_after", "error_code", "apns_error", "field", "details", "body",
        "content_type", "body_delay_ms", "omit_id", "expires_in",
    ]

    private let members: MemberReader
    private let provider: ProviderKind

    init(_ value: JSONValue, at path: String) throws(ControlRequestError) {
        members = try MemberReader(value, at: path, known: Self.known)
        guard let provider = try members.choice("provider", of: ProviderKind.self) else {
            throw members.problem("provider", "is missing; it is apns, fcm, webpush or oauth")
        }
        self.provider = provider
    }

    func script() throws(ControlRequestError) -> OutcomeScript {
        let goAway = try members.goAway()
        var outcome = ScriptedOutcome(try behavior(goAway))
        outcome.goAway = goAway
        outcome.latency = try members.latency("delay_ms")
        outcome.streams = try members.integer("max_streams", in: 1...100_000)
        outcome.count = try members.integer("count", in: 1...1_000_000_000)
        outcome.trigger = try trigger()
        outcome.skip = try members.integer("skip", in: 0...1_000_000_000) ?? 0
        outcome.name = try members.text("name")
        outcome.isProcessedDespiteFault = try members.flag("accepted")
        return OutcomeScript(key: .init(provider: provider, scope: try scope()), outcome: outcome)
    }

    private func scope() throws(ControlRequestError) -> ScriptedOutcomeStore.Scope {
        let token = try members.text("token")
        let app = try members.text("app")
        guard token == nil || app == nil else { throw members.problem("app", "and token exclude each other") }
        if let token {
            if provider == .oauth { throw members.problem("token", "has no meaning for oauth") }
            // APNs tokens are compared in lower case, as logged.
            return .token(provider == .apns ? token.lowercased() : token)
        }
        return app.map { .app($0) } ?? .everything
    }

    private func trigger() throws(ControlRequestError) -> ScriptedOutcome.Trigger {
        let share = try members.number("share", in: 0...1)
        let every = try members.integer("every", in: 1...1_000_000_000)
        guard share == nil || every == nil else { throw members.problem("every", "and share exclude each other") }
        return if let share { .share(share) } else if let every { .every(every) } else { .sequence }
    }

    private func behavior(_ goAway: GoAway?) throws(ControlRequestError) -> ScriptedOutcome.Behavior {
        let answers = Self.answering.filter(members.has)
        let transportFaults = try transportFaults()
        let isUnprocessed = goAway?.lastStream == .before
        guard transportFaults.count + (isUnprocessed ? 1 : 0) <= 1 else {
            throw members.problem(
                transportFaults[0].key,
                "cannot be combined with another of reset, drop, close, silence, stall, goaway before")
        }
        let point = try members.choice("after", of: ScriptedOutcome.FaultPoint.self)
        guard let transportFault = transportFaults.first else {
            if point != nil { throw members.problem("after", "goes with reset, drop, close, silence or stall") }
            if try members.flag("accepted") {
                throw members.problem("accepted", "goes with reset, drop, close, silence or stall")
            }
            guard isUnprocessed else { return .answer(try answer()) }
            if let answer = answers.first {
                throw members.problem(answer, "cannot be combined with a goaway before the request")
            }
            return .unprocessed
        }
        switch point ?? .request {
        case .request:
            guard answers.isEmpty else {
                throw members.problem(
                    answers[0],
                    "cannot be combined with \(transportFault.key), unless that comes after headers or answer")
            }
            return .transportFault(transportFault.transportFault, at: .request, ScriptedResponse(200))
        case .headers: return .transportFault(transportFault.transportFault, at: .headers, try answer())
        case .answer: return .transportFault(transportFault.transportFault, at: .answer, try answer())
        }
    }

    private func transportFaults() throws(ControlRequestError) -> [(
        key: String, transportFault: ScriptedOutcome.TransportFault
    )] {
        var found: [(key: String, transportFault: ScriptedOutcome.TransportFault)] = []
        if let code = try members.integer("reset", in: 0...0xffff_ffff) {
            found.append(("reset", .reset(code: UInt32(code))))
        }
        if try members.flag("drop") { found.append(("drop", .drop)) }
        if try members.flag("close") { found.append(("close", .close)) }
        if try members.flag("silence") { found.append(("silence", .silence)) }
        if try members.flag("stall") { found.append(("stall", .stall)) }
        return found
    }
}

extension OutcomeReader {
    private func answer() throws(ControlRequestError) -> ScriptedResponse {
        let status = try members.integer("status", in: 200...599)
        let reason = try members.text("reason")
        let code = try members.text("error_code")
        try reject(meaningless)
        var answer = ScriptedResponse(
            status ?? impliedStatus(reason, code) ?? (provider == .webpush ? 201 : 200), reason: reason, errorCode: code
        )
        if status == nil, reason != nil || code != nil, answer.isAcceptance {
            throw members.problem("status", "is missing, and the given reason or error_code implies none")
        }
        answer.body = try members.text("body").map { Array($0.utf8) }
        if provider == .apns, answer.status != 200, reason == nil, answer.body == nil {
            guard let usual = APNsReason.usual(for: answer.status) else {
                throw members.problem("reason", "is missing: several reasons have the status \(answer.status)")
            }
            answer.reason = usual.rawValue
        }
        answer.timestamp = try timestamp()
        answer.retryAfter = try retryAfter()
        answer.details = try details()
        answer.contentType = try members.text("content_type")
        answer.bodyDelay = .milliseconds(try members.integer("body_delay_ms", in: MemberReader.delays) ?? 0)
        answer.omitsID = try members.flag("omit_id")
        answer.expiresIn = try expiresIn()
        return answer
    }

    /// The keys of other providers.
    private var meaningless: [String] {
        let fcm = ["error_code", "apns_error", "field", "details"]
        return switch provider {
        case .apns: fcm + ["expires_in"]
        case .fcm: ["reason", "timestamp", "omit_id", "expires_in"]
        case .webpush: fcm + ["timestamp", "omit_id", "expires_in"]
        case .oauth: fcm + ["timestamp", "omit_id"]
        }
    }

    private func impliedStatus(_ reason: String?, _ code: String?) -> Int? {
        switch provider {
        case .apns: reason.flatMap(APNsReason.init)?.status
        case .fcm: code.flatMap(FCMErrorCode.init)?.status
        case .webpush: reason.flatMap(WebPushReason.init)?.status
        case .oauth: nil
        }
    }

    private func reject(_ names: [String]) throws(ControlRequestError) {
        if let name = names.first(where: members.has) {
            throw members.problem(name, "has no meaning for \(provider.rawValue)")
        }
    }

    /// Milliseconds, or `{"ago_ms": n}`. `null` omits it from a 410; absent means now.
    private func timestamp() throws(ControlRequestError) -> ScriptedResponse.TimestampField {
        switch members.raw("timestamp") {
        case nil: return .ago(.zero)
        case .null: return .absent
        case .object(let object):
            let reader = try MemberReader(.object(object), at: "timestamp.", known: ["ago_ms"])
            guard let ago = try reader.integer("ago_ms", in: 0...0xffff_ffff_ffff) else {
                throw reader.problem("ago_ms", "is missing")
            }
            return .ago(.milliseconds(ago))
        case .some:
            let milliseconds = try members.integer("timestamp", in: 0...0xffff_ffff_ffff) ?? 0
            return .at(Timestamp(milliseconds: Int64(milliseconds)))
        }
    }

    /// Seconds, any text (an HTTP date, or an invalid value), or `{"date_in": seconds}`.
    private func retryAfter() throws(ControlRequestError) -> ScriptedResponse.RetryAfter? {
        switch members.raw("retry_after") {
        case nil: return nil
        case .int(let seconds): return .text(String(seconds))
        case .string(let text) where text.utf8.allSatisfy { (0x20...0x7e).contains($0) }: return .text(text)
        case .object(let object):
            let reader = try MemberReader(.object(object), at: "retry_after.", known: ["date_in"])
            guard let seconds = try reader.integer("date_in", in: -1_000_000...1_000_000) else {
                throw reader.problem("date_in", "is missing")
            }
            return .date(in: Int64(seconds))
        default: throw members.problem("retry_after", "is not seconds, a text, or {\"date_in\": seconds}")
        }
    }

    private func details() throws(ControlRequestError) -> [JSONValue] {
        var details: [JSONValue] = []
        if let field = try members.text("field") {
            details.append(
                FCMErrorEnvelope.badRequest([FCMViolation(field: field, description: "scripted by the simulator")]))
        }
        if let value = members.raw("apns_error") {
            let reader = try MemberReader(value, at: "apns_error.", known: ["status", "reason"])
            guard let status = try reader.integer("status", in: 200...599), let reason = try reader.text("reason")
            else {
                throw members.problem("apns_error", "needs a status and a reason")
            }
            details.append(FCMErrorEnvelope.apnsError(status: status, reason: reason))
        }
        if let value = members.raw("details") {
            guard let more = value.array else { throw members.problem("details", "is not a list") }
            details += more
        }
        return details
    }

    private func expiresIn() throws(ControlRequestError) -> JSONValue? {
        switch members.raw("expires_in") {
        case nil: return nil
        case .int(let seconds) where (0...1_000_000).contains(seconds): return .int(seconds)
        case .string(let text) where Int64(text).map { (0...1_000_000).contains($0) } ?? false: return .string(text)
        default: throw members.problem("expires_in", "is not seconds, as a number or in a string")
        }
    }
}
