import Foundation
import Logging
@testable import ServiceKit
import Testing

@Suite struct LogLevelFileTests {
    private let folder = FileManager.default.temporaryDirectory.appending(path: "log-level-\(UUID())")
    private let current = CurrentLogLevel(.info)

    init() throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    /// Writes `text` into the file, and reads it as the process does.
    private func read(_ text: String) throws {
        let path = folder.appending(path: "level").path
        try text.write(toFile: path, atomically: true, encoding: .utf8)
        try LogLevelFile(path: path, current: current, logger: Logger(label: "test")).update()
    }

    private func logger() -> Logger {
        let sink = LogSink(descriptor: STDERR_FILENO)
        let handler = LineLogHandler(
            label: "test", level: current, format: .json, service: "sample", instance: "one", sink: sink)
        return Logger(label: "test") { _ in handler }
    }

    @Test func `every logger has the level of the file`() throws {
        let logger = logger()
        #expect(logger.logLevel == .info)
        try read("debug\n")
        #expect(logger.logLevel == .debug)
        try read(" error ")
        #expect(logger.logLevel == .error)
    }

    @Test func `a logger with a level of its own keeps it`() throws {
        var quiet = logger()
        quiet.logLevel = .warning
        try read("trace")
        #expect(quiet.logLevel == .warning)
        #expect(logger().logLevel == .trace)
    }

    @Test(arguments: ["", "loud", "DEBUG", "info debug"]) func `another word leaves the level`(text: String) throws {
        #expect(throws: LogLevelFile.InvalidLevel.self) { try read(text) }
        #expect(current.level == .info)
    }

    @Test func `a missing file leaves the level`() {
        let path = folder.appending(path: "none").path
        #expect(throws: (any Error).self) {
            try LogLevelFile(path: path, current: current, logger: Logger(label: "test")).update()
        }
        #expect(current.level == .info)
    }
}
