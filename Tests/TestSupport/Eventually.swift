/// Waits until `condition` holds: `#expect(await eventually { … })`.
///
/// Asks again and again, at first at once, then at most every 50 ms. An error that the condition throws counts as “not
/// yet”. No test sleeps for a time it guesses; it waits for what it means, and fails after `deadline`.
package func eventually(
    within deadline: Duration = .seconds(10), isolation: isolated (any Actor)? = #isolation,
    _ condition: () async throws -> Bool
) async -> Bool {
    let end = ContinuousClock.now + deadline
    var pause: Duration = .milliseconds(1)
    while true {
        // What fails now may succeed later: the deadline decides.
        if (try? await condition()) == true { return true }
        guard ContinuousClock.now < end, !Task.isCancelled else { return false }
        try? await Task.sleep(for: pause)
        pause = min(pause * 2, .milliseconds(50))
    }
}
