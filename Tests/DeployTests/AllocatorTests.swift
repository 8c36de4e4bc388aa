import Testing
import TestSupport

@Suite(.timeLimit(.minutes(1))) struct AllocatorTests {
    /// jemalloc prints its settings and their sources at startup.
    @Test func `every executable runs with the jemalloc settings of decision 66`() async throws {
        for product in try Repository.products().sorted() {
            let process = try ChildProcess(
                product: product, ["--help"], environment: ["MALLOC_CONF": "confirm_conf:true"])
            #expect(await process.exit() == 0)
            let found = process.errors.split(separator: "\n").first { $0.contains("global variable malloc_conf") }
            #expect(
                found?.hasSuffix("\"narenas:2,dirty_decay_ms:500,tcache_max:4096\"") == true,
                "\(product): \(process.errors.prefix(400))")
        }
    }
}
