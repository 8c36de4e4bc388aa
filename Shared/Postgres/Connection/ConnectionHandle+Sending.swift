internal import CPostgres

enum Request {
    /// Statements without parameters in one string; the server runs them in order.
    case script(String)
    /// A COPY from or to the client, without parameters.
    case copy(String)
    case prepare(name: String, String, types: [UInt32])
    case prepared(name: String, [PostgresParameter])
}

extension ConnectionHandle {
    /// Queues `request` in libpq's buffer; returns `false` if the connection is no longer usable.
    borrowing func queue(_ request: Request) -> Bool {
        // The last argument, 1, requests results in the binary format.
        switch request {
        case .script(let text), .copy(let text):
            PQsendQuery(pointer, text) == 1
        case .prepare(let name, let text, let types):
            PQsendPrepare(pointer, name, text, Int32(types.count), types) == 1
        case .prepared(let name, let parameters):
            BoundParameters(parameters).withPointers { count, values, lengths, formats in
                PQsendQueryPrepared(pointer, name, count, values, lengths, formats, 1) == 1
            }
        }
    }
}

/// Parameters in libpq's form: parallel arrays, with all values in one buffer.
private struct BoundParameters {
    /// Never empty, so that an empty value has an address: a null pointer means NULL.
    private var arena: [UInt8] = [0]
    private var offsets: [Int?] = []
    private var lengths: [Int32] = []

    init(_ parameters: [PostgresParameter]) {
        for parameter in parameters {
            offsets.append(parameter.bytes == nil ? nil : arena.count - 1)
            lengths.append(Int32(parameter.bytes?.count ?? 0))
            if let bytes = parameter.bytes {
                arena.removeLast()
                arena += bytes
                arena.append(0)
            }
        }
    }

    typealias Values = UnsafePointer<UnsafePointer<CChar>?>?

    func withPointers<R>(_ body: (Int32, Values, UnsafePointer<Int32>?, UnsafePointer<Int32>?) -> R) -> R {
        let binary = [Int32](repeating: 1, count: offsets.count)
        return arena.withUnsafeBytes { arena in
            let values = offsets.map { offset in
                offset.map { arena.baseAddress!.advanced(by: $0).assumingMemoryBound(to: CChar.self) }
            }
            return values.withUnsafeBufferPointer { values in
                lengths.withUnsafeBufferPointer { lengths in
                    binary.withUnsafeBufferPointer { formats in
                        body(Int32(offsets.count), values.baseAddress, lengths.baseAddress, formats.baseAddress)
                    }
                }
            }
        }
    }
}
