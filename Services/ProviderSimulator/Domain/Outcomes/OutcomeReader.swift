import PushProtocol

/// Reads one posted outcome. Every key is listed here, and what it means in the README of the simulator.
struct OutcomeReader {
    private static let known: Set<String> = [
        "provider", "token", "app", "count", "delay_ms", "max_streams", "status", "reason", "timestamp", "retry_after",
        "error_code", "apns_error", "field", "details", "body", "content_type", "body_delay_ms", "omit_id",
        "expires_in", "reset", "goaway", "drop", "silence",
    ]
    /// The keys that describe an answer.
    private static let answering = [
        "status", "reason", "timestamp", "retry_after", "error_code", "apns_error", "field", "details", "body",
        "content_type", "body_delay_ms", "omit_id", "expires_in",
    ]
    /// In milliseconds: an hour.
    private static let delays: ClosedRange<Int64> = 0...3_600_000

    private let members: MemberReader
    private let party: Party

    init(_ value: JSONValue, at path: String) throws(ControlProblem) {
        members = try MemberReader(value, at: path, known: Self.known)
        guard let party = try members.choice("provider", of: Party.self) else {
            throw members.problem("provider", "is missing; it is apns, fcm or oauth")
        }
        self.party = party
    }

    func script() throws(ControlProblem) -> OutcomeScript {
        let goAway = try goAway()
        var outcome = ScriptedOutcome(try conduct(goAway))
        outcome.goAway = goAway
        outcome.delay = .milliseconds(try members.integer("delay_ms", in: Self.delays) ?? 0)
        outcome.streams = try members.integer("max_streams", in: 1...100_000)
        outcome.count = try members.integer("count", in: 1...1_000_000_000)
        return OutcomeScript(party: party, scope: try scope(), outcome: outcome)
    }

    private func scope() throws(ControlProblem) -> OutcomeBook.Scope {
        let token = try members.text("token")
        let app = try members.text("app")
        guard token == nil || app == nil else { throw members.problem("app", "and token exclude each other") }
        if let token {
            if party == .oauth { throw members.problem("token", "has no meaning for oauth") }
            // APNs tokens are compared in lower case, as they are logged.
            return .token(party == .apns ? token.lowercased() : token)
        }
        return app.map { .app($0) } ?? .everything
    }

    private func conduct(_ goAway: GoAway?) throws(ControlProblem) -> ScriptedOutcome.Conduct {
        let answers = Self.answering.filter(members.has)
        var conducts: [ScriptedOutcome.Conduct] = []
        if let code = try members.integer("reset", in: 0...0xffff_ffff) { conducts.append(.reset(code: UInt32(code))) }
        if try members.flag("drop") { conducts.append(.dropConnection) }
        if try members.flag("silence") { conducts.append(.silence) }
        if goAway?.lastStream == .before { conducts.append(.unprocessed) }
        guard conducts.count <= 1, conducts.isEmpty || answers.isEmpty else {
            throw members.problem(
                answers.first ?? "reset", "cannot go with reset, drop, silence or a goaway before the request")
        }
        return if let conduct = conducts.first { conduct } else { .answer(try answer()) }
    }

    private func goAway() throws(ControlProblem) -> GoAway? {
        guard let value = members.raw("goaway") else { return nil }
        let reader = try MemberReader(value, at: "goaway.", known: ["last_stream", "code", "reason", "text"])
        guard let last = try reader.choice("last_stream", of: GoAway.LastStream.self) else {
            throw reader.problem("last_stream", "is missing; it is before, included or graceful")
        }
        var goAway = GoAway(lastStream: last)
        goAway.code = UInt32(try reader.integer("code", in: 0...0xffff_ffff) ?? 0)
        if let reason = try reader.text("reason") {
            goAway.debugData = JSONWriter.object { $0.member("reason", reason) }
        }
        if let text = try reader.text("text") { goAway.debugData = Array(text.utf8) }
        return goAway
    }
}

extension OutcomeReader {
    private func answer() throws(ControlProblem) -> ScriptedAnswer {
        let status = try members.integer("status", in: 200...599)
        let reason = try members.text("reason")
        let code = try members.text("error_code")
        try refuse(
            party == .fcm ? ["reason", "timestamp", "omit_id"] : ["error_code", "apns_error", "field", "details"])
        if party != .oauth { try refuse(["expires_in"]) }
        if party == .oauth { try refuse(["timestamp", "omit_id"]) }
        let known = reason.flatMap(APNsReason.init)?.status ?? code.flatMap(FCMErrorCode.init)?.status
        var answer = ScriptedAnswer(status ?? (party == .oauth ? nil : known) ?? 200, reason: reason, errorCode: code)
        if status == nil, reason != nil || code != nil, answer.status == 200 {
            throw members.problem("status", "is missing, and the word given implies none")
        }
        answer.body = try members.text("body").map { Array($0.utf8) }
        if party == .apns, answer.status != 200, reason == nil, answer.body == nil {
            guard let usual = APNsReason.usual(for: answer.status) else {
                throw members.problem("reason", "is missing: status \(answer.status) stands for several")
            }
            answer.reason = usual.rawValue
        }
        answer.timestamp = try timestamp()
        answer.retryAfter = try retryAfter()
        answer.details = try details()
        answer.contentType = try members.text("content_type")
        answer.bodyDelay = .milliseconds(try members.integer("body_delay_ms", in: Self.delays) ?? 0)
        answer.omitsID = try members.flag("omit_id")
        answer.expiresIn = try expiresIn()
        return answer
    }

    private func refuse(_ names: [String]) throws(ControlProblem) {
        if let name = names.first(where: members.has) {
            throw members.problem(name, "has no meaning for \(party.rawValue)")
        }
    }

    /// Milliseconds; `null` leaves it out of a 410; absent means now.
    private func timestamp() throws(ControlProblem) -> ScriptedAnswer.Moment {
        if members.raw("timestamp") == .null { return .absent }
        guard let milliseconds = try members.integer("timestamp", in: 0...0xffff_ffff_ffff) else { return .ago(.zero) }
        return .at(Timestamp(milliseconds: Int64(milliseconds)))
    }

    /// Seconds as a number, or any text: an HTTP date, or nonsense.
    private func retryAfter() throws(ControlProblem) -> String? {
        switch members.raw("retry_after") {
        case nil: return nil
        case .int(let seconds): return String(seconds)
        case .string(let text) where text.utf8.allSatisfy { (0x20...0x7e).contains($0) }: return text
        default: throw members.problem("retry_after", "is not seconds or a text")
        }
    }

    private func details() throws(ControlProblem) -> [JSONValue] {
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

    private func expiresIn() throws(ControlProblem) -> JSONValue? {
        switch members.raw("expires_in") {
        case nil: return nil
        case .int(let seconds) where (0...1_000_000).contains(seconds): return .int(seconds)
        case .string(let text) where Int64(text).map { (0...1_000_000).contains($0) } ?? false: return .string(text)
        default: throw members.problem("expires_in", "is not seconds, as a number or in a string")
        }
    }
}
