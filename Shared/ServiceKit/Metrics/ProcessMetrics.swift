import Foundation

/// The process metrics with the standard names of Prometheus clients.
///
/// Read from /proc at each scrape; empty without /proc.
enum ProcessMetrics {
    static func render() -> String {
        var text = ""
        func sample(_ name: String, _ type: String, _ value: Double?) {
            guard let value else { return }
            text += MetricHelp.header(name, type) + "\(name) \(value.prometheusText)\n"
        }
        let status = Status(contents("/proc/self/stat"))
        let ticks = Double(sysconf(Int32(_SC_CLK_TCK)))
        sample("process_cpu_seconds_total", "counter", status.map { $0.cpuTicks / ticks })
        sample("process_max_fds", "gauge", maximumDescriptors)
        sample("process_open_fds", "gauge", openDescriptors)
        sample("process_resident_memory_bytes", "gauge", status.map { $0.residentPages * Double(getpagesize()) })
        sample(
            "process_start_time_seconds", "gauge",
            status.flatMap { started in bootTime.map { $0 + started.startTicks / ticks } })
        sample("process_threads", "gauge", status.map { $0.threads })
        sample("process_virtual_memory_bytes", "gauge", status.map { $0.virtualBytes })
        return text
    }

    /// Fields of `/proc/self/stat` (proc(5)).
    struct Status {
        let cpuTicks, threads, startTicks, virtualBytes, residentPages: Double

        /// Parses the file. The second field is the command in brackets, which may contain spaces and brackets.
        init?(_ stat: String?) {
            guard let stat, let bracket = stat.lastIndex(of: ")") else { return nil }
            let fields = stat[stat.index(after: bracket)...].split(whereSeparator: \.isWhitespace).map { Double($0) }
            // The fields start with the third, the state.
            func field(_ number: Int) -> Double? { number - 3 < fields.count ? fields[number - 3] : nil }
            guard let user = field(14), let system = field(15), let threads = field(20), let start = field(22),
                let virtual = field(23), let resident = field(24)
            else { return nil }
            cpuTicks = user + system
            self.threads = threads
            startTicks = start
            virtualBytes = virtual
            residentPages = resident
        }
    }

    private static var openDescriptors: Double? {
        (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")).map { Double($0.count - 1) }
    }

    private static var maximumDescriptors: Double? {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return nil }
        return Double(limit.rlim_cur)
    }

    /// The machine's boot time, in Unix seconds.
    private static let bootTime: Double? = contents("/proc/stat")?
        .split(separator: "\n").first { $0.hasPrefix("btime ") }
        .flatMap { Double($0.dropFirst(6)) }

    private static func contents(_ path: String) -> String? {
        guard let file = FileHandle(forReadingAtPath: path) else { return nil }
        return (try? file.readToEnd()).flatMap { String(decoding: $0, as: UTF8.self) }
    }
}
