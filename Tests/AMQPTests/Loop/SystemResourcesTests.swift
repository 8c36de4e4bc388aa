import Glibc
import Logging
import Testing

@testable import AMQP

/// Exhausted descriptors and threads.
@Suite(.timeLimit(.minutes(1))) struct SystemResourcesTests {
    private static let noDescriptors = SystemResources(eventfd: {
        errno = EMFILE
        return -1
    })
    private static let noThreads = SystemResources(startThread: { _, _ in EAGAIN })
    private let configuration: AMQPConfiguration

    init() throws { configuration = try AMQPConfiguration(url: "amqp://u:p@127.0.0.1:1", connectionName: "test") }

    private static let lacks = [
        (noDescriptors, "Too many open files"), (noThreads, "Resource temporarily unavailable"),
    ]

    @Test(arguments: 0..<2) func `a publisher without system resources throws and fails its callers`(lack: Int)
        async throws
    {
        let (resources, reason) = Self.lacks[lack]
        let publisher = AMQPPublisher(
            configuration: configuration, control: ConnectionControl(resources), logger: RealBroker.logger)
        let waiting = Task { try await publisher.publish([.to("queue", "a")]) }
        let error = await #expect(throws: AMQPError.self) { try await publisher.run() }
        #expect(error?.description.contains(reason) == true)
        await #expect(throws: AMQPError.self) { try await waiting.value }
    }

    @Test(arguments: 0..<2) func `a consumer without system resources throws and ends its subscriptions`(lack: Int)
        async throws
    {
        let (resources, reason) = Self.lacks[lack]
        let consumer = AMQPConsumer(
            configuration: configuration, control: ConnectionControl(resources), logger: RealBroker.logger)
        let subscription = consumer.subscribe(queue: "queue", prefetch: 1)
        let error = await #expect(throws: AMQPError.self) { try await consumer.run() }
        #expect(error?.description.contains(reason) == true)
        for await _ in subscription.deliveries {}
        await subscription.cancel()
    }

    @Test(arguments: 0..<2) func `an executor without system resources throws`(lack: Int) {
        let error = #expect(throws: AMQPError.self) { try ThreadExecutor("test", Self.lacks[lack].0) }
        #expect(error?.description.contains(Self.lacks[lack].1) == true)
    }
}
