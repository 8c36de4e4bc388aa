import Foundation

/// Runs a program to its end, or during a closure.
package struct Command: Sendable {
    package struct Failed: Error, CustomStringConvertible {
        package let description: String
    }

    package struct Output: Sendable {
        package let status: Int32
        /// Standard output and standard error, interleaved.
        package let text: String
    }

    /// The program's name, searched in `PATH` and the system administration folders.
    package let name: String
    package let arguments: [String]

    package init(_ name: String, _ arguments: [String]) {
        self.name = name
        self.arguments = arguments
    }

    /// Runs the program to its end without blocking the calling thread.
    package func run() async throws -> Output {
        let (process, pipe) = prepare()
        return try await withCheckedThrowingContinuation { continuation in
            // A new thread, because reading blocks until the program ends.
            Thread.detachNewThread {
                continuation.resume(with: Result { try Self.finish(process, pipe, name: name) })
            }
        }
    }

    /// Runs the program to its end; throws with its output unless it exits with 0. Blocks; for short programs.
    @discardableResult
    package func runBlocking() throws -> String {
        let (process, pipe) = prepare()
        let output = try Self.finish(process, pipe, name: name)
        guard output.status == 0 else {
            throw Failed(description: "\(name) ended with \(output.status): \(output.text)")
        }
        return output.text
    }

    /// Runs the program during `body`.
    ///
    /// Ends it with SIGKILL: children of a dispatch thread inherit its blocked signals, SIGTERM among them.
    package func whileRunning<R>(_ body: () async throws -> R) async throws -> R {
        let (process, pipe) = prepare()
        do {
            try process.run()
        } catch {
            throw Failed(description: "\(name) cannot be started: \(error)")
        }
        // Reads continuously, because a full pipe blocks the program.
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
