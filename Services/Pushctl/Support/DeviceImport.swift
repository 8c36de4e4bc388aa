import Foundation
import PushProtocol
import RegistryStore

/// Imports one file from its stored progress to the end.
struct DeviceImport: Sendable {
    let path: String
    let format: ImportFormat
    /// The app of lines without one.
    let app: AppID?
    let apps: Set<AppID>
    /// The file for refused lines.
    let report: String
    var options = ImportOptions()

    /// Part of the import's identity: the same file with another format, app or option is another import.
    var mode: String { "\(format.rawValue) \(app?.rawValue ?? "-")\(options.mode)" }

    /// Handles a batch and returns the new progress.
    typealias BatchHandler = (ImportBatch, ImportState, _ end: (line: Int, position: Int)) async throws -> ImportState

    /// Reads the file from its progress and passes it on in batches.
    func run(
        from state: ImportState, progress: (ImportState) -> Void, take: BatchHandler
    ) async throws -> ImportState {
        var file = try LineFile(path: path)
        try file.requireComplete(path)
        let reader = try reader(of: &file)
        var (state, number) = (state, state.line)
        if number == 0 {
            if format.framing == .table { number = 1 }
        } else {
            try file.seek(to: state.position)
        }
        let refusals = try RejectionReport(path: report, keepingUntil: state.line)
        var splitter = JSONObjectSplitter(longest: GorushReader.maximumSize)
        var isAtEnd = false
        while !isAtEnd {
            var batch = ImportBatch()
            while !batch.isFull {
                guard let record = try format.framing == .objects ? file.next(&splitter) : file.next() else {
                    isAtEnd = true
                    break
                }
                number += 1
                guard !record.isEmpty else { continue }
                add(record, number, reader, to: &batch)
            }
            // Before the progress is stored: a repeated batch replaces its lines in the report.
            try refusals.append(batch.refused)
            state = try await take(batch, state, (number, file.position))
            progress(state)
        }
        return state
    }

    /// Adds the registrations of a record to a batch, or the reasons for refusing them.
    private func add(
        _ record: [UInt8], _ number: Int, _ reader: any RegistrationReader, to batch: inout ImportBatch
    ) {
        do throws(LineError) {
            for fields in try reader.registrations(in: record) {
                do throws(LineError) {
                    let device = try ImportedDevice(options.completing(fields), app: app, apps: apps)
                    batch.append(device.request, registeredAt: device.registeredAt, line: number)
                } catch {
                    batch.refuse(number, because: error.description)
                }
            }
        } catch {
            batch.refuse(number, because: error.description)
        }
    }

    private func reader(of file: inout LineFile) throws -> any RegistrationReader {
        var header: [UInt8] = []
        if format.framing == .table {
            guard let line = try file.next() else {
                throw CommandError("\(path): is empty; its first line names the columns")
            }
            header = line
        }
        do throws(LineError) {
            switch format {
            case .ndjson: return DeviceLineReader.ndjson
            case .csv: return try DeviceLineReader(header: header, columns: options.columns)
            case .oneSignal: return try OneSignalReader(header: header)
            case .firebaseCSV: return try FirebaseCSVReader(header: header, columns: options.columns)
            case .aeroGear: return AeroGearReader()
            case .gorush: return GorushReader(userMember: options.userMember ?? "data.user_id")
            }
        } catch {
            throw CommandError("\(path): \(error)")
        }
    }
}

extension ImportFormat {
    /// The format by file extension: ndjson or csv.
    init?(path: String) {
        guard let format = DeviceFormat(path: path) else { return nil }
        self = format == .csv ? .csv : .ndjson
    }
}

/// The report of refused lines: one JSON object per line, without the line's content. Created with the first refused
/// line.
struct RejectionReport: Sendable {
    let path: String

    /// Refuses to overwrite a file that is not such a report.
    ///
    /// - Parameter line: later lines of an earlier run are removed, as they are reported again.
    init(path: String, keepingUntil line: Int) throws {
        self.path = path
        guard FileManager.default.fileExists(atPath: path) else { return }
        let text = try? String(contentsOfFile: path, encoding: .utf8)
        var entries = text?.split(separator: "\n")
        // A partial last line, after a full disk or a killed process.
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

    /// The reasons in a report with their numbers, the most frequent first.
    static func reasons(in path: String) throws -> [(reason: String, count: Int)] {
        guard FileManager.default.fileExists(atPath: path) else { return [] }
        var file = try LineFile(path: path)
        var counts: [String: Int] = [:]
        while let line = try file.next() {
            if let reason = (try? WireCoding.decode(JSONValue.self, from: line))?["why"]?.string {
                counts[reason, default: 0] += 1
            }
        }
        return counts.map { ($0.key, $0.value) }.sorted { ($1.1, $0.0) < ($0.1, $1.0) }
    }

    private static func line(of entry: Substring) -> Int64? {
        let members = (try? WireCoding.decode(JSONValue.self, from: Array(entry.utf8)))?.object
        return members?.count == 2 && members?["why"] != nil ? members?["line"]?.int : nil
    }

    private static func notAReport(_ path: String) -> CommandError {
        CommandError("\(path): exists and is not a report of refused lines; choose another file with --report")
    }

    func append(_ refused: [ImportBatch.RejectedLine]) throws {
        guard !refused.isEmpty else { return }
        var text: [UInt8] = []
        for line in refused {
            text += try WireCoding.encode(
                ["line": .int(Int64(line.line)), "why": .string(line.reason)] as JSONValue)
            text.append(UInt8(ascii: "\n"))
        }
        if !FileManager.default.fileExists(atPath: path) {
            guard FileManager.default.createFile(atPath: path, contents: nil) else {
                throw CommandError("\(path): cannot be written; choose another file with --report")
            }
        }
        guard let file = FileHandle(forWritingAtPath: path) else {
            throw CommandError("\(path): cannot be written; choose another file with --report")
        }
        try file.seekToEnd()
        try file.write(contentsOf: Data(text))
        try file.close()
    }
}
