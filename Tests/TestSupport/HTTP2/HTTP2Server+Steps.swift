package import HTTP2Server

extension HTTP2Server {
    /// Sends a GOAWAY on every connection; by default with the last stream received.
    package func goAwayAll(_ goAway: HTTP2ServerGoAway = .init(lastStream: .received)) {
        performOnAll([.goAway(goAway)])
    }

    /// Sends a new stream limit on every open connection. Later connections start with the limit of the settings.
    package func setMaximumConcurrentStreams(_ count: Int) {
        performOnAll([.changeMaximumConcurrentStreams(count)])
    }
}

extension HTTP2ServerStep {
    /// Announces the shutdown, waits for `pause`, then sends the last stream received (RFC 9113 §6.8).
    package static func gracefulGoAway(debugText: String = "", pause: Duration) -> [HTTP2ServerStep] {
        [
            .goAway(HTTP2ServerGoAway(lastStream: .maximum, debugText: debugText)), .wait(pause),
            .goAway(HTTP2ServerGoAway(lastStream: .received, debugText: debugText)),
        ]
    }
}
