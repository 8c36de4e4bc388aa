import Foundation
import PushProtocol

/// One import of one file, from where it stood to its end.
struct DeviceImport: Sendable {
    let path: String
    let format: DeviceFormat
    /// The app of lines that name none.
    let app: AppID?
    let apps: Set<AppID>
    /// Where refused lines are told.
    let report: String

    /// What the file means besides what is in it: with another, it is another import.
    var way: String { "\(format.rawValue) \(app?.rawValue ?? "-")" }

    /// What is done with a batch, and where the import stands afterwards.
    typealias Taking = (ImportBatch, ImportState, _ end: (line: Int, position: Int)) async throws -> ImportState

    /// Reads the file from where the import stands and hands over batch after batch.
    func run(
        from state: ImportState, progress: (ImportState) -> Void, take: Taking
    ) async throws -> ImportState {
        var file = try LineFile(path: path)
        let reader = try reader(of: &file)
        var (state, number) = (state, state.line)
        if number == 0 {
            if case .csv = reader { number = 1 }
        } else {
            try file.seek(to: state.position)
        }
        let refusals = try RefusalReport(path: report, keepingUntil: state.line)
        var isAtEnd = false
        while !isAtEnd {
            var batch = ImportBatch()
            while !batch.isFull {
                guard let line = try file.next() else {
                    isAtEnd = true
                    break
                }
                number += 1
                guard !line.isEmpty else { continue }
                do throws(LineRefusal) {
                    batch.append(
                        try ImportedDevice(try reader.fields(of: line), app: app, apps: apps), line: number)
                } catch {
                    batch.refuse(number, because: error)
                }
            }
            // Before it is noted that they are done: of a repeat, the report keeps one.
            try refusals.append(batch.refused)
            state = try await take(batch, state, (number, file.position))
            progress(state)
        }
        return state
    }

    private func reader(of file: inout LineFile) throws -> DeviceLineReader {
        switch format {
        case .ndjson: return .ndjson
        case .csv:
            guard let header = try file.next() else {
                throw Refusal("\(path): is empty; its first line names the columns")
            }
            do throws(LineRefusal) { return try DeviceLineReader(header: header) } catch {
                throw Refusal("\(path): \(error)")
            }
        }
    }
}

/// The file that says which lines were refused and why: an object a line, and nothing of what is in them. There is none
/// as long as none was.
struct RefusalReport: Sendable {
    let path: String

    /// A file that holds anything else is somebody's, and stays as it is.
    ///
    /// - Parameter line: what an earlier run reported after this line is reported again.
    init(path: String, keepingUntil line: Int) throws {
        self.path = path
        guard FileManager.default.fileExists(atPath: path) else { return }
        let text = try? String(contentsOfFile: path, encoding: .utf8)
        var entries = text?.split(separator: "\n")
        // What was being written when the disk was full, or the process killed.
        if let last = entries?.last, text?.hasSuffix("\n") == false, last.hasPrefix("{\"line\":"),
            Self.line(of: last) == nil
        {
            entries?.removeLast()
        }
        let kept = try entries?.filter { entry in
            guard let number = Self.line(of: entry) else { throw Self.notAReport(path) }
            return number <= line
        }
        guard let kept else { throw Self.notAReport(path) }
        guard !kept.isEmpty else {
            try FileManager.default.removeItem(atPath: path)
            return
        }
        try kept.map { "\($0)\n" }.joined().write(toFile: path, atomically: true, encoding: .utf8)
    }

    private static func line(of entry: Substring) -> Int64? {
        let members = (try? WireCoding.decode(JSONValue.self, from: Array(entry.utf8)))?.object
        return members?.count == 2 && members?["why"] != nil ? members?["line"]?.int : nil
    }

    private static func notAReport(_ path: String) -> Refusal {
        Refusal("\(path): is no report of refused lines, and is not overwritten; --report names another place for them")
    }

    func append(_ refused: [ImportBatch.Refused]) throws {
        guard !refused.isEmpty else { return }
        var text: [UInt8] = []
        for line in refused {
            text += try WireCoding.encode(
                ["line": .int(Int64(line.line)), "why": .string(line.reason.description)] as JSONValue)
            text.append(UInt8(ascii: "\n"))
        }
        if !FileManager.default.fileExists(atPath: path) {
            guard FileManager.default.createFile(atPath: path, contents: nil) else {
                throw Refusal("\(path): cannot be written; --report names another place for refused lines")
            }
        }
        guard let file = FileHandle(forWritingAtPath: path) else {
            throw Refusal("\(path): cannot be written; --report names another place for refused lines")
        }
        try file.seekToEnd()
        try file.write(contentsOf: Data(text))
        try file.close()
    }
}
