package import PushProtocol
package import RuleLanguage

extension Digest {
    /// When a bucket closes whose items count from `moment` on.
    ///
    /// - Parameter last: the previous digest of the bucket.
    package func closing(
        after moment: Timestamp, settings: PersonalSettings, zone: Zone, last: DigestTime.Occurrence?
    ) -> DigestTime.Occurrence {
        let zone = settings.zone ?? zone
        switch close {
        case .at(let usual, let days):
            // One millisecond earlier: an item that counts from the digest time on belongs to that digest.
            return DigestTime(time: settings.digestTime ?? usual, days: days).next(
                after: moment - .milliseconds(1), in: zone, last: last)
        case .after(let window):
            let at = moment + window
            return DigestTime.Occurrence(date: zone.local(at).date, at: at)
        }
    }
}
