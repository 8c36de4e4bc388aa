import Foundation

/// A progress line on standard error: redrawn on a terminal, a new line elsewhere.
///
/// Files and pipes get no control characters and at most one line every ten seconds.
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

    /// Shows a state, unless one was shown very recently.
    ///
    /// - Parameters:
    ///   - bar: the line for a terminal.
    ///   - plain: the line for files and pipes.
    mutating func show(_ bar: String, plain: String, now: ContinuousClock.Instant = .now) {
        if let shown, now - shown < (isTerminal ? .milliseconds(100) : .seconds(10)) { return }
        shown = now
        write(isTerminal ? "\r\(bar)\u{1b}[K" : "\(plain)\n")
    }

    /// Clears the line on a terminal before the result is printed.
    func clear() {
        if isTerminal { write("\r\u{1b}[K") }
    }
}
