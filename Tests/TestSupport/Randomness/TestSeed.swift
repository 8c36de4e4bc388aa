import Foundation

/// The random seed of a test run. `deploy/local/test` sets and prints it, so that you can reproduce a failure on any
/// machine.
package enum TestSeed {
    package static let value =
        ProcessInfo.processInfo.environment["HELIOGRAPH_TEST_SEED"].flatMap(UInt64.init)
        ?? UInt64.random(in: 0...UInt64.max)
}
