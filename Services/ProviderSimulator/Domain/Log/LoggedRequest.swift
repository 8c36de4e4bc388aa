import PushProtocol

/// One request with its response, as logged.
///
/// A class: the log, phones and responses share one instance.
final class LoggedRequest: Sendable {
    /// Numbers all requests of a run from 1.
    let sequence: Int
    let provider: ProviderKind
    let environment: ProviderEnvironment
    let request: ProviderRequest
    let response: SimulatedResponse

    init(
        sequence: Int, provider: ProviderKind, environment: ProviderEnvironment, request: ProviderRequest,
        response: SimulatedResponse
    ) {
        self.sequence = sequence
        self.provider = provider
        self.environment = environment
        self.request = request
        self.response = response
    }

    /// The content as the phone gets it: the body, decrypted for a browser.
    var content: [UInt8] { provider == .webpush ? response.plaintext ?? [] : request.body }

    /// Writes the log entry. A JSON body is written byte for byte as received.
    func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("sequence", sequence)
            writer.member("provider", provider.rawValue)
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
            if provider == .webpush { writer.member("encrypted", Base64URL.text(of: request.body)) }
            writer.member("token", response.target)
            writer.member("app", response.app)
            writer.member("status", response.status)
            writer.member("reason", response.reason)
            writer.member("detail", response.detail)
            writer.member("fault", response.fault)
            writer.member(provider == .apns ? "apnsID" : "messageName", response.messageID)
        }
    }

    /// In order of arrival; repeated headers are joined with a comma.
    private func writeHeaders(to writer: inout JSONWriter) {
        var written: Set<String> = []
        for header in request.headers where written.insert(header.name).inserted {
            let values = request.headers.filter { $0.name == header.name }.map(\.value)
            writer.member(header.name, values.joined(separator: ", "))
        }
    }

    private func writeBody(to writer: inout JSONWriter) {
        if content.isEmpty {
            writer.value(.null)
        } else if (try? ProviderJSON.value(of: content)) != nil {
            writer.verbatim(content)
        } else {
            writer.string(String(decoding: content, as: UTF8.self))
        }
    }
}
