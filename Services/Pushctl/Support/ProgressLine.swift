import Foundation

/// How far a long command has come, on standard error: one line that is redrawn on a terminal, plain lines elsewhere.
///
/// A file or a pipe gets no control characters, and no more than one line every ten seconds.
struct ProgressLine {
    private let isTerminal: Bool
    private let write: (String) -> Void
    private var shown: ContinuousClock.Instant?

    init(
        isTerminal: Bool = isatty(STDERR_FILENO) == 1,
        write: @escaping (String) -> Void = { FileHandle.standardError.write(Data($0.utf8)) }
    ) {
        self.isTerminal = isTerminal
        self.write = write
    }

    /// Shows a state, unless the last one was shown just before.
    ///
    /// - Parameters:
    ///   - bar: The line for a terminal.
    ///   - plain: The line for anything else.
    mutating func show(_ bar: String, plain: String, now: ContinuousClock.Instant = .now) {
        if let shown, now - shown < (isTerminal ? .milliseconds(100) : .seconds(10)) { return }
        shown = now
        write(isTerminal ? "\r\(bar)\u{1b}[K" : "\(plain)\n")
    }

    /// Removes the line from a terminal, for the result to take its place.
    func clear() {
        if isTerminal { write("\r\u{1b}[K") }
    }
}
