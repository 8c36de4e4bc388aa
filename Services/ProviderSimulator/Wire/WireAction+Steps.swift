import HTTP2
import HTTP2Server
import PushProtocol

extension [WireAction] {
    /// The server steps. An empty list never answers.
    var steps: [HTTP2ServerStep] { flatMap(\.steps) }
}

extension WireAction {
    fileprivate var steps: [HTTP2ServerStep] {
        switch self {
        case .wait(let duration): [.wait(duration)]
        case .respond(let reply, .zero): [.respond(status: reply.status, headers: reply.fields, body: reply.body)]
        case .respond(let reply, let pause):
            [.headers(status: reply.status, headers: reply.fields), .wait(pause), .data(reply.body, last: true)]
        case .begin(let reply): [.headers(status: reply.status, headers: reply.fields)]
        case .reset(let code): [.reset(HTTP2ErrorCode(rawValue: code))]
        case .goAway(let goAway): goAway.steps
        case .limitStreams(let count): [.changeMaximumConcurrentStreams(count)]
        case .ping: [.ping]
        case .stall: [.stall]
        case .closeConnection: [.closeConnection]
        case .dropConnection: [.dropConnection]
        case .silence: []
        }
    }
}

extension GoAway {
    fileprivate var steps: [HTTP2ServerStep] {
        let first: HTTP2ServerGoAway.LastStream =
            switch lastStream {
            case .before: .beforeThis
            case .included: .this
            case .graceful: .maximum
            case .exactly(let stream): .exactly(stream)
            }
        // The pauses let the remaining streams finish before the connection closes.
        var steps: [HTTP2ServerStep] = [frame(first), .wait(pause)]
        if lastStream == .graceful { steps += [frame(.received), .wait(pause)] }
        return steps + [.closeConnection]
    }

    private func frame(_ last: HTTP2ServerGoAway.LastStream) -> HTTP2ServerStep {
        .goAway(HTTP2ServerGoAway(lastStream: last, code: HTTP2ErrorCode(rawValue: code), debugData: debugData))
    }
}

extension Reply {
    fileprivate var fields: [HTTP2Header] { headers.map { HTTP2Header(name: $0.name, value: $0.value) } }
}

extension ProviderRequest {
    init(_ request: HTTP2ServerRequest, at receivedAt: Timestamp) {
        self.init(
            connection: request.connection, stream: request.stream, method: request.method, path: request.path,
            headers: request.headers.map { Header($0.name, $0.value, neverIndexed: $0.neverIndexed) },
            body: request.body, receivedAt: receivedAt, hasClientCertificate: request.hasClientCertificate)
    }
}
