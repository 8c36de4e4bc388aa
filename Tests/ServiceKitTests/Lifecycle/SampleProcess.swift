import TestSupport

/// A process of the sample service with its own admin port.
struct SampleProcess {
    let adminPort: Int
    private let process: ChildProcess

    init(_ arguments: [String] = [], environment: [String: String] = [:], adminPort: Int? = nil) throws {
        let port = try adminPort ?? FreePort.any()
        process = try ChildProcess(
            product: "SampleService", arguments,
            environment: ["HELIOGRAPH_ADMIN_PORT": "\(port)"].merging(environment) { $1 })
        self.adminPort = port
    }

    func exit() async -> Int32? { await process.exit() }
    func signal(_ number: Int32) { process.signal(number) }

    var output: String { process.output }
    var errors: String { process.errors }
}
