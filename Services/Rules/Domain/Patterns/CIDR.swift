/// A block of IPv4 or IPv6 addresses, such as `10.0.0.0/24` or `2001:db8::/32`.
struct CIDR: Hashable, Sendable {
    private let network: [UInt8]
    private let prefixLength: Int

    /// Parses an address, a slash and a prefix length. Returns `nil` for any other text.
    init?(_ text: String) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, let network = CIDR.address(parts[0]), let length = Int(parts[1]),
            (0...network.count * 8).contains(length)
        else { return nil }
        self.network = network
        prefixLength = length
    }

    /// Whether `text` is an address in this block.
    func contains(_ text: String) -> Bool {
        guard let address = CIDR.address(text[...]), address.count == network.count else { return false }
        let (whole, bits) = prefixLength.quotientAndRemainder(dividingBy: 8)
        guard address.prefix(whole) == network.prefix(whole) else { return false }
        guard bits > 0 else { return true }
        let mask = UInt8.max << (8 - bits)
        return address[whole] & mask == network[whole] & mask
    }

    private static func address(_ text: Substring) -> [UInt8]? {
        text.contains(":") ? ipv6(text) : ipv4(text)
    }

    private static func ipv4(_ text: Substring) -> [UInt8]? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 4 else { return nil }
        let bytes = parts.compactMap { part in
            part.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } ? UInt8(part) : nil
        }
        return bytes.count == 4 ? bytes : nil
    }

    private static func ipv6(_ text: Substring) -> [UInt8]? {
        func groups(_ half: Substring) -> [UInt8]? {
            guard !half.isEmpty else { return [] }
            var bytes: [UInt8] = []
            for group in half.split(separator: ":", omittingEmptySubsequences: false) {
                guard (1...4).contains(group.utf8.count), let value = UInt16(group, radix: 16) else { return nil }
                bytes += [UInt8(value >> 8), UInt8(value & 0xff)]
            }
            return bytes
        }
        guard let gap = text.firstRange(of: "::") else {
            let bytes = groups(text)
            return bytes?.count == 16 ? bytes : nil
        }
        guard let head = groups(text[..<gap.lowerBound]), let tail = groups(text[gap.upperBound...]),
            head.count + tail.count <= 14
        else { return nil }
        return head + [UInt8](repeating: 0, count: 16 - head.count - tail.count) + tail
    }
}
