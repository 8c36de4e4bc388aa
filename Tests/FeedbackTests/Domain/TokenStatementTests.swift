import FoundationEssentials
import PushProtocol
import Testing

@testable import Feedback
@testable import FeedbackStore

/// Tests findings from outcomes, with the test vectors B03 to B05 (ProviderFacts.md §E.2).
@Suite struct TokenStatementTests {
    private func statement(_ answer: Outcome.Answer, registeredAt: Timestamp? = Batches.registered) -> TokenStatement? {
        Batches.batch(answer, devices: [1], registeredAt: registeredAt).statements.first
    }

    @Test func `B03: a 410 newer than the registration waits for evaluation`() {
        let since = Timestamp(milliseconds: 1_767_225_000_000)
        let gone = statement(.unregistered(since: since, reason: "Unregistered"))
        #expect(gone?.verdict == .gone)
        #expect(gone?.initialState == .waiting)
        #expect(gone?.goneSince == since)
    }

    @Test func `B04: a 410 older than the registration is stale`() {
        let since = Timestamp(milliseconds: 1_767_225_000_000)
        let later = Timestamp(milliseconds: 1_767_225_300_000)
        #expect(statement(.unregistered(since: since, reason: "x"), registeredAt: later)?.initialState == .stale)
        // The same millisecond applies to that registration (ProviderFacts.md §C.3).
        #expect(statement(.unregistered(since: since, reason: "x"), registeredAt: since)?.initialState == .waiting)
    }

    @Test func `B05: a 410 without a timestamp waits for evaluation`() {
        #expect(statement(.unregistered(since: nil, reason: "ExpiredToken"))?.initialState == .waiting)
    }

    @Test func `a suspect rejection waits for evaluation`() {
        #expect(statement(Batches.badToken)?.verdict == .suspect)
        #expect(statement(Batches.badToken)?.initialState == .waiting)
    }

    @Test(arguments: [
        Outcome.Answer.accepted(id: nil), .rejected(reason: "PayloadTooLarge", suspectToken: false),
        .throttled(reason: "TooManyRequests"), .misconfigured(reason: "BadTopic"), .expired,
        .skipped(reason: "unconfigured"), .unknown(reason: "connection-lost"),
    ])
    func `an answer that is not about the token gives no finding`(answer: Outcome.Answer) {
        #expect(statement(answer) == nil)
    }

    @Test func `an outcome without a device gives no finding`() {
        var batch = Batches.batch(.unregistered(since: nil, reason: "x"), devices: [1])
        batch.outcomes[0].device = nil
        #expect(batch.statements.isEmpty)
    }

    @Test func `an acceptance in the other environment corrects the registration under a repeatable id`() throws {
        let batch = Batches.batch(.accepted(id: nil), devices: [1, 2], elsewhere: .development)
        #expect(batch.statements.map(\.verdict) == [.misplaced, .misplaced])
        #expect(batch.statements.map(\.initialState) == [.published, .published])
        #expect(
            batch.corrections.map(\.command) == [
                .correct(device: Batches.device(1), environment: .development),
                .correct(device: Batches.device(2), environment: .development),
            ])
        #expect(batch.corrections == batch.corrections)
        #expect(Set(batch.corrections.map(\.trace.id)).count == 2)
        #expect(batch.corrections.allSatisfy { $0.trace.causation == batch.trace.id.uuidString.lowercased() })
    }

    @Test func `an acceptance in the push's own environment gives no command`() {
        #expect(Batches.batch(.accepted(id: nil), devices: [1], elsewhere: .production).corrections.isEmpty)
    }
}

/// Tests the commands derived from evidence.
@Suite struct EvidenceCommandTests {
    private func evidence(goneSince: Timestamp?, registeredAt: Timestamp?, notification: Int = 1) -> Evidence {
        Evidence(
            key: .init(notification: Batches.notification(notification), device: Batches.device(1)),
            route: Batches.route, verdict: .gone, reason: "Unregistered", goneSince: goneSince,
            registeredAt: registeredAt, observedAt: .start, suspicions: 0,
            trace: Trace(id: Batches.sender, correlation: "event-1", causation: "push-1"))
    }

    @Test func `a command has the provider's timestamp, else the registration time, else the observation time`() {
        let since = Timestamp(milliseconds: 1_767_225_000_000)
        #expect(evidence(goneSince: since, registeredAt: Batches.registered).notRegisteredSince == since)
        #expect(evidence(goneSince: nil, registeredAt: Batches.registered).notRegisteredSince == Batches.registered)
        #expect(evidence(goneSince: nil, registeredAt: nil).notRegisteredSince == .start)
    }

    @Test func `several pieces of evidence about a device give one command with the latest time`() throws {
        let later = Batches.registered + .seconds(60)
        let pieces = [
            evidence(goneSince: nil, registeredAt: later, notification: 2),
            evidence(goneSince: nil, registeredAt: Batches.registered, notification: 3),
        ]
        #expect(
            pieces.commands.map(\.command) == [
                .deactivate(device: Batches.device(1), notRegisteredSince: later, reason: "Unregistered")
            ])
        #expect(pieces.commands == Array(pieces.reversed()).commands)
    }

    @Test func `a FID whose registration token was accepted is marked suspect at once`() throws {
        let batch = Batches.batch(
            .accepted(id: nil), devices: [1], origin: .fcm, refusedFID: "UNREGISTERED")
        #expect(batch.statements.map(\.verdict) == [.fidContradicted])
        #expect(batch.statements.map(\.initialState) == [.published])
        #expect(
            batch.corrections.map(\.command)
                == [.suspect(device: Batches.device(1), at: .start, reason: "UNREGISTERED")])
        #expect(Set(batch.corrections.map(\.trace.id)).count == 1)
    }

    @Test func `a FID without an accepted registration token waits for evaluation`() throws {
        let batch = Batches.batch(
            .unregistered(since: nil, reason: "UNREGISTERED"), devices: [1], origin: .fcm, refusedFID: "UNREGISTERED")
        #expect(batch.statements.map(\.verdict) == [.fidGone])
        #expect(batch.statements.map(\.initialState) == [.waiting])
        #expect(batch.corrections.isEmpty)
    }
}
