import Primitives
import PushProtocol
import Testing
import Tracing

@testable import TraceExport

/// Batches, waits and repetitions, at given times.
struct SpanBatcherTests {
    private static let limits = SpanBatcher.Limits(
        buffer: 10, batch: 4, delay: .seconds(1), attempts: 3, backoff: Backoff(base: .seconds(2), cap: .seconds(8)),
        longestRetryAfter: .seconds(60))

    private var batcher = SpanBatcher(Self.limits)

    private mutating func add(_ names: [String], at now: Duration = .zero) {
        for name in names { batcher.add(.named(name), now: now) }
    }

    private mutating func next(_ now: Duration, isFinal: Bool = false) -> String {
        switch batcher.next(now: now, isFinal: isFinal) {
        case .send(let spans): spans.map(\.name).joined()
        case .wait(let time): time.map { "wait \($0 / .seconds(1))" } ?? "idle"
        }
    }

    @Test mutating func `a partial batch is sent after the delay of its oldest span`() {
        #expect(next(.zero) == "idle")
        add(["a"], at: .seconds(5))
        add(["b"], at: .milliseconds(5_500))
        #expect(next(.milliseconds(5_500)) == "wait 0.5")
        #expect(next(.seconds(6)) == "ab")
        #expect(next(.seconds(6)) == "idle")
    }

    @Test mutating func `a full batch is sent at once, and the rest later`() {
        add(["a", "b", "c", "d", "e"])
        #expect(next(.zero) == "abcd")
        #expect(next(.zero) == "wait 1.0")
        #expect(next(.zero, isFinal: true) == "e")
    }

    @Test mutating func `spans beyond the buffer are dropped and counted`() {
        add((0..<13).map { String($0) })
        #expect(batcher.takeTally() == SpanBatcher.Tally(dropped: 3))
        #expect(batcher.takeTally() == SpanBatcher.Tally())
    }

    @Test mutating func `an unavailable receiver gets the same batch again, after growing waits`() {
        add(["a", "b", "c", "d", "e"])
        #expect(next(.zero) == "abcd")
        batcher.record(.unavailable(after: nil), of: .named("abcd"), now: .zero, random: 1)
        #expect(next(.zero) == "wait 2.0")
        #expect(next(.seconds(2)) == "abcd")
        batcher.record(.unavailable(after: nil), of: .named("abcd"), now: .seconds(2), random: 1)
        #expect(next(.seconds(2)) == "wait 4.0")
        #expect(next(.seconds(6)) == "abcd")
        batcher.record(.accepted(rejected: 1), of: .named("abcd"), now: .seconds(6))
        #expect(next(.seconds(6)) == "e")
        #expect(batcher.takeTally() == SpanBatcher.Tally(exported: 3, refused: 1))
    }

    @Test mutating func `a Retry-After is respected up to a limit`() {
        add(["a", "b", "c", "d"])
        #expect(next(.zero) == "abcd")
        batcher.record(.unavailable(after: .seconds(30)), of: .named("abcd"), now: .zero, random: 0)
        #expect(next(.zero) == "wait 30.0")
        #expect(next(.seconds(30)) == "abcd")
        batcher.record(.unavailable(after: .seconds(3600)), of: .named("abcd"), now: .seconds(30), random: 0)
        #expect(next(.seconds(30)) == "wait 60.0")
        #expect(next(.seconds(30), isFinal: true) == "abcd")
    }

    @Test mutating func `a batch is dropped after its last attempt, and a refused one at once`() {
        add(["a", "b", "c", "d", "e"])
        for attempt in 0..<3 {
            let now = Duration.seconds(100 * attempt)
            #expect(next(now) == "abcd")
            batcher.record(.unavailable(after: nil), of: .named("abcd"), now: now)
        }
        #expect(next(.seconds(300)) == "e")
        batcher.record(.refused, of: .named("e"), now: .seconds(300))
        #expect(next(.seconds(300)) == "idle")
        #expect(batcher.takeTally() == SpanBatcher.Tally(refused: 1, dropped: 4))
    }

    @Test mutating func `a batch that waits for its repetition counts for the buffer`() {
        add(["a", "b", "c", "d"])
        #expect(next(.zero) == "abcd")
        batcher.record(.unavailable(after: nil), of: .named("abcd"), now: .zero)
        add((0..<7).map { String($0) })
        #expect(batcher.takeTally() == SpanBatcher.Tally(dropped: 1))
        batcher.dropAll()
        #expect(batcher.takeTally() == SpanBatcher.Tally(dropped: 10))
        #expect(next(.seconds(100)) == "idle")
    }
}

extension SpanRecord {
    static func named(_ name: String) -> SpanRecord {
        SpanRecord(
            trace: TraceID(high: 0, low: 1)!, id: SpanID(1)!, parent: nil, traceState: nil, name: name,
            kind: .internal, start: 1, end: 2, attributes: [:], events: [], links: [], status: nil, isSampled: true)
    }
}

extension [SpanRecord] {
    /// A span for each character.
    static func named(_ names: String) -> [SpanRecord] { names.map { .named(String($0)) } }
}
