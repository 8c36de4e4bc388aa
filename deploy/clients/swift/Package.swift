// swift-tools-version: 6.0
import PackageDescription

let package = Package(
    name: "HeliographClient",
    platforms: [.iOS(.v15), .macOS(.v12), .tvOS(.v15), .watchOS(.v8)],
    products: [.library(name: "HeliographClient", targets: ["HeliographClient"])],
    targets: [
        .target(name: "HeliographClient"),
        .executableTarget(name: "heliograph-example", dependencies: ["HeliographClient"]),
        .testTarget(name: "HeliographClientTests", dependencies: ["HeliographClient"]),
    ]
)
