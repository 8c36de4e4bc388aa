import PushProtocol
import PushSending

/// The headers of a push, as its requests carry them.
struct APNsLetter: Sendable {
    let pushType: APNsPushType
    let topic: String
    let text: RequestBatch.Letter
    /// The value of `apns-expiration` in each request; absent, they have none.
    let expiration: Int64?
    /// Whether each request collapses by its notification's id.
    let collapsesByNotification: Bool

    init(_ headers: APNsHeaders) {
        pushType = headers.pushType
        topic = headers.topic
        text = headers.letter
        expiration = headers.expiration
        collapsesByNotification = headers.collapsesByNotification
    }

    /// `letter`, for a push that expires at another time.
    private init(_ letter: APNsLetter, expiration: Int64?) {
        pushType = letter.pushType
        topic = letter.topic
        text = letter.text
        self.expiration = expiration
        collapsesByNotification = letter.collapsesByNotification
    }

    /// The letters of one app's pushes that give no header of their own, written once: most pushes are such.
    struct Plain: Sendable {
        private var letters: [APNsLetter] = []

        init(bundle: String) {
            for isSilent in [false, true] {
                for expiresAt in [nil, Timestamp(milliseconds: 0)] {
                    // What gives no header has none that could be refused.
                    guard
                        let headers = try? APNsHeaders(
                            for: Content(silent: isSilent), bundle: bundle, expiresAt: expiresAt)
                    else { return }
                    letters.append(APNsLetter(headers))
                }
            }
        }

        /// The letter of a push; `nil` when it gives headers of its own.
        func letter(for content: Content, expiresAt: Timestamp?) -> APNsLetter? {
            guard content.apns?.headers == nil, content.collapseKey == nil else { return nil }
            return letter(silent: content.silent, expiresAt: expiresAt)
        }

        /// The letter of a push without headers and collapse key of its own.
        func letter(silent: Bool, expiresAt: Timestamp?) -> APNsLetter? {
            guard letters.count == 4 else { return nil }
            let place = (silent ? 2 : 0) + (expiresAt == nil ? 0 : 1)
            return APNsLetter(letters[place], expiration: expiresAt?.seconds)
        }
    }
}
