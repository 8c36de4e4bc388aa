import HTTPSFetch
import PushProtocol
import PushSending

/// Carries topic subscriptions to Google, as the service account of one app.
struct TopicClient: Sendable {
    /// The most calls at a time; Google's own libraries make at most a hundred (`push-protocols` B.9).
    private static let concurrency = 20

    let subscription: TopicSubscription
    let accountFile: String
    let tokenURL: String?
    let fetch: HTTPSFetch

    /// One call for each registration; the answers in the order of `tokens`.
    func send(_ tokens: [DeviceToken], at url: String) async throws -> [TopicSubscription.Answer] {
        let (account, authorization) = try await credential()
        return try await withThrowingTaskGroup(of: (Int, TopicSubscription.Answer).self) { group in
            var answers = [TopicSubscription.Answer](repeating: .done, count: tokens.count)
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

    /// One call for each thousand registration tokens; the answers in the order of `tokens`.
    func sendLegacy(_ tokens: [DeviceToken], at url: String) async throws -> [TopicSubscription.Answer] {
        let (_, authorization) = try await credential()
        var answers: [TopicSubscription.Answer] = []
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
            do throws(Refusal) { response = try await call(request, nil) } catch {
                throw .unavailable(reason: error.description)
            }
            let minted = try OAuthGrant.credential(status: response.status, body: response.body)
            return (account, minted.authorization)
        } catch {
            throw Refusal("\(error)")
        }
    }

    private func call(
        _ request: TopicSubscription.Request, _ authorization: String?
    ) async throws(Refusal) -> FetchResponse {
        var headers = request.headers.map { (name: $0.key, value: $0.value) }
        if let authorization { headers.append((name: "authorization", value: authorization)) }
        do throws(FetchError) {
            return try await fetch.send(
                FetchRequest(method: request.method, url: request.url, headers: headers, body: request.body))
        } catch {
            throw Refusal("\(error)")
        }
    }
}
