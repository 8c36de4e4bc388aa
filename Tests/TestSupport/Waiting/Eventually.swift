/// Thrown when a condition did not become true in time.
package struct ConditionTimeout: Error, CustomStringConvertible {
    package let name: String
    package let limit: Duration

    package var description: String { "\(name) did not happen within \(limit)" }
}

/// Polls until `condition` is true; throws `ConditionTimeout` after `limit`, times ``TimeFactor``.
///
/// - Parameter name: The name of the condition in the error.
package func eventually(
    _ name: String = "the condition", within limit: Duration = .seconds(60),
    _ condition: () async throws -> Bool
) async throws {
    _ = try await eventuallySome(name, within: limit) { try await condition() ? true : nil }
}

/// Polls until `value` is not nil, and returns it.
package func eventuallySome<Value>(
    _ name: String = "the value", within limit: Duration = .seconds(60),
    _ value: () async throws -> Value?
) async throws -> Value {
    let limit = limit * TimeFactor.value
    let deadline = ContinuousClock.now + limit
    var pause = Duration.milliseconds(1)
    while true {
        if let found = try await value() { return found }
        guard ContinuousClock.now < deadline else { throw ConditionTimeout(name: name, limit: limit) }
        try await Task.sleep(for: pause)
        pause = min(pause * 2, .milliseconds(50))
    }
}
