import PushProtocol

extension APNsPushType {
    /// Checks a payload against the requirements of this push type (ProviderFacts.md §A.5, §A.7).
    func check(_ payload: JSONValue) throws(LocalRejection) {
        let aps = payload["aps"]
        switch self {
        case .alert:
            guard aps?["alert"] != nil || aps?["badge"] != nil || aps?["sound"] != nil else {
                throw LocalRejection("alert-without-alert-badge-or-sound")
            }
        case .background:
            guard aps?["content-available"] == 1 else { throw LocalRejection("background-without-content-available") }
            guard aps?["alert"] == nil, aps?["badge"] == nil, aps?["sound"] == nil else {
                throw LocalRejection("background-with-alert-badge-or-sound")
            }
        case .liveActivity: try checkLiveActivity(aps)
        case .widgets, .controls:
            guard aps?["content-changed"] == true else { throw LocalRejection("\(rawValue)-without-content-changed") }
        case .fileProvider:
            guard aps == nil, payload["container-identifier"]?.string != nil, payload["domain"]?.string != nil else {
                throw LocalRejection("fileprovider-not-container-identifier-and-domain")
            }
        case .mdm:
            guard payload["mdm"]?.string != nil, payload.object?.count == 1 else {
                throw LocalRejection("mdm-not-the-push-magic-alone")
            }
        case .voip, .complication, .location, .pushToTalk: break
        }
        if let members = aps?.object { try APSValidator.check(members, for: self) }
    }

    private func checkLiveActivity(_ aps: JSONValue?) throws(LocalRejection) {
        // The device uses it to discard outdated updates.
        guard aps?["timestamp"] != nil else { throw LocalRejection("live-activity-without-timestamp") }
        guard let event = aps?["event"]?.string.flatMap(LiveActivityEvent.init) else {
            throw LocalRejection("live-activity-without-event")
        }
        let required: [String] =
            switch event {
            case .start: ["alert", "attributes-type", "attributes", "content-state"]
            case .update: ["content-state"]
            // Apple recommends a final state, but does not require it.
            case .end: []
            }
        for name in required where aps?[name] == nil {
            throw LocalRejection("live-activity-\(event.rawValue)-without-\(name)")
        }
    }
}
