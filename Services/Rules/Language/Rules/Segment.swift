import FoundationEssentials
package import PushProtocol

/// Users whom only the registry can find, and whom rules decide about one by one: `segment` under `to`.
///
/// The rule's event becomes a request to the registry. The registry answers with pages of users (``SegmentPage``).
package struct Segment: Hashable, Sendable {
    package var audience: Audience
    /// The event as a CloudEvent, which every page contains.
    package var event: JSONValue
    package var except: Set<UserID>
}

extension Rule {
    package struct SegmentSelector: Hashable, Sendable {
        /// Paths of user ids to exclude.
        package var except: [String]
    }

    /// Device filters, rate and hold-out of an audience or a segment.
    package struct AudienceOptions: Hashable, Sendable {
        package var devices: DeviceFilterTemplate?
        /// The maximum pushes a second.
        package var rate: Int?
        /// In percent.
        package var holdOut: Int?
    }

    /// A device filter with times relative to the event.
    package struct DeviceFilterTemplate: Hashable, Sendable {
        /// Without times.
        package var filter: DeviceFilter
        package var seenWithin: Duration?
        package var notSeenFor: Duration?

        func rendered(at moment: Timestamp) -> DeviceFilter {
            guard seenWithin != nil || notSeenFor != nil else { return filter }
            var filter = filter
            filter.lastSeen = DeviceFilter.TimeRange(
                after: seenWithin.map { moment - $0 }, before: notSeenFor.map { moment - $0 })
            return filter
        }
    }

    /// The rule's audience for one event; `nil` if the rule has none.
    ///
    /// - Parameters:
    ///   - now: the time that ages of devices are relative to.
    ///   - campaign: the campaign's id.
    func audience(_ scope: Scope, now: Timestamp, campaign: UUID) throws(PlacedProblem) -> Audience? {
        guard let members = try audienceMembers(scope) else { return nil }
        var devices = audienceOptions.devices?.rendered(at: now)
        // A segment's users are decided one by one, and `platforms` selects among their devices later.
        if segment == nil, let platforms = how.devices?.platforms {
            devices = devices ?? DeviceFilter()
            devices?.platform = platforms
        }
        return Audience(
            campaign: campaign, members: members, devices: devices, rate: segment == nil ? audienceOptions.rate : nil,
            holdOut: audienceOptions.holdOut, resolves: segment != nil)
    }

    /// The request for the users of the rule's segment; `nil` if the rule has none.
    func segment(_ event: DomainEvent, _ scope: Scope, _ audience: Audience?) throws(PlacedProblem) -> Segment? {
        guard let segment, let audience else { return nil }
        let cloudEvent = event.cloudEvent
        guard event.data.depth + SegmentPage.nesting <= CloudEvents.maximumDataDepth,
            let size = try? WireCoding.encode(cloudEvent).count, size <= SegmentPage.maximumEventSize
        else {
            let limit = "64 KiB and \(CloudEvents.maximumDataDepth - SegmentPage.nesting) levels"
            throw PlacedProblem(
                "to.segment", .refused(path: "the event", problem: "it exceeds \(limit), the limit with a segment"))
        }
        let excluded = try Selector(users: "", except: segment.except).excluded(scope, place: "to")
        return Segment(audience: audience, event: cloudEvent, except: excluded)
    }
}

extension RuleSet {
    /// Returns the draft to the users of a page of a segment.
    ///
    /// - Throws: if the page is unreadable, or the rule is gone or has no segment any more.
    package func draft(of event: DomainEvent, arrivedAt arrival: Timestamp) throws(RenderError) -> NotificationDraft {
        let page: SegmentPage
        do { page = try SegmentPage(event) } catch {
            throw RenderError(rule: "-", place: "data", problem: .refused(path: "data", problem: "\(error)"))
        }
        let found: NotificationDraft?
        do { found = try evaluate(page.event, by: page.rule, arrivedAt: arrival) } catch {
            throw RenderError(rule: page.rule, place: error.place, problem: error.problem)
        }
        guard var draft = found, let segment = draft.segment else {
            throw RenderError(
                rule: page.rule, place: "to.segment",
                problem: .refused(path: "rule", problem: "the rule file has no such rule with a segment any more"))
        }
        draft.segment = nil
        draft.isOfNobody = page.users.isEmpty
        draft.part = "/segment\(page.source)"
        draft.append(page.users.filter { !segment.except.contains($0) })
        return draft
    }
}
