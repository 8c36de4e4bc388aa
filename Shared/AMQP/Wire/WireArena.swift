internal import CRabbitMQ

/// Memory for the strings, tables and arguments of one outgoing call. Owned by one connection, used on its thread.
///
/// The library uses the pointers only during the call, so ``reset()`` frees everything before the next one. No pointer
/// into a Swift string leaves a closure.
struct WireArena: ~Copyable {
    private static let blockSize = 16 * 1024

    private var blocks: [UnsafeMutableRawBufferPointer] = []
    private var used = 0

    deinit { for block in blocks { block.deallocate() } }

    /// Frees everything except the first block.
    mutating func reset() {
        while blocks.count > 1 { blocks.removeLast().deallocate() }
        if let first = blocks.first, first.count > Self.blockSize { blocks.removeLast().deallocate() }
        used = 0
    }

    private mutating func allocate(_ count: Int, alignment: Int) -> UnsafeMutableRawPointer {
        let start = (used + alignment - 1) & ~(alignment - 1)
        if let block = blocks.last, let base = block.baseAddress, start + count <= block.count {
            used = start + count
            return base + start
        }
        let block = UnsafeMutableRawBufferPointer.allocate(
            byteCount: max(count, Self.blockSize), alignment: MemoryLayout<UInt64>.alignment)
        blocks.append(block)
        used = count
        return block.baseAddress!  // a block is never empty
    }

    mutating func bytes(_ bytes: UnsafeRawBufferPointer) -> amqp_bytes_t {
        guard let source = bytes.baseAddress, !bytes.isEmpty else { return amqp_bytes_t() }
        let copy = allocate(bytes.count, alignment: 1)
        copy.copyMemory(from: source, byteCount: bytes.count)
        return amqp_bytes_t(len: bytes.count, bytes: copy)
    }

    mutating func bytes(_ text: String) -> amqp_bytes_t {
        var text = text
        return text.withUTF8 { bytes(UnsafeRawBufferPointer($0)) }
    }

    mutating func table(_ values: [String: AMQPValue]) -> amqp_table_t {
        guard !values.isEmpty else { return amqp_table_t() }
        let entries = allocate(
            values.count * MemoryLayout<amqp_table_entry_t>.stride,
            alignment: MemoryLayout<amqp_table_entry_t>.alignment
        ).bindMemory(to: amqp_table_entry_t.self, capacity: values.count)
        for (index, (key, value)) in values.enumerated() {
            let name = bytes(key)
            let field = field(value)
            (entries + index).initialize(to: amqp_table_entry_t(key: name, value: field))
        }
        return amqp_table_t(num_entries: Int32(values.count), entries: entries)
    }

    private mutating func array(_ values: [AMQPValue]) -> amqp_array_t {
        guard !values.isEmpty else { return amqp_array_t() }
        let entries = allocate(
            values.count * MemoryLayout<amqp_field_value_t>.stride,
            alignment: MemoryLayout<amqp_field_value_t>.alignment
        ).bindMemory(to: amqp_field_value_t.self, capacity: values.count)
        for (index, value) in values.enumerated() {
            let field = field(value)
            (entries + index).initialize(to: field)
        }
        return amqp_array_t(num_entries: Int32(values.count), entries: entries)
    }

    private mutating func field(_ value: AMQPValue) -> amqp_field_value_t {
        var field = amqp_field_value_t()
        switch value {
        case .void:
            field.kind = UInt8(AMQP_FIELD_KIND_VOID.rawValue)
        case .bool(let bool):
            field.kind = UInt8(AMQP_FIELD_KIND_BOOLEAN.rawValue)
            field.value.boolean = bool ? 1 : 0
        case .int(let int):
            field.kind = UInt8(AMQP_FIELD_KIND_I64.rawValue)
            field.value.i64 = int
        case .double(let double):
            field.kind = UInt8(AMQP_FIELD_KIND_F64.rawValue)
            field.value.f64 = double
        case .text(let text):
            field.kind = UInt8(AMQP_FIELD_KIND_UTF8.rawValue)
            field.value.bytes = bytes(text)
        case .bytes(let array):
            field.kind = UInt8(AMQP_FIELD_KIND_BYTES.rawValue)
            field.value.bytes = array.withUnsafeBytes { bytes($0) }
        case .timestamp(let seconds):
            field.kind = UInt8(AMQP_FIELD_KIND_TIMESTAMP.rawValue)
            field.value.u64 = UInt64(clamping: seconds)
        case .array(let values):
            field.kind = UInt8(AMQP_FIELD_KIND_ARRAY.rawValue)
            field.value.array = array(values)
        case .table(let values):
            field.kind = UInt8(AMQP_FIELD_KIND_TABLE.rawValue)
            field.value.table = table(values)
        }
        return field
    }

    mutating func properties(_ properties: AMQPProperties, messageID: String?) -> amqp_basic_properties_t {
        var raw = amqp_basic_properties_t()
        raw._flags = UInt32(AMQP_BASIC_DELIVERY_MODE_FLAG)
        raw.delivery_mode = properties.persistent ? 2 : 1
        func set(_ field: inout amqp_bytes_t, _ flag: Int32, _ text: String?) -> UInt32 {
            guard let text else { return 0 }
            field = bytes(text)
            return UInt32(flag)
        }
        var flags = raw._flags
        flags |= set(&raw.content_type, AMQP_BASIC_CONTENT_TYPE_FLAG, properties.contentType)
        flags |= set(&raw.content_encoding, AMQP_BASIC_CONTENT_ENCODING_FLAG, properties.contentEncoding)
        flags |= set(&raw.message_id, AMQP_BASIC_MESSAGE_ID_FLAG, messageID)
        flags |= set(&raw.correlation_id, AMQP_BASIC_CORRELATION_ID_FLAG, properties.correlationID)
        flags |= set(&raw.type, AMQP_BASIC_TYPE_FLAG, properties.type)
        flags |= set(&raw.app_id, AMQP_BASIC_APP_ID_FLAG, properties.appID)
        flags |= set(&raw.expiration, AMQP_BASIC_EXPIRATION_FLAG, properties.expiration)
        flags |= set(&raw.user_id, AMQP_BASIC_USER_ID_FLAG, properties.userID)
        raw._flags = flags
        if let timestamp = properties.timestamp {
            raw._flags |= UInt32(AMQP_BASIC_TIMESTAMP_FLAG)
            raw.timestamp = UInt64(clamping: timestamp)
        }
        if !properties.headers.isEmpty {
            raw._flags |= UInt32(AMQP_BASIC_HEADERS_FLAG)
            raw.headers = table(properties.headers)
        }
        return raw
    }
}
