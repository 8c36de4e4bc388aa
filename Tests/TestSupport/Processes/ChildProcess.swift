internal import Foundation
internal import Synchronization

/// A child process, usually an executable of this package, with only the given environment. Always call
/// ``exit(within:)``; it kills the process at its deadline.
package final class ChildProcess: Sendable {
    private let folder: TemporaryFolder
    private let process: Process
    private let exitCode = Mutex<Int32?>(nil)

    /// Starts an executable of this package from the build folder of the tests.
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

    /// Waits for the exit code; negative for a signal; `nil` when the process did not end in time and was killed.
    package func exit(within deadline: Duration = .seconds(20)) async -> Int32? {
        // The caller checks the result.
        try? await eventually(within: deadline) { exitCode.withLock { $0 } != nil }
        let code = exitCode.withLock { $0 }
        if code == nil { signal(SIGKILL) }
        return code
    }

    /// Sends a signal; nothing after the end, because the pid may be reused.
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
