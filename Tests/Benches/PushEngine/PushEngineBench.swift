import Foundation
import HTTP2
import Logging

/// Sends pushes at full speed with our HTTP/2 client and prints the result as one line of JSON.
///
///     PushEngineBench URL CA-FILE PAYLOAD-FILE REQUESTS [CONNECTIONS STREAMS]
@main
struct PushEngineBench {
    /// The requests that count as cold start.
    static let cold = 50_000

    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count >= 5, let requests = Int(arguments[4]), requests >= 2 * cold else {
            fail(
                "usage: PushEngineBench URL CA-FILE PAYLOAD-FILE REQUESTS [CONNECTIONS STREAMS]; REQUESTS ≥ \(2 * cold)"
            )
        }
        var configuration = HTTP2ClientConfiguration()
        configuration.maximumConnections = arguments.count > 5 ? Int(arguments[5])! : 2
        configuration.maximumConcurrentStreams = arguments.count > 6 ? Int(arguments[6])! : 100
        // Opens the second connection immediately, like the client it is compared with.
        configuration.connectInterval = .zero
        let client = try HTTP2Client(
            endpoint: HTTP2Endpoint(url: arguments[1], caFile: arguments[2]), configuration: configuration,
            logger: Logger(label: "bench") { _ in SwiftLogNoOpLogHandler() })
        let payload = [UInt8](try Data(contentsOf: URL(filePath: arguments[3])))
        // Enough that a free stream always finds a waiting push.
        let load = PushLoad(client: client, payload: payload, concurrentBatches: 4 * configuration.maximumConnections)

        let start = ResourceSnapshot.now()
        let afterCold = try await load.run(cold)
        let end = try await load.run(requests - cold)
        let report = Report(
            requests: requests, coldRate: afterCold.rate(of: cold, since: start),
            steadyRate: end.rate(of: requests - cold, since: afterCold), rate: end.rate(of: requests, since: start),
            cpuMicroseconds: end.cpuMicroseconds(of: requests, since: start),
            steadyCPUMicroseconds: end.cpuMicroseconds(of: requests - cold, since: afterCold),
            peakMemoryMB: ResourceSnapshot.peakMemoryMB(), connections: client.statistics.connections)
        print(String(decoding: try JSONEncoder().encode(report), as: UTF8.self))
        await client.shutdown()
    }

    static func fail(_ message: String) -> Never {
        FileHandle.standardError.write(Data((message + "\n").utf8))
        exit(2)
    }
}

/// The output for `deploy/local/bench`. Rates are requests per second of wall-clock time; CPU is user and system time
/// per request.
struct Report: Encodable {
    var requests: Int
    var coldRate: Double
    var steadyRate: Double
    var rate: Double
    var cpuMicroseconds: Double
    var steadyCPUMicroseconds: Double
    var peakMemoryMB: Double
    var connections: Int
}
