package import NIOCore

/// Runs tasks on the thread of an event loop. Who sends with a client of that loop and awaits the answers there changes no
/// thread, and neither wakes the other.
///
/// What runs there must not block, and holds up the loop's connections for as long as it takes.
package final class EventLoopExecutor: TaskExecutor {
    package let eventLoop: any EventLoop

    package init(_ eventLoop: any EventLoop) { self.eventLoop = eventLoop }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        eventLoop.execute { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
