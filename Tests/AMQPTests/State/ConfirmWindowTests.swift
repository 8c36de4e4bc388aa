import Testing
import TestSupport

@testable import AMQP

@Suite struct ConfirmWindowTests {
    private static func window(_ count: Int, limits: AMQPPublishWindow = .init(messages: 10, bytes: 1000))
        -> ConfirmWindow<Int>
    {
        var window = ConfirmWindow<Int>(limits)
        for number in 1...count { window.append(number, bytes: 100) }
        return window
    }

    private static func settle(_ window: inout ConfirmWindow<Int>, _ tag: UInt64, multiple: Bool) throws -> [Int] {
        var settled: [Int] = []
        try window.settle(tag, multiple: multiple) { settled.append($0) }
        return settled
    }

    @Test func `sequence numbers count from one`() {
        var window = ConfirmWindow<Int>(.init())
        #expect(window.append(7, bytes: 1) == 1)
        #expect(window.append(8, bytes: 1) == 2)
        #expect(window[2] == 8)
        #expect(window[3] == nil)
        #expect(window[0] == nil)
    }

    @Test func `a multiple confirm is a range`() throws {
        var window = Self.window(5)
        #expect(try Self.settle(&window, 3, multiple: true) == [1, 2, 3])
        #expect(window.count == 2)
        #expect(window.bytes == 200)
    }

    @Test func `confirms come in any order, and a range skips what is settled`() throws {
        var window = Self.window(5)
        #expect(try Self.settle(&window, 4, multiple: false) == [4])
        #expect(try Self.settle(&window, 2, multiple: false) == [2])
        #expect(try Self.settle(&window, 5, multiple: true) == [1, 3, 5])
        #expect(window.count == 0)
        #expect(window.bytes == 0)
        #expect(window.append(6, bytes: 1) == 6)
    }

    @Test func `zero with multiple means everything`() throws {
        var window = Self.window(4)
        #expect(try Self.settle(&window, 0, multiple: true) == [1, 2, 3, 4])
    }

    @Test func `a repeated confirm is ignored`() throws {
        var window = Self.window(3)
        _ = try Self.settle(&window, 2, multiple: true)
        #expect(try Self.settle(&window, 2, multiple: true) == [])
        #expect(try Self.settle(&window, 1, multiple: false) == [])
        #expect(window.count == 1)
    }

    @Test func `a confirm of an unpublished tag is a protocol violation`() {
        var window = Self.window(3)
        let error = #expect(throws: AMQPError.self) { try Self.settle(&window, 4, multiple: false) }
        #expect(error?.code == .protocolViolation)
    }

    @Test func `the window limits messages and bytes, and accepts any size when empty`() {
        var window = ConfirmWindow<Int>(.init(messages: 2, bytes: 250))
        #expect(window.hasRoom(for: 10_000))
        window.append(1, bytes: 100)
        #expect(window.hasRoom(for: 150))
        #expect(!window.hasRoom(for: 151))
        window.append(2, bytes: 1)
        #expect(!window.hasRoom(for: 1))
    }

    @Test func `a reset returns the unconfirmed messages in order and restarts at one`() throws {
        var window = Self.window(5)
        _ = try Self.settle(&window, 2, multiple: false)
        #expect(window.reset() == [1, 3, 4, 5])
        #expect(window.count == 0)
        #expect(window.append(9, bytes: 1) == 1)
    }

    @Test(arguments: 0..<20) func `any order of confirms settles every message once`(seed: UInt64) throws {
        var random = SplitMix(seed: seed)
        var window = Self.window(100, limits: .init(messages: 100, bytes: 100_000))
        var settled: [Int] = []
        while window.count > 0 {
            let tag = UInt64.random(in: 1...100, using: &random)
            settled += try Self.settle(&window, tag, multiple: Int.random(in: 0..<10, using: &random) == 0)
        }
        #expect(settled.sorted() == Array(1...100))
    }
}
