internal import Logging

/// One connection after another, for as long as the process wants one. Runs on the connection's own thread.
///
/// The order within a turn is the defence against librabbitmq's publish hang: first drain the frames at hand, which
/// notices a silent peer, then send, then sleep on {socket, wake-up} (§2.11 of the messaging reference).
struct ConnectionLoop<Role: ConnectionRole> {
    /// Frames taken before the role gets its turn, when they keep coming.
    private static var framesPerTurn: Int { 4096 }
    /// How long frames may stay unread after others were read, while the role has enough to do. An order ends it, so mostly it
    /// is shorter; and who has much in hand and hears nothing sleeps as everybody.
    private static var rest: Duration { .milliseconds(2) }
    /// A connection that lived this long was a good one: the next back-off starts small again.
    private static var steadyAfter: Duration { .seconds(10) }

    /// Reconnects without a pause, between two steady connections.
    private static var reconnectsAtOnce: Int { 16 }

    let name: String
    private(set) var configuration: AMQPConfiguration
    let link: Link
    let stallGuard: StallGuard
    let logger: Logger
    var role: Role

    private var backoff: Backoff
    /// Counts tries; its remainder picks the host.
    private var tries = 0
    private var failuresInRow = 0
    private var reconnectedAtOnce = 0

    init(
        name: String, configuration: AMQPConfiguration, link: Link, stallGuard: StallGuard, logger: Logger, role: Role
    ) {
        self.name = name
        self.configuration = configuration
        self.link = link
        self.stallGuard = stallGuard
        self.logger = logger
        self.role = role
        backoff = Backoff(configuration.backoff)
    }

    mutating func run() {
        while !role.isFinished(now: .now) {
            let loss = connectAndServe()
            guard let loss else { break }
            link.disconnected(loss.error)
            let recovery = role.lost(loss.error, close: loss.close, now: .now)
            report(loss.error)
            switch recovery {
            case .atOnce where reconnectedAtOnce < Self.reconnectsAtOnce: reconnectedAtOnce += 1
            case .atOnce, .backedOff: pause(pauseAfter(loss.error))
            }
        }
        link.state = .closed
        role.finish()
    }

    // MARK: - One connection

    private struct Loss {
        var error: AMQPError
        var close: Frame.Close?
    }

    /// Why the connection ended; nil when the role finished.
    private mutating func connectAndServe() -> Loss? {
        _ = configuration.refresh()
        let host = configuration.hosts[tries % configuration.hosts.count]
        tries += 1
        var close: Frame.Close?
        do throws(AMQPError) {
            var connection = try Connection.open(host, configuration, name: name)
            let openedAt = ContinuousClock.now
            stallGuard.watch(connection.descriptor)
            defer {
                stallGuard.release()
                failuresInRow = 0
                if .now - openedAt > Self.steadyAfter {
                    backoff.reset()
                    reconnectedAtOnce = 0
                }
            }
            do throws(AMQPError) {
                try role.opened(&connection, now: .now)
                link.state = .connected
                logger.info("connected to the broker", metadata: ["peer": "\(connection.peer)"])
                try serve(&connection, &close)
                connection.close()
                return nil
            } catch {
                leave(&connection, error)
                throw error
            }
        } catch {
            failuresInRow += 1
            return Loss(error: error, close: close)
        }
    }

    private mutating func serve(_ connection: inout Connection, _ close: inout Frame.Close?) throws(AMQPError) {
        var lastSip = ContinuousClock.now
        var wasFull = false
        while true {
            link.wakeup.clear()
            var now = ContinuousClock.now
            stallGuard.tick(now)
            var most = Self.framesPerTurn
            if role.isFull {
                most = now - lastSip >= configuration.heartbeat / 4 ? 1 : 0
                if !wasFull { logger.notice("Reading pauses: too many bytes are unsettled") }
            }
            wasFull = role.isFull
            if most > 0 { lastSip = now }
            var taken = 0
            while taken < most, taken == 0 || !role.isFull, let (channel, frame) = try connection.nextFrame() {
                taken += 1
                try dispatch(frame, channel, &connection, &close, now)
            }
            now = .now
            stallGuard.tick(now)
            try role.work(&connection, now: now)
            if role.isFinished(now: now) { return }
            if role.isFull {
                // One frame now and then keeps the heartbeats of both sides alive.
                link.wakeup.wait(timeout: sleep(from: now))
                continue
            }
            if taken == Self.framesPerTurn || connection.hasBufferedFrames { continue }
            if taken > 0, role.hasEnough {
                link.wakeup.wait(timeout: min(Self.rest, sleep(from: now)))
            } else {
                link.wakeup.wait(orReadable: connection.descriptor, timeout: sleep(from: now))
            }
        }
    }

    private func sleep(from now: ContinuousClock.Instant) -> Duration {
        let longest = configuration.heartbeat / 4
        guard let deadline = role.deadline else { return longest }
        return min(longest, max(.zero, deadline - now))
    }

    private mutating func dispatch(
        _ frame: Frame, _ channel: UInt16, _ connection: inout Connection, _ close: inout Frame.Close?,
        _ now: ContinuousClock.Instant
    ) throws(AMQPError) {
        switch frame {
        case .deliver, .returned, .header, .body, .ack, .nack, .cancel:
            guard channel == Connection.channel else { return }
            try role.receive(frame, now: now)
        case .channelClose(let reason):
            close = reason
            throw AMQPError(
                .channelClosed(replyCode: reason.code), operation: "use a channel to \(connection.peer)",
                detail: reason.text)
        case .connectionClose(let reason):
            close = reason
            throw AMQPError(
                .connectionClosed(replyCode: reason.code), operation: "stay connected to \(connection.peer)",
                detail: reason.text)
        case .blocked(let reason):
            // The broker reads nothing during an alarm, so unsent data is no sign of a dead peer. Heartbeats still are.
            connection.limitUnsent(nil)
            link.state = .blocked(reason: reason)
            logger.warning("the broker takes no messages for now", metadata: ["reason": "\(reason)"])
            role.blocked(true)
        case .unblocked:
            connection.limitUnsent(configuration.timeouts.unsent)
            link.state = .connected
            logger.info("the broker takes messages again")
            role.blocked(false)
        case .flow(let active): try connection.answerFlow(active: active)
        case .heartbeat, .other: return
        }
    }

    /// Says goodbye as far as the peer still listens; a broken or desynchronised connection is only dropped.
    private func leave(_ connection: inout Connection, _ error: AMQPError) {
        switch error.code {
        case .channelClosed: connection.close()
        case .connectionClosed: connection.answerClose()
        case .configuration, .unreachable, .tls, .refused, .connectionLost, .timeout, .protocolViolation, .closed,
            .cancelled:
            return
        }
    }

    // MARK: - Between connections

    private mutating func pauseAfter(_ error: AMQPError) -> Duration {
        // The login may have been changed while it was tried.
        if configuration.refresh() { return .zero }
        // Every host gets its try before anyone waits.
        guard failuresInRow % configuration.hosts.count == 0 else { return .zero }
        switch error.code {
        case .refused, .tls, .configuration: return backoff.nextLong()
        case .unreachable, .connectionClosed, .channelClosed, .connectionLost, .timeout, .protocolViolation, .closed,
            .cancelled:
            return backoff.next()
        }
    }

    /// Ends early when the URL has changed: a new password is tried at once.
    private mutating func pause(_ duration: Duration) {
        let end = ContinuousClock.now + duration
        while true {
            link.wakeup.clear()
            let now = ContinuousClock.now
            role.workDisconnected(now: now)
            guard now < end, !role.isFinished(now: now), !configuration.refresh() else { return }
            link.wakeup.wait(timeout: min(end - now, .seconds(1)))
        }
    }

    private func report(_ error: AMQPError) {
        let metadata: Logger.Metadata = ["error": "\(error)", "tries": "\(failuresInRow)"]
        switch error.code {
        case .refused, .tls, .configuration: logger.error("the broker cannot be used", metadata: metadata)
        case .unreachable, .connectionClosed, .channelClosed, .connectionLost, .timeout, .protocolViolation, .closed,
            .cancelled:
            logger.warning("no connection to the broker", metadata: metadata)
        }
    }
}
