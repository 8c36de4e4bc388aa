import Foundation

// libFuzzer has the main function and calls these.

private let environment = ProcessInfo.processInfo.environment

/// The target of this process.
private let target: FuzzTarget = {
    let name = environment["HELIOGRAPH_FUZZ_TARGET"] ?? ""
    guard let target = FuzzTarget.all.first(where: { $0.name == name }) else {
        fatalError("HELIOGRAPH_FUZZ_TARGET is none of \(FuzzTarget.all.map(\.name))")
    }
    return target
}()

/// With `HELIOGRAPH_FUZZ_SEEDS=<folder>`, writes the seeds of all targets into a folder for each, and exits.
@_cdecl("LLVMFuzzerInitialize")
public func initializeFuzzer(_: UnsafeMutableRawPointer?, _: UnsafeMutableRawPointer?) -> CInt {
    guard let folder = environment["HELIOGRAPH_FUZZ_SEEDS"] else { return 0 }
    do {
        for target in FuzzTarget.all {
            let corpus = URL(filePath: folder).appending(path: target.name)
            try FileManager.default.createDirectory(at: corpus, withIntermediateDirectories: true)
            for (number, seed) in try target.seeds().enumerated() {
                try target.read(seed)
                try Data(seed).write(to: corpus.appending(path: "seed-\(number)"))
            }
        }
    } catch {
        fatalError("the seeds cannot be written: \(error)")
    }
    exit(0)
}

@_cdecl("LLVMFuzzerTestOneInput")
public func readOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let input = [UInt8](UnsafeBufferPointer(start: start, count: count))
    try? target.read(input)
    return 0
}
