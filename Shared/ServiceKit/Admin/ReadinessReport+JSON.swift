import FoundationEssentials
import PushProtocol

extension Readiness.Report {
    /// `{"conditions":[{"holds":false,"name":"database","reason":"…"}],"draining":false,"ready":false}`
    var json: String {
        let lines = conditions.map { line -> JSONValue in
            switch line.state {
            case .holds: ["name": .string(line.name), "holds": true]
            case .waiting(let reason), .degraded(let reason):
                ["name": .string(line.name), "holds": false, "reason": .string(Redaction.redacted(reason))]
            }
        }
        let body: JSONValue = [
            "ready": .bool(isReady), "draining": .bool(isDraining), "conditions": .array(lines),
        ]
        // Strings, booleans and arrays always encode.
        return (try? WireCoding.encode(body)).map { String(decoding: $0, as: UTF8.self) } ?? "{}"
    }
}
