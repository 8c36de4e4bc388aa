import AMQP
import Testing

@testable import Messaging

@Suite struct StreamProgressTests {
    private let start = ContinuousClock.now

    private func message(_ offset: Int64, id: String? = nil) -> StreamProgress.Message { .init(offset: offset, id: id) }

    /// For each message, whether it belongs to the same stream.
    private func read(_ messages: StreamProgress.Message..., by progress: inout StreamProgress) -> [Bool] {
        messages.map { progress.record($0) }
    }

    @Test func `the first attachment reads from the oldest message`() {
        var progress = StreamProgress()
        #expect(progress.start() == .first)
        #expect(progress.start() == .first)
        #expect(progress.readUntil == nil)
    }

    @Test func `after an interruption reading resumes at the last message`() {
        var progress = StreamProgress()
        _ = progress.start()
        #expect(read(message(0), message(1), message(7, id: "a"), by: &progress) == [true, true, true])
        #expect(!progress.isResuming)
        #expect(progress.start() == .offset(7))
        #expect(progress.isResuming)
        #expect(read(message(7, id: "a"), message(8), by: &progress) == [true, true])
        #expect(!progress.isResuming)
        #expect(progress.start() == .offset(8))
    }

    @Test func `expired messages are skipped`() {
        var progress = StreamProgress()
        _ = read(message(7), by: &progress)
        _ = progress.start()
        #expect(read(message(90), by: &progress) == [true])
    }

    @Test(arguments: [(3, "a"), (7, "b")])
    func `a redeclared stream is detected and read from its beginning`(offset: Int64, id: String) {
        var progress = StreamProgress()
        _ = read(message(7, id: "a"), by: &progress)
        #expect(progress.start() == .offset(7))
        #expect(read(message(offset, id: id), by: &progress) == [false])
        #expect(progress.start() == .first)
    }

    @Test func `an attachment without deliveries is followed by one at the beginning`() {
        var progress = StreamProgress()
        _ = read(message(7), by: &progress)
        #expect([progress.start(), progress.start(), progress.start()] == [.offset(7), .first, .first])
    }

    @Test func `only the reader's own mark advances the time read`() {
        var progress = StreamProgress()
        progress.willPublish("mine", at: start)
        let isFirst = ["another's", "mine", "mine"].map { mark in
            let isFirst = progress.recordMark(mark)
            #expect(progress.readUntil == (mark == "mine" ? start : nil))
            return isFirst
        }
        #expect(isFirst == [false, true, false])
    }

    @Test func `a late mark does not move the time back`() {
        var progress = StreamProgress()
        progress.willPublish("1", at: start)
        progress.willPublish("2", at: start + .seconds(1))
        let isFirst = [progress.recordMark("2"), progress.recordMark("1")]
        #expect(isFirst == [true, false])
        #expect(progress.readUntil == start + .seconds(1))
    }

    private func gap(_ messages: StreamProgress.Message..., by progress: inout StreamProgress) -> Bool {
        _ = progress.start()
        for message in messages { _ = progress.record(message) }
        let gaps = [progress.takeGap(), progress.takeGap()]
        #expect(!gaps[1])
        return gaps[0]
    }

    @Test func `given a stream whose first messages were dropped, then it has a gap`() {
        var (whole, cut) = (StreamProgress(), StreamProgress())
        let gaps = [gap(message(0), message(1), by: &whole), gap(message(5), message(6), by: &cut)]
        #expect(gaps == [false, true])
    }

    @Test func `given a last message that was dropped during an interruption, then the stream has a gap`() {
        var progress = StreamProgress()
        let gaps = [
            gap(message(0), message(7), by: &progress), gap(message(7), message(8), by: &progress),
            gap(message(90), by: &progress),
        ]
        #expect(gaps == [false, false, true])
    }

    @Test func `given another stream of the same name, then it has a gap, and the same stream has none`() {
        var progress = StreamProgress()
        _ = gap(message(0, id: "a"), message(1, id: "b"), by: &progress)
        // Nothing comes of an attachment, and the next one is at the beginning.
        _ = progress.start()
        let same = gap(message(0, id: "a"), message(1, id: "b"), by: &progress)
        let isSame = gap(message(0, id: "x"), by: &progress)
        let another = gap(message(0, id: "x"), message(1, id: "y"), by: &progress)
        #expect([same, isSame, another] == [false, false, true])
    }
}
