import Foundation

/// A point of a run: on the clock, and in what the process has used of the CPU.
struct Moment {
    private var clock: ContinuousClock.Instant
    private var cpu: Double

    static func now() -> Moment {
        var usage = rusage()
        getrusage(RUSAGE_SELF.rawValue, &usage)
        return Moment(clock: .now, cpu: seconds(usage.ru_utime) + seconds(usage.ru_stime))
    }

    /// The most resident memory the process has had.
    static func peakMemoryMB() -> Double {
        var usage = rusage()
        getrusage(RUSAGE_SELF.rawValue, &usage)
        return Double(usage.ru_maxrss) / 1024
    }

    func rate(of requests: Int, since earlier: Moment) -> Double {
        Double(requests) / ((clock - earlier.clock) / .seconds(1))
    }

    func cpuMicroseconds(of requests: Int, since earlier: Moment) -> Double {
        (cpu - earlier.cpu) * 1e6 / Double(requests)
    }

    private static func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
}
