import Foundation

/// Gives back what only starting needed: most of the code and the tables that a process reads while it starts are never
/// looked at again, and count as its own until somebody takes them away.
enum StartupMemory {
    /// How long after a service began to run it looks back again: connecting, and the first of each kind of work, read as
    /// much once as starting did.
    static let pauses: [Duration] = [.seconds(2), .seconds(5), .seconds(20)]

    /// Gives back now, and after each of ``pauses``, until cancelled.
    static func releaseRepeatedly(sleep: (Duration) async throws -> Void = { try await Task.sleep(for: $0) }) async {
        release()
        for pause in pauses {
            do { try await sleep(pause) } catch { return }
            release()
        }
    }

    /// Drops the pages of files that are mapped to be read and were never changed. Whatever is needed again comes back
    /// from the page cache, at the cost of a fault.
    static func release() {
        // Where there is no /proc, the process merely stays as large as it is.
        guard let file = FileHandle(forReadingAtPath: "/proc/self/smaps"), let text = try? file.readToEnd() else {
            return
        }
        for range in unchangedFiles(String(decoding: text, as: UTF8.self)) {
            madvise(UnsafeMutableRawPointer(bitPattern: range.lowerBound), range.count, MADV_DONTNEED)
        }
    }

    /// The addresses in `smaps` (proc(5)) at which a file is mapped privately, read-only, and with no page of our own in
    /// between: relocated tables have such pages, and would be lost.
    static func unchangedFiles(_ smaps: String) -> [Range<UInt>] {
        var files: [Range<UInt>] = []
        var candidate: Range<UInt>?
        for line in smaps.split(separator: "\n") {
            let words = line.split(separator: " ", omittingEmptySubsequences: true)
            if words.count >= 5, let range = addresses(words[0]) {
                let isFile = words.count >= 6 && words[5].hasPrefix("/")
                candidate = isFile && ["r--p", "r-xp"].contains(words[1]) ? range : nil
            } else if words.count == 3, words[0] == "Anonymous:", let range = candidate {
                if words[1] == "0" { files.append(range) }
                candidate = nil
            }
        }
        return files
    }

    private static func addresses(_ word: Substring) -> Range<UInt>? {
        let ends = word.split(separator: "-").map { UInt($0, radix: 16) }
        guard ends.count == 2, let start = ends[0], let end = ends[1], start < end else { return nil }
        return start..<end
    }
}
