import Foundation

/// Where what a test draws at random begins: one number for a whole run of `deploy/local/test`, which names it. So what has failed
/// fails again when its suite is run once more, and on any machine that is given the same number.
package enum TestSeed {
    package static let value =
        ProcessInfo.processInfo.environment["HELIOGRAPH_TEST_SEED"].flatMap(UInt64.init)
        ?? UInt64.random(in: 0...UInt64.max)
}
