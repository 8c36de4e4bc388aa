import Foundation

/// Releases file-backed memory pages that were needed only at the start. They count as resident memory until released:
/// 35 MB of the simulator at rest (debug build, 51 MB without releasing and 15 MB with it). The bound of the senders'
/// resident memory (`bench sender`, 60 MB) depends on it.
enum StartupMemory {
    /// The pauses between releases. Connecting, and the first work of each kind, map about as many pages as starting.
    static let pauses: [Duration] = [.seconds(2), .seconds(5), .seconds(20)]

    /// Releases pages now and after each of ``pauses``, until cancelled.
    static func releaseRepeatedly(sleep: (Duration) async throws -> Void = { try await Task.sleep(for: $0) }) async {
        release()
        for pause in pauses {
            do { try await sleep(pause) } catch { return }
            release()
        }
    }

    /// Drops clean pages of read-only file mappings. A page needed again is read from the page cache, with a page
    /// fault.
    static func release() {
        // Does nothing without /proc.
        guard let file = FileHandle(forReadingAtPath: "/proc/self/smaps"), let text = try? file.readToEnd() else {
            return
        }
        for range in unchangedFiles(String(decoding: text, as: UTF8.self)) {
            madvise(UnsafeMutableRawPointer(bitPattern: range.lowerBound), range.count, MADV_DONTNEED)
        }
    }

    /// Returns the address ranges in `smaps` (proc(5)) of private, read-only file mappings without anonymous pages.
    /// Relocated tables have anonymous pages, whose content would be lost.
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
