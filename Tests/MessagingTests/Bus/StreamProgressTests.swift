import PushProtocol
import TestSupport
import Testing

@testable import Messaging

@Suite struct StreamProgressTests {
    private static let day = Duration.seconds(86_400)

    @Test func `at first it is read from as long ago as it counts`() {
        let progress = StreamProgress(memory: Self.day * 7)
        #expect(progress.start(now: .sample) == .sample + Self.day * -7)
        #expect(progress.readUntil == nil)
    }

    @Test func `its own mark tells that all until its publishing was read, another's does not`() {
        var progress = StreamProgress(memory: Self.day)
        progress.publishes("mine", at: .sample)
        let isFirst = ["another's", "mine", "mine"].map { mark in
            let isFirst = progress.reads(mark)
            #expect(progress.readUntil == (mark == "mine" ? .sample : nil))
            return isFirst
        }
        #expect(isFirst == [false, true, false])
    }

    @Test func `after an interruption it goes on an hour before the last mark, and never before what counts`() {
        var progress = StreamProgress(memory: Self.day)
        progress.publishes("1", at: .sample)
        _ = progress.reads("1")
        progress.publishes("2", at: .sample + .seconds(240))
        _ = progress.reads("2")
        #expect(progress.start(now: .sample + .seconds(300)) == .sample + .seconds(240 - 3600))
        #expect(progress.start(now: .sample + Self.day * 3) == .sample + Self.day * 2)
    }

    @Test func `a mark that comes late takes nothing back`() {
        var progress = StreamProgress(memory: Self.day)
        progress.publishes("1", at: .sample)
        progress.publishes("2", at: .sample + .seconds(1))
        let isFirst = [progress.reads("2"), progress.reads("1")]
        #expect(isFirst == [true, false])
        #expect(progress.readUntil == .sample + .seconds(1))
    }
}
