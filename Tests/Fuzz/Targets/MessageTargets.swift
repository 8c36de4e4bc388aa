import Providers
@testable import PushProtocol
import TestSupport

// Messages between services. Each accepted message must be equal after it is written and read again.

extension FuzzTarget {
    static let json = FuzzTarget("json") {
        try SeedFiles.golden("")
            + [#"[1e3,-0.0,9007199254740993,1.5e-7,"é😀\u0000",{"":[[]]},null]"#].map { Array($0.utf8) }
    } read: { input in
        _ = WireCoding.text(of: "name", in: input)
        let value = try WireCoding.decode(JSONValue.self, from: input)
        var writer = ByteWriter(capacity: input.count)
        writer.value(value)
        let written = try? WireCoding.decode(JSONValue.self, from: writer.bytes, maximumSize: .max)
        require(written == value, "a JSON value differs from its written form")
    }

    static let push = FuzzTarget("push") {
        let contents = RequestVector.all.map(\.content) + RejectedVector.all.map(\.content)
        return try SeedFiles.golden("push.") + contents.map { try Push.sample($0).wireBody() }
            + [Push.sample(Content(fcm: FCMOverride(message: FCMVectors.everything)), provider: .fcm).wireBody()]
    } read: { input in
        let push = try Push.decode(wireBody: input)
        try requireSame(push)
        for codec in [APNsCodec(topic: "com.example.app"), FCMCodec(project: "demo")] as [any ProviderCodec] {
            let rendering = codec.render(push, now: .sample)
            var batch = ProviderRequestBatch(path: codec.path)
            rendering.begin(in: &batch)
            for target in push.targets { try? rendering.add(target, to: &batch) }
        }
    }

    static let notification = FuzzTarget("notification") {
        try SeedFiles.golden("notification")
    } read: { input in
        if let revocation = try? NotificationRevocation.decode(wireBody: input) { return try requireSame(revocation) }
        try requireSame(try Notification.decode(wireBody: input))
    }

    static let outcomes = FuzzTarget("outcomes") {
        try SeedFiles.golden("outcomes")
    } read: { input in
        try requireSame(try Outcomes.decode(wireBody: input))
    }

    static let censusReport = FuzzTarget("census-report") {
        try SeedFiles.golden("census-report")
    } read: { input in
        let report = try CensusReport.decode(wireBody: input)
        report.settled.forEachKey { _ in }
        for keys in [report.retried, report.deadLettered] { keys.forEachKeyAndTime { _ = $1.date } }
        try requireSame(report)
    }

    static let channelMessages = FuzzTarget("channel-messages") {
        try SeedFiles.golden("channel-")
    } read: { input in
        if let request = try? ChannelRequest.decode(wireBody: input) { return try requireSame(request) }
        try requireSame(try ChannelAnswer.decode(wireBody: input))
    }

    static let deviceMessages = FuzzTarget("device-messages") {
        try SeedFiles.golden("device-")
    } read: { input in
        if let command = try? DeviceCommand.decode(wireBody: input) { return try requireSame(command) }
        try requireSame(try DeviceEvent.decode(wireBody: input))
    }
}

private func requireSame<Message: WireMessage & Equatable>(_ message: Message) throws {
    // A message near the limit may exceed it in the canonical form.
    guard let body = try? message.boundedWireBody() else { return }
    require((try? Message.decode(wireBody: body)) == message, "a message differs from its written form")
}
