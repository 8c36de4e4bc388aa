import Foundation

/// A program run to its end, or kept running until it is stopped.
package struct Command: Sendable {
    package struct Failed: Error, CustomStringConvertible {
        package let description: String
    }

    package struct Output: Sendable {
        package let status: Int32
        /// Standard output and standard error, as they were interleaved.
        package let text: String
    }

    /// The program's name, looked up like a shell does and in the system administration folders as well.
    package let name: String
    package let arguments: [String]

    package init(_ name: String, _ arguments: [String]) {
        self.name = name
        self.arguments = arguments
    }

    /// Runs it to its end without blocking the calling task's thread.
    package func run() async throws -> Output {
        let (process, pipe) = prepare()
        return try await withCheckedThrowingContinuation { continuation in
            // A thread of its own: reading blocks until the program is done.
            Thread.detachNewThread {
                continuation.resume(with: Result { try Self.finish(process, pipe, name: name) })
            }
        }
    }

    /// Runs it to its end and throws, with its output, unless it exits with 0. Blocks; for short programs.
    @discardableResult
    package func runBlocking() throws -> String {
        let (process, pipe) = prepare()
        let output = try Self.finish(process, pipe, name: name)
        guard output.status == 0 else {
            throw Failed(description: "\(name) ended with \(output.status): \(output.text)")
        }
        return output.text
    }

    /// Keeps it running while `body` runs.
    ///
    /// Ends it with SIGKILL: children of a dispatch thread inherit its blocked signals, SIGTERM among them.
    package func whileRunning<R>(_ body: () async throws -> R) async throws -> R {
        let (process, pipe) = prepare()
        do {
            try process.run()
        } catch {
            throw Failed(description: "\(name) cannot be started: \(error)")
        }
        // Read continuously, or a chatty program would block on a full pipe.
        Thread.detachNewThread { _ = pipe.fileHandleForReading.readDataToEndOfFile() }
        defer { kill(process.processIdentifier, SIGKILL) }
        return try await body()
    }

    private func prepare() -> (Process, Pipe) {
        let (process, pipe) = (Process(), Pipe())
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [name] + arguments
        var environment = ProcessInfo.processInfo.environment
        environment["PATH"] = (environment["PATH"] ?? "/usr/bin:/bin") + ":/usr/sbin:/sbin"
        process.environment = environment
        process.standardOutput = pipe
        process.standardError = pipe
        process.standardInput = FileHandle.nullDevice
        return (process, pipe)
    }

    private static func finish(_ process: Process, _ pipe: Pipe, name: String) throws -> Output {
        do {
            try process.run()
        } catch {
            throw Failed(description: "\(name) cannot be started: \(error)")
        }
        let data = pipe.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return Output(status: process.terminationStatus, text: String(decoding: data, as: UTF8.self))
    }
}
