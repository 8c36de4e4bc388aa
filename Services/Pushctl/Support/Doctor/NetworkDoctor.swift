import ArgumentParser
import Dispatch
import Foundation
import Glibc
import HTTPSFetch
import PushProtocol

/// The checks of names and of the services' readiness.
enum NetworkDoctor {
    private static let patience = Duration.seconds(5)

    /// Resolves all hosts at once. A name may be unknown here and known where the services run, so this is no error.
    static func names(_ hosts: [String]) async -> [Finding] {
        let problems = await withTaskGroup(of: (String, String?).self) { group in
            for host in hosts { group.addTask { (host, await problem(host)) } }
            var problems: [String: String] = [:]
            for await (host, problem) in group { problems[host] = problem }
            return problems
        }
        return problems.sorted { $0.key < $1.key }.map { host, problem in
            Finding.warning(
                "dns", "\(host) does not resolve: \(problem)",
                cure: "check the resolver (/etc/resolv.conf) and the network policies of the services")
        }.orOK("dns", "\(hosts.count) hosts of providers and key sets resolve")
    }

    /// The resolver has no time limit of its own that applies here, and cannot be cancelled. A late answer is ignored.
    private static func problem(_ host: String) async -> String? {
        await withTaskGroup(of: String?.self) { group in
            let answer = AsyncStream<String?> { continuation in
                DispatchQueue.global().async {
                    continuation.yield(resolve(host))
                    continuation.finish()
                }
            }
            group.addTask {
                for await problem in answer { return problem }; return "stopped"
            }
            group.addTask {
                try? await Task.sleep(for: patience)
                return "no answer within \(patience.components.seconds) s"
            }
            let first = await group.next() ?? nil
            group.cancelAll()
            return first
        }
    }

    /// Returns the problem, or `nil` if the name has an address.
    private static func resolve(_ host: String) -> String? {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var result: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(host, "443", &hints, &result)
        if let result { freeaddrinfo(result) }
        return code == 0 ? nil : String(cString: gai_strerror(code))
    }
}

/// `--service`, for commands that show the readiness of processes.
struct ServicesOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The URL of a process's admin port, to check its readiness; may be repeated. Without TLS, the host is this "
                + "machine: http://127.0.0.1:9400.", valueName: "url"))
    var service: [String] = []

    func validate() throws {
        for url in service where !Self.isAllowed(url) {
            throw ValidationError(
                "--service “\(url)”: expected http://127.0.0.1:PORT or https://HOST:PORT, because the admin port has no "
                    + "TLS. For a process elsewhere, run kubectl port-forward POD PORT, or pushctl in its container")
        }
    }

    /// Whether a URL has TLS, or is on the loopback address.
    static func isAllowed(_ url: String) -> Bool {
        guard let parts = URLComponents(string: url), let host = parts.host, !host.isEmpty else { return false }
        let isLoopback = host == "localhost" || host == "[::1]" || host == "::1" || host.hasPrefix("127.")
        return parts.scheme == "https" || parts.scheme == "http" && isLoopback
    }
}

/// The readiness of a process, from its `/health/ready`.
struct ServiceProbe: Sendable {
    /// The URL of the admin port, such as `http://127.0.0.1:9400`; without TLS only on the loopback address.
    let url: String

    struct Answer: Hashable, Sendable {
        var url: String
        var isReady: Bool
        /// The conditions that do not hold, `name: reason`.
        var problems: [String]

        var json: JSONValue {
            ["url": .string(url), "ready": .bool(isReady), "problems": .strings(problems)]
        }
    }

    func answer() async -> Answer {
        let base = url.hasSuffix("/") ? String(url.dropLast()) : url
        do {
            let response = try await HTTPSFetch(timeout: .seconds(5)).send(
                FetchRequest(method: "GET", url: "\(base)/health/ready", headers: []))
            let report = try WireCoding.decode(JSONValue.self, from: response.body)
            let problems = (report["conditions"]?.array ?? []).filter { $0["holds"] == false }.map {
                "\($0["name"]?.string ?? "?"): \($0["reason"]?.string ?? "no reason")"
            }
            return Answer(url: url, isReady: report["ready"] == true, problems: problems)
        } catch {
            return Answer(url: url, isReady: false, problems: ["\(error)"])
        }
    }

    func findings() async -> [Finding] {
        let answer = await answer()
        guard answer.isReady else {
            let reasons = answer.problems.isEmpty ? "it is stopping" : answer.problems.joined(separator: "; ")
            return [
                .error(
                    "services", "\(url) is not ready: \(reasons)", cure: "read the log of this process for the reason")
            ]
        }
        return answer.problems.map {
            Finding.warning(
                "services", "\(url) works with a problem: \($0)", cure: "read the log of this process for the reason")
        }.orOK("services", "\(url) is ready")
    }
}
