/// The result of one evaluation of a route.
package struct RouteReport: Hashable, Sendable {
    package var route: FeedbackRoute
    package var guardBefore: GuardState
    package var guardAfter: GuardState
    /// The spike that trips the guard or keeps it tripped; `nil` without one, or if a sender reported it.
    package var spike: ObservedSpike?
    /// The number of pieces of evidence by decision.
    package var decided: [String: Int] = [:]
    /// Evidence that cannot be decoded and was marked dead.
    package var deadEvidence: [DeadEvidence] = []
    /// Whether more evidence is due now.
    package var hasMore = false
}
