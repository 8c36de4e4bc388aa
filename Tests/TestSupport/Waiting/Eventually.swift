/// Thrown when a condition did not come true in time.
package struct NeverHappened: Error, CustomStringConvertible {
    package let what: String
    package let limit: Duration

    package var description: String { "\(what) did not happen within \(limit)" }
}

/// Waits until `condition` holds, asking again and again, and throws `NeverHappened` when it does not within `limit`.
///
/// - Parameter what: named in the error.
package func eventually(
    _ what: String = "the condition", within limit: Duration = .seconds(60),
    _ condition: () async throws -> Bool
) async throws {
    _ = try await eventuallySome(what, within: limit) { try await condition() ? true : nil }
}

/// Waits until `value` gives something, and returns it.
package func eventuallySome<Value>(
    _ what: String = "the value", within limit: Duration = .seconds(60),
    _ value: () async throws -> Value?
) async throws -> Value {
    let deadline = ContinuousClock.now + limit
    var pause = Duration.milliseconds(1)
    while true {
        if let found = try await value() { return found }
        guard ContinuousClock.now < deadline else { throw NeverHappened(what: what, limit: limit) }
        try await Task.sleep(for: pause)
        pause = min(pause * 2, .milliseconds(50))
    }
}
