import FoundationEssentials
import PushProtocol

extension Readiness.Report {
    /// `{"conditions":[{"holds":false,"name":"database","reason":"…"}],"draining":false,"ready":false}`
    var json: String {
        let entries = conditions.map { condition -> JSONValue in
            switch condition.state {
            case .holds: ["name": .string(condition.name), "holds": true]
            case .waiting(let reason), .degraded(let reason):
                ["name": .string(condition.name), "holds": false, "reason": .string(Redaction.redacted(reason))]
            }
        }
        let body: JSONValue = [
            "ready": .bool(isReady), "draining": .bool(isDraining), "conditions": .array(entries),
        ]
        // Strings, booleans and arrays always encode.
        return (try? WireCoding.text(body)) ?? "{}"
    }
}
