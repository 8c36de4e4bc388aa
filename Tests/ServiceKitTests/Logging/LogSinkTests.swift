import Foundation
import Logging
import PushProtocol
import Testing
import TestSupport

@testable import ServiceKit

@Suite(.timeLimit(.minutes(1))) struct LogSinkTests {
    @Test func `a full pipe drops and counts lines instead of blocking, and reports the count later`() throws {
        let pipe = Pipe()
        let sink = LogSink(descriptor: pipe.fileHandleForWriting.fileDescriptor)
        let line = [UInt8](repeating: UInt8(ascii: "x"), count: 1000)
        for _ in 0..<1000 { sink.write { _ in line } }
        #expect(sink.droppedLines > 800)
        let before = sink.droppedLines
        #expect(pipe.fileHandleForReading.availableData.count > 1000)
        var told = 0
        sink.write { dropped in
            told = dropped
            return line
        }
        #expect(told == before)
        #expect(sink.droppedLines == before)
    }

    @Test func `a closed pipe neither blocks nor kills the process`() throws {
        signal(SIGPIPE, SIG_IGN)
        let pipe = Pipe()
        let sink = LogSink(descriptor: pipe.fileHandleForWriting.fileDescriptor)
        try pipe.fileHandleForReading.close()
        sink.write { _ in [UInt8(ascii: "x")] }
        #expect(sink.droppedLines == 1)
    }

    @Test func `lines of many threads do not interleave`() async throws {
        let pipe = Pipe()
        let sink = LogSink(descriptor: pipe.fileHandleForWriting.fileDescriptor)
        let handler = LineLogHandler(
            label: "test", level: CurrentLogLevel(.info), format: .json, service: "sample", instance: "one", sink: sink)
        let logger = Logger(label: "test") { _ in handler }
        await withTaskGroup { group in
            for task in 0..<4 {
                group.addTask {
                    for line in 0..<20 {
                        logger.info("line", metadata: ["task": "\(task)", "n": "\(line)", "token": "hunter2"])
                    }
                }
            }
        }
        try pipe.fileHandleForWriting.close()
        let lines = try #require(try pipe.fileHandleForReading.readToEnd()).split(separator: UInt8(ascii: "\n"))
        #expect(lines.count == 80)
        for line in lines {
            let value = try WireCoding.decode(JSONValue.self, from: Array(line))
            #expect(value["token"] == "‹redacted›")
            #expect(value["service"] == "sample")
        }
    }
}
