import PushProtocol

extension PushLanes {
    /// Probes a lane whose pause is over and that no push has probed: what nobody pushes to would stay shut for ever,
    /// and so would what only expired pushes waited for.
    ///
    /// Returns whether nothing came of it, so that somebody has to probe again. A lane that a storm of refused tokens
    /// has shut is left to pushes: only tokens that are taken end a storm.
    func probe(_ key: LaneKey) async -> Bool {
        guard let lane = self[key], lane.gate.takesProbe() else { return false }
        var report = LaneBreaker.Report.nothing
        defer { lane.gate.reportProbe(report) }
        beginSlowly(key)
        if let quota = lane.gateway.quota {
            guard case .granted = await quota.admit(1, .interactive, until: quota.probeDeadline) else { return true }
        }
        let push = Push.probe(of: key, provider: provider, now: clock.now())
        let copies = push.targets.map { Copy(of: 0, to: $0) }
        let answers = await lane.gateway.send(copies, of: [lane.gateway.render(push)], in: push.lane)
        report = PushRound(copies: copies, answers: answers).report
        return report == .nothing
    }
}
