import FoundationEssentials
import PushProtocol
import TokenEncryption

/// Replaces encrypted tokens in exported lines by their clear or masked text. The query puts each one between two
/// markers, with its row.
struct ExportTokenDecryptor: Sendable {
    /// Random for each export, so that no other text contains it.
    let marker: String
    let format: DeviceFormat
    /// Whether tokens are written in clear text; otherwise masked.
    let withTokens: Bool
    /// `nil` without a key file.
    let cipher: TokenCipher?
    /// Tokens modified in the database, exported as empty.
    private(set) var unreadable = 0

    init(_ cipher: TokenCipher?, format: DeviceFormat, withTokens: Bool, marker: String = "<\(UUID().uuidString)>") {
        self.cipher = cipher
        self.format = format
        self.withTokens = withTokens
        self.marker = marker
    }

    mutating func decryptTokens(in lines: [UInt8]) throws -> [UInt8] {
        let mark = Array(marker.utf8)
        var (result, rest): ([UInt8], ArraySlice<UInt8>) = ([], lines[...])
        result.reserveCapacity(lines.count)
        while let start = rest.first(mark) {
            result += rest[..<start]
            rest = rest[(start + mark.count)...]
            guard let end = rest.first(mark) else {
                throw ExportError.truncatedLine
            }
            result += written(try token(in: rest[..<end]))
            rest = rest[(end + mark.count)...]
        }
        return result + rest
    }

    /// Parses `DEVICE APP TEXT`.
    private mutating func token(in stored: ArraySlice<UInt8>) throws -> String {
        let parts = stored.split(separator: UInt8(ascii: " "), maxSplits: 2).map { String(decoding: $0, as: UTF8.self) }
        guard parts.count == 3, let device = UUID(uuidString: parts[0]), let app = AppID(rawValue: parts[1]) else {
            unreadable += 1
            return ""
        }
        guard let cipher else { throw ExportError.keysMissing }
        do throws(TokenCipher.DecryptionError) {
            let token = try cipher.open(parts[2], device: device, app: app)
            return withTokens ? token.secret : token.masked
        } catch {
            guard case .unknownKey(let id) = error else {
                unreadable += 1
                return ""
            }
            throw ExportError.unknownKey(id)
        }
    }

    private func written(_ token: String) -> [UInt8] {
        switch format {
        case .csv:
            let isPlain = !token.utf8.contains { [UInt8(ascii: ","), UInt8(ascii: "\""), 10, 13].contains($0) }
            return Array((isPlain ? token : "\"\(token.replacing("\"", with: "\"\""))\"").utf8)
        case .ndjson:
            // Without quotes: the line has them.
            return (try? WireCoding.encode(JSONValue.string(token)).dropFirst().dropLast()).map(Array.init) ?? []
        }
    }
}

/// The reasons for which an export stops.
package enum ExportError: Error, Hashable {
    /// The database ended a line early.
    case truncatedLine
    /// Tokens are encrypted.
    case keysMissing
    /// Tokens are encrypted with a key that is not given.
    case unknownKey(String)
}

extension ArraySlice<UInt8> {
    /// The index of `text`.
    fileprivate func first(_ text: [UInt8]) -> Int? {
        guard count >= text.count else { return nil }
        var place = startIndex
        while let next = self[place...].firstIndex(of: text[0]), next + text.count <= endIndex {
            if self[next..<(next + text.count)].elementsEqual(text) { return next }
            place = next + 1
        }
        return nil
    }
}
