import Foundation
import Synchronization
import TestSupport

/// A child process of the sample service, with an admin port of its own. Killed with the value that owns it.
final class SampleProcess: Sendable {
    let adminPort: Int
    private let folder: TemporaryFolder
    private let process: Process
    private let exitCode = Mutex<Int32?>(nil)

    /// Starts the process and returns at once.
    init(_ arguments: [String] = [], environment: [String: String] = [:], adminPort: Int? = nil) throws {
        let folder = try TemporaryFolder()
        let port = try adminPort ?? Self.freePort()
        let process = Process()
        let products = URL(filePath: ProcessInfo.processInfo.arguments[0]).deletingLastPathComponent()
        process.executableURL = products.appending(path: "SampleService")
        process.arguments = arguments
        process.environment = ["HELIOGRAPH_ADMIN_PORT": "\(port)"].merging(environment) { $1 }
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = try FileHandle(forWritingTo: URL(filePath: folder.write("out", "")))
        process.standardError = try FileHandle(forWritingTo: URL(filePath: folder.write("err", "")))
        self.folder = folder
        self.process = process
        self.adminPort = port
        process.terminationHandler = { [self] process in
            let code = process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus
            exitCode.withLock { $0 = code }
        }
        try process.run()
    }

    /// The exit code; negative when a signal ended it; `nil` when it did not end in time.
    func exit(within deadline: Duration = .seconds(20)) async -> Int32? {
        // What it comes to is what the caller looks at.
        try? await eventually(within: deadline) { exitCode.withLock { $0 } != nil }
        if exitCode.withLock({ $0 }) == nil { signal(SIGKILL) }
        return exitCode.withLock { $0 }
    }

    /// Nothing once it has ended: its pid may be another process's by then.
    func signal(_ number: Int32) {
        guard process.isRunning, process.processIdentifier > 0 else { return }
        kill(process.processIdentifier, number)
    }

    var output: String { text("out") }
    var errors: String { text("err") }

    private func text(_ name: String) -> String {
        (try? String(contentsOfFile: "\(folder.path)/\(name)", encoding: .utf8)) ?? ""
    }

    /// A port that was free a moment ago.
    static func freePort() throws -> Int {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let port = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                bind(descriptor, pointer, length) == 0 && getsockname(descriptor, pointer, &length) == 0
            }
        }
        guard port else { throw POSIXError(.EADDRNOTAVAIL) }
        return Int(UInt16(bigEndian: address.sin_port))
    }
}
