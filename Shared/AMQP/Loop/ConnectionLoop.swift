internal import Logging

/// Connects, serves the connection, and reconnects, on the connection's own thread.
///
/// Each turn first reads the available frames, then sends, then polls socket and wake-up. Reading first detects a dead
/// peer before a publish can hang in librabbitmq (Shared/Messaging/BrokerFacts.md §2.4, §2.11).
struct ConnectionLoop<Role: ConnectionRole> {
    private static var framesPerTurn: Int { 4096 }
    /// How long reading pauses when ``ConnectionRole/canBatchReads`` is true. A settlement ends the pause early.
    /// Without new frames the loop polls as usual.
    private static var readPause: Duration { .milliseconds(2) }
    /// After a connection of this length the backoff starts over.
    private static var stableAfter: Duration { .seconds(10) }

    /// The most reconnects without a pause, between two stable connections.
    private static var immediateReconnectLimit: Int { 16 }

    let name: String
    private(set) var configuration: AMQPConfiguration
    let control: ConnectionControl
    let watchdog: SocketWatchdog
    let logger: Logger
    var role: Role

    private var backoff: ReconnectBackoff
    private var rotation = HostRotation()
    private var immediateReconnects = 0

    init(
        name: String, configuration: AMQPConfiguration, control: ConnectionControl, watchdog: SocketWatchdog,
        logger: Logger, role: Role
    ) {
        self.name = name
        self.configuration = configuration
        self.control = control
        self.watchdog = watchdog
        self.logger = logger
        self.role = role
        backoff = ReconnectBackoff(configuration)
    }

    mutating func run() {
        while !role.isFinished(now: .now) {
            let loss = connectAndServe()
            guard let loss else { break }
            control.disconnected(loss.error)
            let delay = role.connectionLost(loss.error, close: loss.close, now: .now)
            report(loss.error)
            switch delay {
            case .immediately where immediateReconnects < Self.immediateReconnectLimit: immediateReconnects += 1
            case .immediately, .afterBackoff: pause(pauseAfter(loss.error))
            }
        }
        control.state = .closed
        role.finish()
    }

    // MARK: - One connection

    private struct ConnectionLoss {
        var error: AMQPError
        var close: Frame.Close?
    }

    /// The reason for the end of the connection; nil when the role finished.
    private mutating func connectAndServe() -> ConnectionLoss? {
        _ = configuration.refresh()
        let host = rotation.next(of: configuration.hosts)
        var close: Frame.Close?
        do throws(AMQPError) {
            var connection = try Connection.open(host, configuration, name: name)
            let openedAt = ContinuousClock.now
            watchdog.watch(connection.descriptor)
            defer {
                watchdog.release()
                if .now - openedAt > Self.stableAfter {
                    rotation.wasStable()
                    backoff.reset()
                    immediateReconnects = 0
                }
            }
            do throws(AMQPError) {
                try role.connectionOpened(&connection, now: .now)
                control.state = .connected
                logger.info("Connected to the broker", metadata: ["peer": "\(connection.peer)"])
                try serve(&connection, &close)
                connection.close()
                return nil
            } catch {
                leave(&connection, error)
                throw error
            }
        } catch {
            rotation.failed()
            return ConnectionLoss(error: error, close: close)
        }
    }

    private mutating func serve(_ connection: inout Connection, _ close: inout Frame.Close?) throws(AMQPError) {
        var lastRead = ContinuousClock.now
        var wasPaused = false
        while true {
            control.wakeup.clear()
            var now = ContinuousClock.now
            watchdog.tick(now)
            var frameLimit = Self.framesPerTurn
            if role.isReadingPaused {
                frameLimit = now - lastRead >= configuration.heartbeat / 4 ? 1 : 0
                if !wasPaused { logger.notice("Too many unsettled bytes; reading paused") }
            }
            wasPaused = role.isReadingPaused
            if frameLimit > 0 { lastRead = now }
            var frameCount = 0
            while frameCount < frameLimit, frameCount == 0 || !role.isReadingPaused,
                let (channel, frame) = try connection.nextFrame()
            {
                frameCount += 1
                try dispatch(frame, channel, &connection, &close, now)
            }
            now = .now
            watchdog.tick(now)
            try role.processCommands(&connection, now: now)
            if role.isFinished(now: now) { return }
            if role.isReadingPaused {
                // Reading one frame at intervals keeps both heartbeats alive.
                control.wakeup.wait(timeout: sleep(from: now))
                continue
            }
            if frameCount == Self.framesPerTurn || connection.hasBufferedFrames { continue }
            if frameCount > 0, role.canBatchReads {
                control.wakeup.wait(timeout: min(Self.readPause, sleep(from: now)))
            } else {
                control.wakeup.wait(orReadable: connection.descriptor, timeout: sleep(from: now))
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
            // RabbitMQ does not read from publishers during an alarm, so unsent data does not indicate a dead peer.
            // Heartbeats do.
            connection.limitUnsent(nil)
            control.state = .blocked(reason: reason)
            logger.warning("Broker alarm; publishing paused", metadata: ["reason": "\(reason)"])
            role.setBlocked(true)
        case .unblocked:
            connection.limitUnsent(configuration.timeouts.unsent)
            control.state = .connected
            logger.info("Broker alarm cleared; publishing resumed")
            role.setBlocked(false)
        case .flow(let active): try connection.answerFlow(active: active)
        case .heartbeat, .other: return
        }
    }

    /// Closes the connection properly where the protocol state allows it; otherwise only drops it.
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
        // The credentials may have changed during the attempt.
        if configuration.refresh() { return .zero }
        // Tries every host before a pause.
        guard rotation.needsPause(hosts: configuration.hosts.count) else { return .zero }
        switch error.code {
        case .refused, .tls, .configuration: return backoff.nextAfterRefusal()
        case .unreachable, .connectionClosed, .channelClosed, .connectionLost, .timeout, .protocolViolation, .closed,
            .cancelled:
            return backoff.next()
        }
    }

    /// Waits before the next attempt. Ends early when the URL changed, so that a new password is tried immediately.
    private mutating func pause(_ duration: Duration) {
        let end = ContinuousClock.now + duration
        while true {
            control.wakeup.clear()
            let now = ContinuousClock.now
            role.processCommandsOffline(now: now)
            guard now < end, !role.isFinished(now: now), !configuration.refresh() else { return }
            control.wakeup.wait(timeout: min(end - now, .seconds(1)))
        }
    }

    private func report(_ error: AMQPError) {
        let metadata: Logger.Metadata = ["error": "\(error)", "tries": "\(rotation.failures)"]
        switch error.code {
        case .refused, .tls, .configuration:
            logger.error("Cannot connect to the broker; check URL, credentials and TLS settings", metadata: metadata)
        case .unreachable, .connectionClosed, .channelClosed, .connectionLost, .timeout, .protocolViolation, .closed,
            .cancelled:
            logger.warning("Broker connection failed; reconnecting", metadata: metadata)
        }
    }
}
