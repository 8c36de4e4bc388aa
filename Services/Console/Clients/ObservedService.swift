import FoundationEssentials
import HTTPSFetch
import PushProtocol

/// A service on the live screen: its readiness and its metrics.
struct ObservedService: Hashable, Sendable {
    let name: String
    /// The admin address, without a slash at the end.
    let address: String

    /// Reads `rules=http://rules:9090,feedback=http://feedback:9090`.
    static func list(_ text: String) -> [ObservedService]? {
        let entries = text.split(separator: ",").map { $0.split(separator: "=", maxSplits: 1) }
        guard entries.allSatisfy({ $0.count == 2 && ($0[1].hasPrefix("http://") || $0[1].hasPrefix("https://")) })
        else {
            return nil
        }
        return entries.map { entry in
            let address = String(entry[1])
            return ObservedService(
                name: entry[0].trimmingPrefix(while: \.isWhitespace).description,
                address: address.hasSuffix("/") ? String(address.dropLast()) : address)
        }
    }

    static func problem(with text: String) -> String? {
        list(text) == nil ? "CONSOLE_SERVICES: “\(text)” is not name=URL, separated by commas" : nil
    }

    /// The state of a service now.
    struct State: Hashable, Sendable {
        enum Readiness: Hashable, Sendable { case ready, draining, notReady, away }

        var service: String
        var readiness: Readiness
        /// The sentences of conditions that do not hold.
        var reasons: [String] = []
        var metrics: MetricSnapshot = MetricSnapshot("")
    }

    func state(_ fetch: HTTPSFetch) async -> State {
        async let readiness = answer("/health/ready", fetch)
        async let metrics = answer("/metrics", fetch)
        guard let body = await readiness, let report = try? WireCoding.decode(JSONValue.self, from: body) else {
            return State(service: name, readiness: .away, reasons: ["\(address) does not answer"])
        }
        let reasons = (report["conditions"]?.array ?? []).filter { $0["holds"]?.bool == false }.map { condition in
            "\(condition["name"]?.string ?? ""): \(condition["reason"]?.string ?? "")"
        }
        let state: State.Readiness =
            report["draining"]?.bool == true ? .draining : report["ready"]?.bool == true ? .ready : .notReady
        return State(
            service: name, readiness: state, reasons: reasons,
            metrics: MetricSnapshot(String(decoding: await metrics ?? [], as: UTF8.self)))
    }

    /// A service that is not ready answers with 503 and the same document.
    private func answer(_ path: String, _ fetch: HTTPSFetch) async -> [UInt8]? {
        guard let answer = try? await fetch.send(FetchRequest(url: address + path)) else { return nil }
        return [200, 503].contains(answer.status) ? answer.body : nil
    }
}
