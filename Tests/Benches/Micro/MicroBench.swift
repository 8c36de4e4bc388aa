import Foundation

/// Does one small thing of the senders' work, as often as it is told: what `deploy/local/bench micro` counts the
/// instructions of.
///
///     MicroBench CASE TIMES
///
/// `Senders/` are the domains of the two senders: executables have no other way to lend them.
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
