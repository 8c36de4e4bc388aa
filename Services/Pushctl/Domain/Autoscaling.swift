import PushProtocol

/// The ScaledObjects of KEDA for the stages, as YAML. The queues are those of the topology, for any apps, so that a new
/// app needs no change.
///
/// Each object scales a Deployment with the name of its stage. KEDA's rabbitmq scaler reads the queues from the broker's
/// management API (https://keda.sh/docs/latest/scalers/rabbitmq-queue/).
struct Autoscaling {
    /// The processes of each stage.
    var processes: ClosedRange<Int>

    static let stages: [BusRole] = [.rules, .tokenRegistry, .apnsSender, .fcmSender, .webPushSender, .feedback]

    var yaml: String {
        let header = """
            # Written by `pushctl topology keda`. Edit the command's options, or patch the objects.

            """
        return header + Self.stages.map(object).joined(separator: "---\n")
    }

    private func object(_ stage: BusRole) -> String {
        let triggers = Trigger.all(of: stage).map(\.yaml).joined()
        return """
            apiVersion: keda.sh/v1alpha1
            kind: ScaledObject
            metadata:
              name: \(stage.rawValue)
              labels: { app.kubernetes.io/name: \(stage.rawValue), app.kubernetes.io/part-of: heliograph }
            spec:
              scaleTargetRef: { name: \(stage.rawValue) }
              minReplicaCount: \(processes.lowerBound)
              maxReplicaCount: \(processes.upperBound)
              pollingInterval: 10
              triggers:
            \(triggers)
            """
    }
}

/// A reason for more processes.
private struct Trigger {
    let metricType: String
    let mode: String
    let value: Int
    let queues: String

    /// The total length of the stage's queues for each process, and the expected consumption time of its queues by
    /// urgency. The first sees a backlog that nothing consumes yet, the second one that is late.
    static func all(of stage: BusRole) -> [Trigger] {
        let length = WorkQueue.pattern(of: stage).map {
            Trigger(metricType: "AverageValue", mode: "QueueLength", value: stage.messagesPerProcess, queues: $0)
        }
        let times = QueueUrgency.allCases.compactMap { urgency in
            WorkQueue.pattern(of: stage, urgency: urgency).map {
                Trigger(
                    metricType: "Value", mode: "ExpectedQueueConsumptionTime", value: urgency.seconds, queues: $0)
            }
        }
        return [length].compactMap { $0 } + times
    }

    /// Unacknowledged messages are left out: a process works on them, and its prefetch decides their number.
    var yaml: String {
        """
            - type: rabbitmq
              metricType: \(metricType)
              metadata:
                protocol: http
                mode: \(mode)
                value: "\(value)"
                queueName: '\(queues)'
                useRegex: "true"
                operation: sum
                pageSize: "500"
                excludeUnacknowledged: "true"
              authenticationRef: { name: broker-management }

        """
    }
}

extension BusRole {
    /// The messages that wait for each process before another one starts: the work of a few seconds
    /// (deploy/operations/capacity.md).
    fileprivate var messagesPerProcess: Int {
        switch self {
        case .apnsSender, .fcmSender, .webPushSender: 5000
        case .rules, .tokenRegistry, .feedback, .topology, .eventsAPI, .webhookSender, .deadLetters, .upstream: 1000
        }
    }
}

extension QueueUrgency {
    /// The expected consumption time from which on another process starts. Pushes are late after 5 s and 300 s.
    fileprivate var seconds: Int {
        switch self {
        case .interactive: 5
        case .bulk, .background: 60
        }
    }
}
