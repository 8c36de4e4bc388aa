internal import Foundation
internal import Synchronization

/// A child process, by preference one of this package's own executables. It gets the environment it is given and no
/// other. Killed when a wait for its end is over; always wait for it.
package final class ChildProcess: Sendable {
    private let folder: TemporaryFolder
    private let process: Process
    private let exitCode = Mutex<Int32?>(nil)

    /// Starts an executable of this package, as it was built together with the tests, and returns at once.
    package convenience init(
        product: String, _ arguments: [String] = [], environment: [String: String] = [:]
    ) throws {
        try self.init(executable: Self.product(product), arguments, environment: environment)
    }

    package init(executable: String, _ arguments: [String] = [], environment: [String: String] = [:]) throws {
        let folder = try TemporaryFolder()
        let process = Process()
        process.executableURL = URL(filePath: executable)
        process.arguments = arguments
        process.environment = environment
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = try FileHandle(forWritingTo: URL(filePath: folder.write("out", "")))
        process.standardError = try FileHandle(forWritingTo: URL(filePath: folder.write("err", "")))
        self.folder = folder
        self.process = process
        process.terminationHandler = { [self] process in
            let code = process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus
            exitCode.withLock { $0 = code }
        }
        try process.run()
    }

    /// The path of an executable of this package.
    package static func product(_ name: String) -> String {
        URL(filePath: ProcessInfo.processInfo.arguments[0]).deletingLastPathComponent().appending(path: name).path
    }

    /// The exit code; negative when a signal ended it; `nil` when it did not end in time, and was killed.
    package func exit(within deadline: Duration = .seconds(20)) async -> Int32? {
        // What it comes to is what the caller looks at.
        try? await eventually(within: deadline) { exitCode.withLock { $0 } != nil }
        let code = exitCode.withLock { $0 }
        if code == nil { signal(SIGKILL) }
        return code
    }

    /// Nothing once it has ended: its pid may be another process's by then.
    package func signal(_ number: Int32) {
        guard process.isRunning, process.processIdentifier > 0 else { return }
        kill(process.processIdentifier, number)
    }

    package var output: String { text("out") }
    package var errors: String { text("err") }

    private func text(_ name: String) -> String {
        (try? String(contentsOfFile: "\(folder.path)/\(name)", encoding: .utf8)) ?? ""
    }
}
