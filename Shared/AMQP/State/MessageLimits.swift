/// Encoding limits, checked before anything is sent: librabbitmq would truncate the value, or fail within the message
/// and lose the connection.
extension AMQPMessage {
    struct EncodingFault: Hashable {
        let code: Int
        let text: String
    }

    /// Why the message cannot be encoded; nil when it can.
    var encodingFault: EncodingFault? {
        let short = [
            ("exchange", exchange), ("routing key", routingKey), ("content type", properties.contentType),
            ("content encoding", properties.contentEncoding), ("message id", properties.messageID),
            ("correlation id", properties.correlationID), ("type", properties.type), ("app id", properties.appID),
            ("expiration", properties.expiration), ("user id", properties.userID),
        ]
        for (name, text) in short {
            if let count = text?.utf8.count, count > 255 {
                return EncodingFault(code: 502, text: "SYNTAX_ERROR - \(name) is \(count) bytes; AMQP allows 255")
            }
        }
        guard !properties.headers.isEmpty else { return nil }
        var size = 0
        if let fault = AMQPValue.table(properties.headers).fault(depth: 0, size: &size) { return fault }
        guard size <= AMQPMessage.maximumHeaderSize else {
            return EncodingFault(code: 501, text: "FRAME_ERROR - headers of \(size) bytes do not fit in a frame")
        }
        return nil
    }

    /// The most header bytes that fit in a 128 KiB frame beside the other properties.
    static let maximumHeaderSize = 120 * 1024

    /// The size that counts in the window: the body and an estimate of the remainder.
    var approximateSize: Int { body.count + 256 }
}

extension AMQPValue {
    fileprivate func fault(depth: Int, size: inout Int) -> AMQPMessage.EncodingFault? {
        guard depth <= Self.maximumDepth else {
            return .init(code: 502, text: "SYNTAX_ERROR - headers nested deeper than \(Self.maximumDepth) levels")
        }
        size += 1
        switch self {
        case .void: break
        case .bool: size += 1
        case .int, .double, .timestamp: size += 8
        case .text(let text): size += 4 + text.utf8.count
        case .bytes(let bytes): size += 4 + bytes.count
        case .array(let values):
            size += 4
            for value in values {
                if let fault = value.fault(depth: depth + 1, size: &size) { return fault }
            }
        case .table(let table):
            size += 4
            for (key, value) in table {
                let count = key.utf8.count
                guard count <= 255 else {
                    return .init(code: 502, text: "SYNTAX_ERROR - a header name is \(count) bytes; AMQP allows 255")
                }
                size += 1 + count
                if let fault = value.fault(depth: depth + 1, size: &size) { return fault }
            }
        }
        return nil
    }
}
