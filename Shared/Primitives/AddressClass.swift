internal import Foundation

/// The networks that an IP address belongs to, for requests to destinations that others choose (IANA IPv4 and IPv6
/// Special-Purpose Address Registries; RFC 6890).
package enum AddressClass: String, Hashable, Sendable {
    case global
    case loopback
    case privateNetwork = "private"
    /// 100.64.0.0/10, behind carrier-grade NAT (RFC 6598).
    case shared
    case uniqueLocal = "unique-local"
    /// Includes the metadata services of clouds.
    case linkLocal = "link-local"
    case multicast
    case unspecified
    /// An IPv6 address that leads to an IPv4 address: IPv4-mapped, NAT64, 6to4, Teredo and others.
    case embeddedIPv4 = "embedded IPv4"
    case reserved

    /// Classifies an address of 4 or 16 bytes in network order. Any other number of bytes is `reserved`.
    package init(_ bytes: [UInt8]) {
        switch bytes.count {
        case 4: self = .ofIPv4(bytes)
        case 16: self = .ofIPv6(bytes)
        default: self = .reserved
        }
    }

    /// Whether requests may go to such an address.
    ///
    /// - Parameter privateNetworks: whether networks of the operator are destinations too. Link-local addresses never
    ///   are.
    package func isAllowed(privateNetworks: Bool) -> Bool {
        switch self {
        case .global: true
        case .loopback, .privateNetwork, .shared, .uniqueLocal: privateNetworks
        case .linkLocal, .multicast, .unspecified, .embeddedIPv4, .reserved: false
        }
    }

    private static let ipv4: [(prefix: [UInt8], bits: Int, AddressClass)] = [
        ([0, 0, 0, 0], 8, .unspecified), ([10, 0, 0, 0], 8, .privateNetwork), ([100, 64, 0, 0], 10, .shared),
        ([127, 0, 0, 0], 8, .loopback), ([169, 254, 0, 0], 16, .linkLocal), ([172, 16, 0, 0], 12, .privateNetwork),
        ([192, 0, 0, 0], 24, .reserved), ([192, 0, 2, 0], 24, .reserved), ([192, 31, 196, 0], 24, .reserved),
        ([192, 52, 193, 0], 24, .reserved), ([192, 88, 99, 0], 24, .reserved),
        ([192, 168, 0, 0], 16, .privateNetwork), ([192, 175, 48, 0], 24, .reserved), ([198, 18, 0, 0], 15, .reserved),
        ([198, 51, 100, 0], 24, .reserved), ([203, 0, 113, 0], 24, .reserved), ([224, 0, 0, 0], 4, .multicast),
        ([240, 0, 0, 0], 4, .reserved),
    ]

    private static func ofIPv4(_ bytes: [UInt8]) -> AddressClass {
        ipv4.first { bytes.has(prefix: $0.prefix, bits: $0.bits) }?.2 ?? .global
    }

    private static let ipv6: [(prefix: [UInt8], bits: Int, AddressClass)] = [
        ([], 128, .unspecified), ([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], 128, .loopback),
        // IPv4-compatible and IPv4-mapped (RFC 4291), IPv4-translated (RFC 2765).
        ([], 96, .embeddedIPv4), ([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF], 96, .embeddedIPv4),
        ([0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF], 96, .embeddedIPv4),
        // NAT64 (RFC 6052, RFC 8215), Teredo (RFC 4380), 6to4 (RFC 3056).
        ([0, 0x64, 0xFF, 0x9B], 96, .embeddedIPv4), ([0, 0x64, 0xFF, 0x9B, 0, 1], 48, .embeddedIPv4),
        ([0x20, 0x01], 32, .embeddedIPv4), ([0x20, 0x02], 16, .embeddedIPv4),
        // Protocol assignments, documentation.
        ([0x20, 0x01], 23, .reserved), ([0x20, 0x01, 0x0D, 0xB8], 32, .reserved), ([0x3F, 0xFF], 20, .reserved),
        ([0xFC], 7, .uniqueLocal), ([0xFE, 0x80], 10, .linkLocal), ([0xFF], 8, .multicast),
        // Global unicast. The rest is not assigned.
        ([0x20], 3, .global),
    ]

    private static func ofIPv6(_ bytes: [UInt8]) -> AddressClass {
        ipv6.first { bytes.has(prefix: $0.prefix, bits: $0.bits) }?.2 ?? .reserved
    }

    /// The bytes of an address in the usual text form: four decimal numbers, or RFC 4291 without a zone. `nil` for any
    /// other text, such as a name.
    package static func bytes(of text: String) -> [UInt8]? {
        var four = in_addr()
        if inet_pton(AF_INET, text, &four) == 1 { return withUnsafeBytes(of: &four) { Array($0) } }
        var six = in6_addr()
        if inet_pton(AF_INET6, text, &six) == 1 { return withUnsafeBytes(of: &six) { Array($0) } }
        return nil
    }
}

extension [UInt8] {
    /// Whether the first `bits` bits are those of `prefix`, which zeros continue.
    fileprivate func has(prefix: [UInt8], bits: Int) -> Bool {
        (0..<((bits + 7) / 8)).allSatisfy { index in
            let rest = bits - index * 8
            let mask: UInt8 = rest >= 8 ? 0xFF : ~(0xFF >> UInt8(rest))
            return self[index] & mask == (index < prefix.count ? prefix[index] : 0) & mask
        }
    }
}
