import Foundation
import PushProtocol

/// Topic subscriptions: the Instance ID batch API and the FCM v1 API (ProviderFacts.md §B.9).
struct FCMTopicEndpoint: Sendable {
    enum Operation: Hashable, Sendable {
        /// `/iid/v1:batchAdd` and `:batchRemove`.
        case batch(adds: Bool)
        /// `/v1/projects/<project>/registrations/<token>/topicSubscriptions…`.
        case subscriptions(project: String, token: String, topic: String?, options: [String: String])

        /// `nil` for any other path.
        init?(_ path: String) {
            switch path {
            case "/iid/v1:batchAdd": self = .batch(adds: true)
            case "/iid/v1:batchRemove": self = .batch(adds: false)
            default:
                let halves = path.split(separator: "?", maxSplits: 1).map(String.init)
                let parts = (halves.first ?? "").split(separator: "/", omittingEmptySubsequences: false)
                guard (7...8).contains(parts.count), parts[1] == "v1", parts[2] == "projects",
                    parts[4] == "registrations", parts[6] == "topicSubscriptions",
                    let token = String(parts[5]).removingPercentEncoding
                else { return nil }
                let topic = parts.count == 8 ? String(parts[7]).removingPercentEncoding : nil
                let pairs = (halves.count == 2 ? halves[1] : "").split(separator: "&").map { pair in
                    pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                        .map { String($0).removingPercentEncoding ?? "" }
                }
                self = .subscriptions(
                    project: String(parts[3]), token: token, topic: topic,
                    options: Dictionary(pairs.map { ($0[0], $0.count == 2 ? $0[1] : "") }) { $1 })
            }
        }

        /// The project in the path; `nil` takes the project of the access token.
        var project: String? {
            switch self {
            case .batch: nil
            case .subscriptions(let project, _, _, _): project
            }
        }
    }

    static let maximumBatch = 1000

    let topics: TopicSubscribers

    func answer(_ operation: Operation, _ request: ProviderRequest, project: String) throws(FCMRejection) -> Reply {
        switch operation {
        case .batch(let adds): return try batch(request, adds: adds, project: project)
        case .subscriptions(_, let token, let topic, let options):
            return try subscriptions(request.method, token, topic, options, project: project)
        }
    }

    private func batch(_ request: ProviderRequest, adds: Bool, project: String) throws(FCMRejection) -> Reply {
        // The Instance ID API answers an invalid request with a plain error string.
        guard request.method == "POST", request["access_token_auth"] == "true",
            let body = try? ProviderJSON.value(of: request.body), let to = body["to"]?.string,
            to.hasPrefix("/topics/"), FCMRules.isTopic(String(to.dropFirst(8))),
            let tokens = body["registration_tokens"]?.array, (1...Self.maximumBatch).contains(tokens.count)
        else {
            return Reply(
                status: 400, headers: [FCMProvider.json],
                body: JSONWriter.object { $0.member("error", "InvalidRequest") })
        }
        let topic = String(to.dropFirst(8))
        let results = tokens.map { value -> String? in
            guard let token = value.string, DeviceToken(token, for: .fcm) != nil else { return "INVALID_ARGUMENT" }
            if token.hasPrefix("sim:UNREGISTERED") { return "NOT_FOUND" }
            let change =
                adds
                ? topics.subscribe(token, to: topic, of: project)
                : topics.unsubscribe(token, from: topic, of: project)
            return change == .tooMany ? "TOO_MANY_TOPICS" : nil
        }
        return Reply(
            status: 200, headers: [FCMProvider.json],
            body: JSONWriter.object { writer in
                writer.name("results")
                writer.array(results) { writer, error in writer.object { $0.member("error", error) } }
            })
    }

    private func subscriptions(
        _ method: String, _ token: String, _ topic: String?, _ options: [String: String], project: String
    ) throws(FCMRejection) -> Reply {
        let named = topic ?? options["topic_name"] ?? options["topicName"]
        guard let name = named, FCMRules.isTopic(name) else {
            throw FCMRejection(
                status: 400, message: "the topic is missing or not a topic", errorCode: .invalidArgument,
                violations: [FCMViolation(field: "topic_name", description: "missing or not a topic")])
        }
        if token.hasPrefix("sim:UNREGISTERED") {
            throw FCMRejection(status: 404, message: "there is no such registration", errorCode: .unregistered)
        }
        switch method {
        case "POST" where topic == nil, "PATCH":
            switch topics.subscribe(token, to: name, of: project) {
            case .done: break
            case .unchanged where method == "POST":
                throw FCMRejection(status: 409, message: "the registration is already subscribed")
            case .unchanged: break
            case .tooMany:
                throw FCMRejection(
                    status: 429, message: "the registration is subscribed to the maximum number of topics")
            }
        case "DELETE":
            if topics.unsubscribe(token, from: name, of: project) == .unchanged, options["allow_missing"] != "true" {
                throw FCMRejection(status: 404, message: "the registration is not subscribed")
            }
        default: throw FCMRejection(status: 404, message: "no resource at this path for this method")
        }
        return Reply(
            status: 200, headers: [FCMProvider.json],
            body: method == "DELETE"
                ? Array("{}".utf8)
                : JSONWriter.object { writer in
                    writer.member("name", "projects/\(project)/registrations/\(token)/topicSubscriptions/\(name)")
                })
    }
}
