/// The APNs headers of a request, extracted in one pass without validation.
struct APNsPush: Sendable {
    let request: ProviderRequest
    /// The path after `/3/device/`; `nil` for any other path.
    let token: Substring?
    private(set) var authorization: String?
    private(set) var id: String?
    private(set) var topic: String?
    private(set) var pushType: String?
    private(set) var priority: String?
    private(set) var expiration: String?
    private(set) var collapseID: String?
    /// The first header that occurs twice.
    private(set) var repeated: String?

    static let pathPrefix = "/3/device/"

    init(_ request: ProviderRequest) {
        self.request = request
        token = request.path.hasPrefix(Self.pathPrefix) ? request.path.dropFirst(Self.pathPrefix.count) : nil
        for header in request.headers {
            switch header.name {
            case "authorization": take(header, into: \.authorization)
            case "apns-id": take(header, into: \.id)
            case "apns-topic": take(header, into: \.topic)
            case "apns-push-type": take(header, into: \.pushType)
            case "apns-priority": take(header, into: \.priority)
            case "apns-expiration": take(header, into: \.expiration)
            case "apns-collapse-id": take(header, into: \.collapseID)
            // APNs ignores unknown headers.
            default: continue
            }
        }
    }

    private mutating func take(_ header: Header, into field: WritableKeyPath<APNsPush, String?>) {
        if self[keyPath: field] != nil { repeated = repeated ?? header.name }
        self[keyPath: field] = header.value
    }
}
