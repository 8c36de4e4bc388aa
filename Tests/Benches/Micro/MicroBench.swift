import Foundation

/// Runs one small operation of the senders repeatedly. `deploy/local/bench micro` counts its instructions.
///
///     MicroBench CASE TIMES
///
/// `Senders/` links the senders' domains, because executables cannot be imported.
@main
struct MicroBench {
    static func main() {
        let arguments = CommandLine.arguments
        guard arguments.count == 3, let one = MicroCase(rawValue: arguments[1]), let times = Int(arguments[2]) else {
            let names = MicroCase.allCases.map(\.rawValue).joined(separator: ", ")
            FileHandle.standardError.write(Data("usage: MicroBench CASE TIMES, where a case is one of \(names)\n".utf8))
            exit(2)
        }
        one.run(times)
    }
}
