/// Compares the clock of a server with the one of this machine.
enum ClockComparison {
    /// The census and leases tolerate this difference.
    static let tolerance = Duration.seconds(2)
    /// Providers refuse tokens, and expiry times become wrong, from this difference on.
    static let maximum = Duration.seconds(30)

    /// - Parameters:
    ///   - difference: the server's time minus this machine's.
    ///   - error: the possible error of `difference`, such as half of the round trip.
    static func finding(_ server: String, difference: Duration, error: Duration) -> Finding {
        let check = "clocks"
        let seconds = difference / .seconds(1)
        let size = max(0, abs(seconds) - error / .seconds(1))
        let text = "\(seconds < 0 ? "behind" : "ahead of") this machine by \(rounded(abs(seconds))) s"
        let cure = "synchronise both machines with NTP (timedatectl)"
        switch size {
        case ..<(tolerance / .seconds(1)): return .ok(check, "the clock of \(server) is \(text)")
        case ..<(maximum / .seconds(1)): return .warning(check, "the clock of \(server) is \(text)", cure: cure)
        default: return .error(check, "the clock of \(server) is \(text)", cure: cure)
        }
    }

    /// Rounds to a tenth.
    private static func rounded(_ seconds: Double) -> Double { (seconds * 10).rounded() / 10 }
}
