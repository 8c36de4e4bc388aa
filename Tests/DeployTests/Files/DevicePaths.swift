import Testing

/// The paths of the HTTP APIs, from their descriptions.
enum DevicePaths {
    /// The services with an API for phones, and their folders.
    static let folders = [("token-registry", "TokenRegistry/Service"), ("rules", "Rules")]

    /// The paths of an API, operator paths included.
    static func described(_ folder: String) throws -> [String] {
        let paths = try Manifest.one("Services/\(folder)/API/openapi.yaml")["paths"]?.members.map(\.name) ?? []
        let ours = paths.filter { $0.hasPrefix("/v1/") || $0.hasPrefix("/api/") }
        #expect(ours.count > 5)
        return ours
    }
}
