import Testing

@testable import ServiceKit

@Suite struct StartupMemoryTests {
    private static let smaps = """
        55d0c0000000-55d0c0004000 r--p 00000000 08:01 1234                       /usr/bin/service
        Size:                 16 kB
        Rss:                  16 kB
        Private_Dirty:         0 kB
        Anonymous:             0 kB
        VmFlags: rd mr mw me sd
        55d0c0004000-55d0c0010000 r-xp 00004000 08:01 1234                       /usr/bin/service with a space
        Anonymous:             0 kB
        55d0c0010000-55d0c0012000 r--p 00010000 08:01 1234                       /usr/bin/service
        Anonymous:             8 kB
        55d0c0012000-55d0c0014000 rw-p 00012000 08:01 1234                       /usr/bin/service
        Anonymous:             0 kB
        7f0000000000-7f0000001000 r--p 00000000 00:00 0
        Anonymous:             0 kB
        7f0000001000-7f0000002000 r--s 00000000 08:01 99                         /shared
        Anonymous:             0 kB
        7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0                          [vdso]
        Anonymous:             0 kB
        """

    @Test func `only clean file mappings are released`() {
        #expect(
            StartupMemory.unchangedFiles(Self.smaps)
                == [0x55d0_c000_0000..<0x55d0_c000_4000, 0x55d0_c000_4000..<0x55d0_c001_0000])
    }

    @Test func `malformed smaps yield no ranges`() {
        #expect(StartupMemory.unchangedFiles("").isEmpty)
        #expect(StartupMemory.unchangedFiles("Anonymous: 0 kB\nzz-yy r--p 0 0 0 /x\nAnonymous: 0 kB").isEmpty)
    }

    @Test func `a process keeps working after a release`() {
        StartupMemory.release()
        #expect("\([1: "a"])" == "[1: \"a\"]")
    }

    @Test func `pages are released repeatedly until the process stops`() async {
        var waits: [Duration] = []
        await StartupMemory.releaseRepeatedly { waits.append($0) }
        #expect(waits == StartupMemory.pauses)
        waits = []
        await StartupMemory.releaseRepeatedly {
            waits.append($0)
            throw CancellationError()
        }
        #expect(waits == [StartupMemory.pauses[0]])
    }
}
