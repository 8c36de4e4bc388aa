import Foundation
package import Testing

/// The factor of all time limits in tests, from `HELIOGRAPH_TEST_TIME_FACTOR`. Sanitizers slow the code down.
package enum TimeFactor {
    package static let value = ProcessInfo.processInfo.environment["HELIOGRAPH_TEST_TIME_FACTOR"].flatMap(Int.init) ?? 1
}

extension TimeLimitTrait.Duration {
    /// As the generic function of the testing library, times ``TimeFactor``. The compiler prefers this one.
    package static func minutes(_ minutes: Int) -> Self { .minutes(Int64(minutes) * Int64(TimeFactor.value)) }
}
