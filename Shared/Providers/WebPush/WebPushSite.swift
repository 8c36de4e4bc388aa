package import Primitives

/// The page of an app that opens from a notification without a link of its own.
package struct WebPushSite: Hashable, Sendable {
    package let home: String
    /// `https://host[:port]`, to which links that begin with `/` belong.
    private let origin: String

    package init(_ home: String) throws(OutboundURL.Refusal) {
        _ = try OutboundURL(home)
        self.home = home
        let scheme = home.prefix { $0 != "/" }
        let authority = home.dropFirst(scheme.count + 2).prefix { $0 != "/" && $0 != "?" }
        origin = "\(scheme)//\(authority)"
    }

    /// For previews of an app whose home page is not known.
    package static let placeholder = WebPushSite(
        home: "https://home-page.example/", origin: "https://home-page.example")

    private init(home: String, origin: String) { (self.home, self.origin) = (home, origin) }

    /// The URL that opens for a deep link. A link of another scheme leads into a native app, and opens the home page.
    func url(for deepLink: String?) -> String {
        guard let deepLink else { return home }
        if deepLink.hasPrefix("https://") || deepLink.hasPrefix("http://") { return deepLink }
        return deepLink.hasPrefix("/") ? origin + deepLink : home
    }
}
