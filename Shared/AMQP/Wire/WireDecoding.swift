internal import CRabbitMQ
internal import Glibc

// Copies values out of the library's memory, which is released with the connection's buffers.

extension String {
    init(_ bytes: amqp_bytes_t) {
        self.init(decoding: UnsafeRawBufferPointer(start: bytes.bytes, count: bytes.len), as: UTF8.self)
    }
}

extension Array<UInt8> {
    init(_ bytes: amqp_bytes_t) { self.init(UnsafeRawBufferPointer(start: bytes.bytes, count: bytes.len)) }
}

/// Reuses strings that repeat from message to message. Keeps the last value per field.
struct StringInterner {
    var exchange = InternedString()
    var routingKey = InternedString()
    var consumerTag = InternedString()
    var contentType = InternedString()
    var type = InternedString()
    var appID = InternedString()

    struct InternedString {
        private var bytes: [UInt8] = []
        private var text = ""

        mutating func text(_ raw: amqp_bytes_t) -> String {
            let isSame = bytes.withUnsafeBytes { bytes in
                guard raw.len == bytes.count, let old = bytes.baseAddress, let new = raw.bytes else { return false }
                return memcmp(old, new, raw.len) == 0
            }
            if !isSame {
                bytes = [UInt8](raw)
                text = String(raw)
            }
            return text
        }
    }
}

extension AMQPProperties {
    init(_ raw: amqp_basic_properties_t) {
        var interner = StringInterner()
        self.init(raw, &interner)
    }

    init(_ raw: amqp_basic_properties_t, _ interner: inout StringInterner, receivedBytes: Int = 0) {
        func has(_ flag: Int32) -> Bool { raw._flags & UInt32(flag) != 0 }
        func text(_ flag: Int32, _ bytes: amqp_bytes_t) -> String? {
            raw._flags & UInt32(flag) == 0 ? nil : String(bytes)
        }
        self.init(
            contentType: has(AMQP_BASIC_CONTENT_TYPE_FLAG) ? interner.contentType.text(raw.content_type) : nil,
            contentEncoding: text(AMQP_BASIC_CONTENT_ENCODING_FLAG, raw.content_encoding),
            messageID: text(AMQP_BASIC_MESSAGE_ID_FLAG, raw.message_id),
            correlationID: text(AMQP_BASIC_CORRELATION_ID_FLAG, raw.correlation_id),
            type: has(AMQP_BASIC_TYPE_FLAG) ? interner.type.text(raw.type) : nil,
            appID: has(AMQP_BASIC_APP_ID_FLAG) ? interner.appID.text(raw.app_id) : nil,
            expiration: text(AMQP_BASIC_EXPIRATION_FLAG, raw.expiration),
            userID: text(AMQP_BASIC_USER_ID_FLAG, raw.user_id),
            persistent: raw._flags & UInt32(AMQP_BASIC_DELIVERY_MODE_FLAG) != 0 && raw.delivery_mode == 2,
            timestamp: raw._flags & UInt32(AMQP_BASIC_TIMESTAMP_FLAG) == 0 ? nil : Int64(clamping: raw.timestamp),
            headers: raw._flags & UInt32(AMQP_BASIC_HEADERS_FLAG) == 0
                ? [:] : AMQPValue.entries(of: raw.headers, depth: 0),
            receivedBytes: receivedBytes)
    }
}

extension AMQPValue {
    /// The entries of a table. The last one wins for a repeated name.
    static func entries(of table: amqp_table_t, depth: Int) -> [String: AMQPValue] {
        var entries: [String: AMQPValue] = [:]
        for entry in UnsafeBufferPointer(start: table.entries, count: Int(table.num_entries)) {
            entries[String(entry.key)] = AMQPValue(entry.value, depth: depth + 1)
        }
        return entries
    }

    private init(_ field: amqp_field_value_t, depth: Int) {
        let value = field.value
        switch amqp_field_value_kind_t(rawValue: UInt32(field.kind)) {
        case AMQP_FIELD_KIND_BOOLEAN: self = .bool(value.boolean != 0)
        case AMQP_FIELD_KIND_I8: self = .int(Int64(value.i8))
        case AMQP_FIELD_KIND_U8: self = .int(Int64(value.u8))
        case AMQP_FIELD_KIND_I16: self = .int(Int64(value.i16))
        case AMQP_FIELD_KIND_U16: self = .int(Int64(value.u16))
        case AMQP_FIELD_KIND_I32: self = .int(Int64(value.i32))
        case AMQP_FIELD_KIND_U32: self = .int(Int64(value.u32))
        case AMQP_FIELD_KIND_I64: self = .int(value.i64)
        case AMQP_FIELD_KIND_U64: self = .int(Int64(clamping: value.u64))
        case AMQP_FIELD_KIND_F32: self = .double(Double(value.f32))
        case AMQP_FIELD_KIND_F64: self = .double(value.f64)
        case AMQP_FIELD_KIND_DECIMAL: self = .double(Self.double(value.decimal))
        case AMQP_FIELD_KIND_UTF8:
            let bytes = UnsafeRawBufferPointer(start: value.bytes.bytes, count: value.bytes.len)
            self = String(validating: bytes, as: UTF8.self).map { .text($0) } ?? .bytes([UInt8](bytes))
        case AMQP_FIELD_KIND_BYTES: self = .bytes([UInt8](value.bytes))
        case AMQP_FIELD_KIND_TIMESTAMP: self = .timestamp(Int64(clamping: value.u64))
        case AMQP_FIELD_KIND_ARRAY where depth < Self.maximumDepth:
            let fields = UnsafeBufferPointer(start: value.array.entries, count: Int(value.array.num_entries))
            self = .array(fields.map { AMQPValue($0, depth: depth + 1) })
        case AMQP_FIELD_KIND_TABLE where depth < Self.maximumDepth:
            self = .table(Self.entries(of: value.table, depth: depth))
        default: self = .void  // void itself, too deep, or a kind of a later protocol
        }
    }

    private static func double(_ decimal: amqp_decimal_t) -> Double {
        var divisor = 1.0
        for _ in 0..<decimal.decimals { divisor *= 10 }
        return Double(decimal.value) / divisor
    }
}

extension Frame {
    init(_ raw: amqp_frame_t, _ interner: inout StringInterner) {
        switch Int32(raw.frame_type) {
        case AMQP_FRAME_HEADER:
            let header = raw.payload.properties
            let properties = header.decoded?.assumingMemoryBound(to: amqp_basic_properties_t.self).pointee
            self = .header(
                bodySize: header.body_size,
                properties.map { AMQPProperties($0, &interner, receivedBytes: header.raw.len) } ?? AMQPProperties())
        case AMQP_FRAME_BODY: self = .body([UInt8](raw.payload.body_fragment))
        case AMQP_FRAME_HEARTBEAT: self = .heartbeat
        case AMQP_FRAME_METHOD: self = Frame(raw.payload.method, &interner)
        default: self = .other(0)
        }
    }

    private init(_ method: amqp_method_t, _ interner: inout StringInterner) {
        func decoded<T>(_: T.Type) -> T { method.decoded.assumingMemoryBound(to: T.self).pointee }
        switch method.id {
        case AMQP_BASIC_DELIVER_METHOD:
            let raw = decoded(amqp_basic_deliver_t.self)
            self = .deliver(
                Deliver(
                    consumerTag: interner.consumerTag.text(raw.consumer_tag), deliveryTag: raw.delivery_tag,
                    redelivered: raw.redelivered != 0, exchange: interner.exchange.text(raw.exchange),
                    routingKey: interner.routingKey.text(raw.routing_key)))
        case AMQP_BASIC_RETURN_METHOD:
            let raw = decoded(amqp_basic_return_t.self)
            self = .returned(
                Return(
                    code: Int(raw.reply_code), text: String(raw.reply_text), exchange: String(raw.exchange),
                    routingKey: String(raw.routing_key)))
        case AMQP_BASIC_ACK_METHOD:
            let raw = decoded(amqp_basic_ack_t.self)
            self = .ack(tag: raw.delivery_tag, multiple: raw.multiple != 0)
        case AMQP_BASIC_NACK_METHOD:
            let raw = decoded(amqp_basic_nack_t.self)
            self = .nack(tag: raw.delivery_tag, multiple: raw.multiple != 0)
        case AMQP_BASIC_CANCEL_METHOD:
            self = .cancel(consumerTag: String(decoded(amqp_basic_cancel_t.self).consumer_tag))
        case AMQP_CHANNEL_CLOSE_METHOD: self = .channelClose(Close(decoded(amqp_channel_close_t.self)))
        case AMQP_CONNECTION_CLOSE_METHOD: self = .connectionClose(Close(decoded(amqp_connection_close_t.self)))
        case AMQP_CONNECTION_BLOCKED_METHOD:
            self = .blocked(reason: String(decoded(amqp_connection_blocked_t.self).reason))
        case AMQP_CONNECTION_UNBLOCKED_METHOD: self = .unblocked
        case AMQP_CHANNEL_FLOW_METHOD: self = .flow(active: decoded(amqp_channel_flow_t.self).active != 0)
        default: self = .other(method.id)
        }
    }
}

extension Frame.Close {
    init(_ raw: amqp_channel_close_t) {
        self.init(
            code: Int(raw.reply_code), text: String(raw.reply_text),
            cause: UInt32(raw.class_id) << 16 | UInt32(raw.method_id))
    }

    init(_ raw: amqp_connection_close_t) {
        self.init(
            code: Int(raw.reply_code), text: String(raw.reply_text),
            cause: UInt32(raw.class_id) << 16 | UInt32(raw.method_id))
    }
}
