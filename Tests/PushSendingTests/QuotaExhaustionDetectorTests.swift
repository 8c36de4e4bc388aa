import Foundation
import Testing

@testable import PushSending

@Suite struct QuotaExhaustionDetectorTests {
    private let devices = (0..<10).map { _ in UUID() }

    @Test func `given one throttled device, then the quota is not exhausted`() {
        var detector = QuotaExhaustionDetector()
        for _ in 0..<100 {
            let isExhausted = detector.record(throttled: [devices[0]], answered: 0)
            #expect(!isExhausted)
        }
    }

    @Test func `given three throttled devices in a row, then the quota is exhausted`() {
        var detector = QuotaExhaustionDetector()
        let first = detector.record(throttled: [devices[0]], answered: 0)
        #expect(!first)
        let second = detector.record(throttled: [], answered: 0)
        #expect(!second)
        let third = detector.record(throttled: [devices[1]], answered: 0)
        #expect(!third)
        let fourth = detector.record(throttled: [devices[2]], answered: 0)
        #expect(fourth)
        // The count starts again.
        let fifth = detector.record(throttled: [devices[3]], answered: 0)
        #expect(!fifth)
    }

    @Test func `given an answered target in between, then the quota is not exhausted`() {
        var detector = QuotaExhaustionDetector()
        for device in devices {
            let first = detector.record(throttled: [device], answered: 0)
            #expect(!first)
            let second = detector.record(throttled: [], answered: 1)
            #expect(!second)
        }
    }

    @Test func `given most targets throttled, then the quota is exhausted; given few, then not`() {
        var detector = QuotaExhaustionDetector()
        let first = detector.record(throttled: Set(devices), answered: 490)
        #expect(!first)
        let second = detector.record(throttled: Set(devices.prefix(2)), answered: 1)
        #expect(!second)
        let third = detector.record(throttled: Set(devices), answered: 9)
        #expect(third)
    }
}
