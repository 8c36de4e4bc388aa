import Foundation
import Testing
@testable import PushSending

@Suite struct QuotaRefusalsTests {
    private let devices = (0..<10).map { _ in UUID() }

    @Test func `one device over its rate says nothing about the project, however often`() {
        var refusals = QuotaRefusals()
        for _ in 0..<100 {
            let isProjects = refusals.note(refused: [devices[0]], answered: 0)
            #expect(!isProjects)
        }
    }

    @Test func `three devices in a row, with nobody taken between them, say it`() {
        var refusals = QuotaRefusals()
        let first = refusals.note(refused: [devices[0]], answered: 0)
        #expect(!first)
        let second = refusals.note(refused: [], answered: 0)
        #expect(!second)
        let third = refusals.note(refused: [devices[1]], answered: 0)
        #expect(!third)
        let fourth = refusals.note(refused: [devices[2]], answered: 0)
        #expect(fourth)
        // Said once, it takes as many again.
        let fifth = refusals.note(refused: [devices[3]], answered: 0)
        #expect(!fifth)
    }

    @Test func `whoever is taken in between shows that there is quota left`() {
        var refusals = QuotaRefusals()
        for device in devices {
            let first = refusals.note(refused: [device], answered: 0)
            #expect(!first)
            let second = refusals.note(refused: [], answered: 1)
            #expect(!second)
        }
    }

    @Test func `a few of many are about themselves; most of them are about all`() {
        var refusals = QuotaRefusals()
        let first = refusals.note(refused: Set(devices), answered: 490)
        #expect(!first)
        let second = refusals.note(refused: Set(devices.prefix(2)), answered: 1)
        #expect(!second)
        let third = refusals.note(refused: Set(devices), answered: 9)
        #expect(third)
    }
}
