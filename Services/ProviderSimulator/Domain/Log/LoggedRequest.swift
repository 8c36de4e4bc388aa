import PushProtocol

/// One request and what became of it, as the log keeps it.
///
/// A class, so that the log, a phone and an answer in the making share one copy.
final class LoggedRequest: Sendable {
    /// Counts all requests of a run from 1.
    let sequence: Int
    let party: Party
    let environment: ProviderEnvironment
    let request: ProviderRequest
    let verdict: Verdict

    init(
        sequence: Int, party: Party, environment: ProviderEnvironment, request: ProviderRequest, verdict: Verdict
    ) {
        self.sequence = sequence
        self.party = party
        self.environment = environment
        self.request = request
        self.verdict = verdict
    }

    /// The entry as the control port tells it. The body stands there as it was sent, byte for byte, when it is JSON.
    func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("sequence", sequence)
            writer.member("provider", party.rawValue)
            writer.member("environment", environment.rawValue)
            writer.member("connection", request.connection)
            writer.member("stream", request.stream)
            writer.member("receivedAt", request.receivedAt.milliseconds)
            writer.member("method", request.method)
            writer.member("path", request.path)
            writer.name("headers")
            writer.object { writeHeaders(to: &$0) }
            writer.name("neverIndexed")
            writer.array(request.headers.filter(\.neverIndexed)) { $0.string($1.name) }
            writer.name("body")
            writeBody(to: &writer)
            writer.member("token", verdict.target)
            writer.member("app", verdict.app)
            writer.member("status", verdict.status)
            writer.member("reason", verdict.reason)
            writer.member("detail", verdict.detail)
            writer.member("fault", verdict.fault)
            writer.member(party == .apns ? "apnsID" : "messageName", verdict.messageID)
        }
    }

    /// In the order they came; the values of a repeated header are joined.
    private func writeHeaders(to writer: inout JSONWriter) {
        var written: Set<String> = []
        for header in request.headers where written.insert(header.name).inserted {
            let values = request.headers.filter { $0.name == header.name }.map(\.value)
            writer.member(header.name, values.joined(separator: ", "))
        }
    }

    private func writeBody(to writer: inout JSONWriter) {
        if request.body.isEmpty {
            writer.value(.null)
        } else if (try? JSONReader.value(of: request.body)) != nil {
            writer.verbatim(request.body)
        } else {
            writer.string(String(decoding: request.body, as: UTF8.self))
        }
    }
}
