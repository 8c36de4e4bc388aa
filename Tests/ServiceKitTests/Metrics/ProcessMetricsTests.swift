import Foundation
import Testing

@testable import ServiceKit

@Suite struct ProcessMetricsTests {
    @Test func `the process reports its memory, time, descriptors and start`() throws {
        let samples = Dictionary(
            uniqueKeysWithValues: ProcessMetrics.render().split(separator: "\n").filter { !$0.hasPrefix("#") }.map {
                let parts = $0.split(separator: " ")
                return (String(parts[0]), Double(parts[1]) ?? -1)
            })
        #expect(try #require(samples["process_resident_memory_bytes"]) > 1_000_000)
        #expect(try #require(samples["process_cpu_seconds_total"]) >= 0)
        #expect(try #require(samples["process_open_fds"]) > 2)
        #expect(try #require(samples["process_max_fds"]) > 2)
        let start = try #require(samples["process_start_time_seconds"])
        #expect(abs(Date().timeIntervalSince1970 - start) < 3600)
    }

    @Test func `a command's name cannot confuse the parser`() throws {
        let fields = (4...24).map(String.init).joined(separator: " ")
        let status = try #require(ProcessMetrics.Status("1 (odd) name) 1) S \(fields) 99"))
        #expect(status.cpuTicks == 14 + 15)
        #expect(status.startTicks == 22)
        #expect(status.residentPages == 24)
        #expect(ProcessMetrics.Status("nonsense") == nil)
        #expect(ProcessMetrics.Status("1 (short) S 1 2") == nil)
    }
}
