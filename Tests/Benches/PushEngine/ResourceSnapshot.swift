import Foundation

/// Wall-clock time and CPU time at one point of a run.
struct ResourceSnapshot {
    private var clock: ContinuousClock.Instant
    private var cpu: Double

    static func now() -> ResourceSnapshot {
        var usage = rusage()
        getrusage(RUSAGE_SELF.rawValue, &usage)
        return ResourceSnapshot(clock: .now, cpu: seconds(usage.ru_utime) + seconds(usage.ru_stime))
    }

    /// The peak resident memory of the process.
    static func peakMemoryMB() -> Double {
        var usage = rusage()
        getrusage(RUSAGE_SELF.rawValue, &usage)
        return Double(usage.ru_maxrss) / 1024
    }

    func rate(of requests: Int, since earlier: ResourceSnapshot) -> Double {
        Double(requests) / ((clock - earlier.clock) / .seconds(1))
    }

    func cpuMicroseconds(of requests: Int, since earlier: ResourceSnapshot) -> Double {
        (cpu - earlier.cpu) * 1e6 / Double(requests)
    }

    private static func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
}
