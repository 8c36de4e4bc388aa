import HTTPSFetch
import PushProtocol
import PushSending

/// Sends topic subscriptions to Google with the service account of an app.
struct TopicClient: Sendable {
    /// The maximum concurrent requests. Google's own libraries use up to a hundred.
    private static let concurrency = 20

    let subscription: TopicSubscription
    let accountFile: String
    let tokenURL: String?
    let fetch: HTTPSFetch

    /// One request per registration. The results have the order of `tokens`.
    func send(_ tokens: [DeviceToken], at url: String) async throws -> [TopicSubscription.SubscriptionResult] {
        let (account, authorization) = try await credential()
        return try await withThrowingTaskGroup(of: (Int, TopicSubscription.SubscriptionResult).self) { group in
            var answers = [TopicSubscription.SubscriptionResult](repeating: .done, count: tokens.count)
            var next = 0
            func start() {
                guard next < tokens.count else { return }
                let place = next
                next += 1
                group.addTask {
                    let request = subscription.request(for: tokens[place], in: account.projectID, at: url)
                    let response = try await call(request, authorization)
                    return (place, subscription.answer(status: response.status, body: response.body))
                }
            }
            for _ in 0..<Self.concurrency { start() }
            while let (place, answer) = try await group.next() {
                answers[place] = answer
                start()
            }
            return answers
        }
    }

    /// One request per thousand registration tokens. The results have the order of `tokens`.
    func sendLegacy(_ tokens: [DeviceToken], at url: String) async throws -> [TopicSubscription.SubscriptionResult] {
        let (_, authorization) = try await credential()
        var answers: [TopicSubscription.SubscriptionResult] = []
        var rest = tokens[...]
        while !rest.isEmpty {
            let batch = Array(rest.prefix(TopicSubscription.maximumBatch))
            rest = rest.dropFirst(batch.count)
            let response = try await call(subscription.legacyRequest(for: batch, at: url), authorization)
            answers += subscription.legacyAnswers(
                status: response.status, body: response.body, count: batch.count)
        }
        return answers
    }

    private func credential() async throws -> (ServiceAccount, String) {
        do throws(CredentialError) {
            let account = try ServiceAccount.load(path: accountFile)
            let form = try await OAuthGrant.form(for: account, now: .now)
            let request = TopicSubscription.Request(
                method: "POST", url: tokenURL ?? account.tokenURI,
                headers: ["content-type": "application/x-www-form-urlencoded"], body: form)
            let response: FetchResponse
            do throws(CommandError) { response = try await call(request, nil) } catch {
                throw .unavailable(reason: error.description)
            }
            let minted = try OAuthGrant.credential(status: response.status, body: response.body)
            return (account, minted.authorization)
        } catch {
            throw CommandError("\(error)")
        }
    }

    private func call(
        _ request: TopicSubscription.Request, _ authorization: String?
    ) async throws(CommandError) -> FetchResponse {
        var headers = request.headers.map { (name: $0.key, value: $0.value) }
        if let authorization { headers.append((name: "authorization", value: authorization)) }
        do throws(FetchError) {
            return try await fetch.send(
                FetchRequest(method: request.method, url: request.url, headers: headers, body: request.body))
        } catch {
            throw CommandError("\(error)")
        }
    }
}
