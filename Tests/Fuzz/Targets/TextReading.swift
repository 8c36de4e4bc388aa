@testable import AMQP
import Providers
@testable import PushProtocol
import TestSupport

/// Reads a text in every way in which a short text is read.
func readTexts(_ text: String) throws {
    if let date = RFC3339.date(from: text) {
        let moment = Timestamp(date)
        _ = moment.seconds
        let written = RFC3339.string(from: moment.date)
        require(RFC3339.date(from: written).map(Timestamp.init) == moment, "\(text) differs from \(written)")
    }
    _ = RetryAfter.delay(text, now: .sample)
    _ = FCMCondition(rawValue: text)
    _ = FCMTopic(rawValue: text)
    _ = AppID(routingKey: text)
    _ = AppVersion(rawValue: text)
    _ = UserID(rawValue: text)
    _ = ChannelID(rawValue: text)
    for provider in Provider.allCases { _ = DeviceToken(text, for: provider) }
    _ = try? AMQPAddress(parsing: text)
}
