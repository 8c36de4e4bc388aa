// swift-tools-version: 6.2
import PackageDescription

/// One set of compiler settings for every target: Swift 6 mode comes with the tools version,
/// warnings are errors, and an import is visible only where it is written.
let swiftSettings: [SwiftSetting] = [
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    // The stage runtime is generic over its handler, the gateway over its wire: specialised where they are used.
    .unsafeFlags(["-cross-module-optimization"], .when(configuration: .release)),
]

/// The sanitizer of this build, set by `deploy/local/test --sanitize` and `deploy/local/fuzz`.
let sanitizer = Context.environment["HELIOGRAPH_SANITIZER"]
let isFuzzing = sanitizer == "fuzzer"

/// For the services, and for what measures them: every symbol is looked up at the start. Later the tables need not be in
/// memory, nor writable. jemalloc is made for memory that one thread allocates and another frees (decision 56). A
/// sanitizer has its own allocator.
let linkerSettings: [LinkerSetting] =
    [.unsafeFlags(["-Xlinker", "-z", "-Xlinker", "now"], .when(platforms: [.linux], configuration: .release))]
    + (sanitizer == nil ? [.linkedLibrary("jemalloc", .when(platforms: [.linux]))] : [])

// MARK: - Third-party products, named once

let logging = Target.Dependency.product(name: "Logging", package: "swift-log")
let metrics = Target.Dependency.product(name: "Metrics", package: "swift-metrics")
let coreMetrics = Target.Dependency.product(name: "CoreMetrics", package: "swift-metrics")
let metricsTestKit = Target.Dependency.product(name: "MetricsTestKit", package: "swift-metrics")
let tracing = Target.Dependency.product(name: "Tracing", package: "swift-distributed-tracing")
let lifecycle = Target.Dependency.product(name: "ServiceLifecycle", package: "swift-service-lifecycle")
let lifecycleTestKit = Target.Dependency.product(name: "ServiceLifecycleTestKit", package: "swift-service-lifecycle")
let unixSignals = Target.Dependency.product(name: "UnixSignals", package: "swift-service-lifecycle")
let hummingbird = Target.Dependency.product(name: "Hummingbird", package: "hummingbird")
let hummingbirdTesting = Target.Dependency.product(name: "HummingbirdTesting", package: "hummingbird")
let httpTypes = Target.Dependency.product(name: "HTTPTypes", package: "swift-http-types")
let jwtKit = Target.Dependency.product(name: "JWTKit", package: "jwt-kit")
let crypto = Target.Dependency.product(name: "Crypto", package: "swift-crypto")
let cryptoExtras = Target.Dependency.product(name: "CryptoExtras", package: "swift-crypto")
let x509 = Target.Dependency.product(name: "X509", package: "swift-certificates")
let asn1 = Target.Dependency.product(name: "SwiftASN1", package: "swift-asn1")
let yams = Target.Dependency.product(name: "Yams", package: "Yams")
let argumentParser = Target.Dependency.product(name: "ArgumentParser", package: "swift-argument-parser")
let collections = Target.Dependency.product(name: "DequeModule", package: "swift-collections")
let atomics = Target.Dependency.product(name: "Atomics", package: "swift-atomics")
let nioCore = Target.Dependency.product(name: "NIOCore", package: "swift-nio")
let nioPosix = Target.Dependency.product(name: "NIOPosix", package: "swift-nio")
let nioEmbedded = Target.Dependency.product(name: "NIOEmbedded", package: "swift-nio")
let nioHTTPTypes = Target.Dependency.product(name: "NIOHTTPTypes", package: "swift-nio-extras")
let nioTLS = Target.Dependency.product(name: "NIOTLS", package: "swift-nio")
let nioSSL = Target.Dependency.product(name: "NIOSSL", package: "swift-nio-ssl")

// MARK: - Targets

/// A library under `Shared/`.
func shared(_ name: String, _ dependencies: [Target.Dependency], exclude: [String] = []) -> Target {
    .target(
        name: name, dependencies: dependencies, path: "Shared/\(name)", exclude: exclude, swiftSettings: swiftSettings)
}

/// A system library: a module map and a shim, nothing else.
func systemLibrary(_ name: String, pkgConfig: String, apt: String) -> Target {
    .systemLibrary(name: name, path: "Shared/\(name)", pkgConfig: pkgConfig, providers: [.apt([apt])])
}

/// A library under `Services/`, which belongs to one service.
func library(
    _ name: String, path: String, _ dependencies: [Target.Dependency], exclude: [String] = [], embedded: [String] = []
) -> Target {
    .target(
        name: name, dependencies: dependencies, path: "Services/\(path)", exclude: exclude,
        resources: embedded.map { .embedInCode($0) }, swiftSettings: swiftSettings)
}

/// An executable under `Services/`. What is not Swift in its folder is named in `data`, or in `embedded` when it is to be
/// compiled in. `folder` is below the service's folder.
func service(
    _ name: String, folder: String = "", _ dependencies: [Target.Dependency], data: [String] = [],
    embedded: [String] = []
) -> Target {
    let path = "Services/\(name)/\(folder)"
    let resources = embedded.map { Resource.embedInCode($0) }
    if isFuzzing {
        // Only tests may link executables. Here they are libraries, and their main functions have other names.
        let main = SwiftSetting.unsafeFlags(["-Xfrontend", "-entry-point-function-name", "-Xfrontend", "\(name)_main"])
        return .target(
            name: name, dependencies: dependencies, path: path, exclude: data, resources: resources,
            swiftSettings: swiftSettings + [main])
    }
    return .executableTarget(
        name: name, dependencies: dependencies, path: path, exclude: data, resources: resources,
        swiftSettings: swiftSettings, linkerSettings: linkerSettings)
}

/// A service's tables: a library in the folder `Store` of the service, which `pushctl` imports too.
func store(_ name: String, of service: String, _ dependencies: [Target.Dependency]) -> Target {
    .target(
        name: name, dependencies: dependencies, path: "Services/\(service)/Store", exclude: ["Storage/Migrations"],
        swiftSettings: swiftSettings)
}

func tests(_ name: String, _ dependencies: [Target.Dependency], data: [String] = []) -> Target {
    .testTarget(
        name: "\(name)Tests", dependencies: dependencies, path: "Tests/\(name)Tests", exclude: data,
        swiftSettings: swiftSettings)
}

/// An executable that only `deploy/local/bench` runs.
func bench(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .executableTarget(
        name: "\(name)Bench", dependencies: dependencies, path: "Tests/Benches/\(name)", swiftSettings: swiftSettings,
        linkerSettings: linkerSettings)
}

let package = Package(
    name: "heliograph",
    products: [
        .executable(name: "token-registry", targets: ["TokenRegistry"]),
        .executable(name: "rules", targets: ["Rules"]),
        .executable(name: "apns-sender", targets: ["APNsSender"]),
        .executable(name: "fcm-sender", targets: ["FCMSender"]),
        .executable(name: "webpush-sender", targets: ["WebPushSender"]),
        .executable(name: "feedback", targets: ["Feedback"]),
        .executable(name: "events-api", targets: ["EventsAPI"]),
        .executable(name: "webhook-sender", targets: ["WebhookSender"]),
        .executable(name: "console", targets: ["Console"]),
        .executable(name: "pushctl", targets: ["Pushctl"]),
        .executable(name: "provider-simulator", targets: ["ProviderSimulator"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", exact: "1.8.2"),
        .package(url: "https://github.com/apple/swift-asn1", exact: "1.7.4"),
        .package(url: "https://github.com/apple/swift-atomics", exact: "1.3.0"),
        .package(url: "https://github.com/apple/swift-certificates", exact: "1.21.1"),
        .package(url: "https://github.com/apple/swift-collections", exact: "1.6.0"),
        .package(url: "https://github.com/apple/swift-crypto", exact: "4.5.2"),
        .package(url: "https://github.com/apple/swift-distributed-tracing", exact: "1.7.3"),
        .package(url: "https://github.com/apple/swift-http-types", exact: "1.8.0"),
        .package(url: "https://github.com/apple/swift-log", exact: "1.16.2"),
        .package(url: "https://github.com/apple/swift-metrics", exact: "2.13.0"),
        .package(url: "https://github.com/apple/swift-nio", exact: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-extras", exact: "1.35.2"),
        .package(url: "https://github.com/apple/swift-nio-ssl", exact: "2.37.6"),
        .package(url: "https://github.com/hummingbird-project/hummingbird", exact: "2.28.1"),
        .package(url: "https://github.com/jpsim/Yams", exact: "6.2.2"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", exact: "2.13.0"),
        .package(url: "https://github.com/vapor/jwt-kit", exact: "5.7.1"),
    ],
    targets: [
        systemLibrary("CRabbitMQ", pkgConfig: "librabbitmq", apt: "librabbitmq-dev"),
        systemLibrary("CPostgres", pkgConfig: "libpq", apt: "libpq-dev"),
        systemLibrary("CCurl", pkgConfig: "libcurl", apt: "libcurl4-openssl-dev"),
        systemLibrary("CNGHTTP2", pkgConfig: "libnghttp2", apt: "libnghttp2-dev"),

        .target(name: "CAllocator", path: "Shared/CAllocator"),

        shared("Primitives", []),
        shared("PushProtocol", [crypto]),
        shared("Contracts", ["PushProtocol"]),
        shared("StrictYAML", [yams]),
        shared("AMQP", ["CRabbitMQ", "Primitives", logging, lifecycle, atomics, collections]),
        shared("Postgres", ["CPostgres", "Primitives", logging, lifecycle, collections, crypto]),
        shared("HTTP2", ["CNGHTTP2", "Primitives", logging, nioCore, nioPosix, nioTLS, nioSSL, collections, atomics]),
        shared("HTTP2Server", ["HTTP2", logging, nioCore, nioPosix, nioSSL, collections]),
        shared("HTTPSFetch", ["CCurl", logging]),
        shared("TraceExport", ["HTTPSFetch", "Primitives", "PushProtocol", logging, metrics, tracing, lifecycle]),
        shared(
            "Messaging", ["AMQP", "Primitives", "PushProtocol", logging, metrics, tracing, lifecycle],
            exclude: ["BrokerFacts.md"]),
        shared("DecisionLog", ["Primitives", "PushProtocol", "Postgres"]),
        shared("Providers", ["Primitives", "PushProtocol", crypto], exclude: ["ProviderFacts.md"]),
        shared(
            "PushSending",
            [
                "Providers", "Primitives", "PushProtocol", "Messaging", "HTTP2", logging, metrics, lifecycle, jwtKit,
                collections,
            ]),
        shared("TokenEncryption", ["PushProtocol", crypto]),
        shared(
            "ServiceKit",
            [
                "CAllocator", "Primitives", "PushProtocol", "StrictYAML", hummingbird, httpTypes,
                logging, metrics,
                coreMetrics,
                lifecycle, unixSignals, yams, nioCore,
            ]),
        shared(
            "ServiceConnections",
            [
                "ServiceKit", "AMQP", "Postgres", "Messaging", "PushProtocol", "HTTPSFetch", "TraceExport", logging,
                metrics, lifecycle,
            ]),
        shared(
            "SenderService",
            [
                "ServiceConnections", "ServiceKit", "PushSending", "Providers", "Messaging", "HTTP2", "PushProtocol",
                lifecycle,
            ]),
        shared(
            "HTTPAuth",
            [
                "PushProtocol", "Postgres", "HTTPSFetch", "ServiceConnections", "ServiceKit", hummingbird, httpTypes,
                jwtKit, crypto, logging,
                metrics, lifecycle, nioCore, nioHTTPTypes,
            ]),

        store(
            "RegistryStore", of: "TokenRegistry",
            [
                "ServiceConnections", "ServiceKit", "TokenEncryption", "Messaging", "Postgres", "Providers",
                "PushProtocol", logging, metrics,
            ]),
        service(
            "TokenRegistry", folder: "Service",
            [
                "RegistryStore", "ServiceConnections", "ServiceKit", "HTTPAuth", "TokenEncryption", "Messaging", "AMQP",
                "Postgres", "Providers", "PushProtocol", hummingbird, httpTypes, logging, metrics, lifecycle, nioCore,
            ], embedded: ["API/openapi.yaml"]),
        library(
            "RuleLanguage", path: "Rules/Language", ["Primitives", "PushProtocol", "StrictYAML", yams],
            exclude: ["README.md"]),
        library("RuleEngine", path: "Rules/Engine", ["RuleLanguage", "PushProtocol"]),
        library(
            "RuleDryRun", path: "Rules/DryRun",
            [
                "RuleEngine", "RuleLanguage", "Contracts", "Providers", "Primitives", "ServiceKit", "PushProtocol",
                argumentParser,
            ],
            embedded: ["rule-file.schema.json"]),
        service(
            "Rules",
            [
                "ServiceConnections", "ServiceKit", "HTTPAuth", "DecisionLog", "RuleDryRun", "RuleEngine",
                "RuleLanguage",
                "Messaging", "AMQP", "Postgres", "PushProtocol", hummingbird, httpTypes, logging, metrics, lifecycle,
                nioCore,
            ],
            data: [
                "Language", "Engine", "DryRun", "Storage/Migrations", "RuleSets", "README.md", "API/README.md",
            ],
            embedded: ["API/openapi.yaml"]),
        service(
            "APNsSender",
            [
                "SenderService", "ServiceConnections", "ServiceKit", "PushSending", "Providers", "PushProtocol",
                "HTTP2", "HTTPSFetch", "Messaging",
                jwtKit, x509,
                asn1, logging, metrics, lifecycle, nioCore,
            ], data: ["README.md"]),
        service(
            "FCMSender",
            [
                "SenderService", "ServiceConnections", "ServiceKit", "PushSending", "Providers", "AMQP", "PushProtocol",
                "HTTP2", "HTTPSFetch",
                logging, metrics, lifecycle, nioCore,
            ], data: ["README.md"]),
        service(
            "WebPushSender",
            [
                "SenderService", "ServiceConnections", "ServiceKit", "PushSending", "Providers", "Primitives",
                "PushProtocol", "HTTP2", logging, metrics, lifecycle, nioCore,
            ], data: ["README.md"]),
        store("FeedbackStore", of: "Feedback", ["ServiceConnections", "Postgres", "PushProtocol"]),
        service(
            "Feedback", folder: "Service",
            [
                "FeedbackStore", "ServiceConnections", "ServiceKit", "Messaging", "AMQP", "Postgres", "PushProtocol",
                logging, metrics, lifecycle,
            ]),
        service(
            "EventsAPI",
            [
                "ServiceConnections", "ServiceKit", "HTTPAuth", "DecisionLog", "Providers", "Messaging", "AMQP",
                "Postgres", "PushProtocol", crypto, hummingbird, httpTypes, logging, metrics, lifecycle, nioCore,
            ], data: ["README.md"], embedded: ["API/openapi.yaml"]),
        service(
            "WebhookSender",
            [
                "ServiceConnections", "ServiceKit", "Messaging", "HTTPSFetch", "Primitives", "PushProtocol", logging,
                metrics,
            ], data: ["README.md"]),
        service(
            "Console",
            [
                "ServiceConnections", "ServiceKit", "HTTPAuth", "HTTPSFetch", "PushProtocol", crypto, hummingbird,
                httpTypes, logging, nioCore,
            ], data: ["README.md", "Screens"], embedded: ["Pages/console.css"]),
        service(
            "Pushctl",
            [
                "RegistryStore", "FeedbackStore", "RuleDryRun", "RuleEngine", "RuleLanguage", "Contracts", "HTTPAuth",
                "ServiceConnections", "ServiceKit",
                "DecisionLog", "Providers", "PushSending", "TokenEncryption", "Messaging", "AMQP", "Postgres",
                "Primitives", "PushProtocol", "HTTP2", "HTTPSFetch", argumentParser, jwtKit, crypto, cryptoExtras,
                logging,
            ], data: ["README.md"]),
        service(
            "ProviderSimulator",
            [
                "ServiceKit", "HTTP2", "HTTP2Server", "PushProtocol", hummingbird, httpTypes, crypto, cryptoExtras,
                x509, asn1, collections,
                logging, lifecycle, nioCore,
            ], data: ["README.md"], embedded: ["API/Wall/wall.html", "API/Wall/wall.css", "API/Wall/wall.js"]),

        .target(
            name: "TestSupport",
            dependencies: [
                "AMQP", "HTTP2", "HTTP2Server", "HTTPSFetch", "HTTPAuth", "Postgres", "Messaging", "PushProtocol",
                "PushSending", "ServiceConnections", "ServiceKit",
                jwtKit, crypto, cryptoExtras, logging, lifecycle,
            ], path: "Tests/TestSupport", swiftSettings: swiftSettings),
        .executableTarget(
            name: "SampleService", dependencies: ["ServiceKit", logging, lifecycle], path: "Tests/SampleService",
            swiftSettings: swiftSettings),
        bench("PushEngine", ["HTTP2", logging]),
        bench(
            "Micro",
            [
                "AMQP", "Messaging", "PushProtocol", "Providers", "PushSending", "TokenEncryption", logging, lifecycle,
            ]),
        tests("Architecture", []),
        tests("Primitives", ["Primitives"]),
        tests("PushProtocol", ["PushProtocol", "TestSupport"], data: ["Golden"]),
        tests("Contracts", ["Contracts", "RegistryStore", "ServiceKit", "PushProtocol", "TestSupport"]),
        tests("AMQP", ["AMQP", "Primitives", "TestSupport", logging, lifecycle, nioCore, nioPosix, nioSSL]),
        tests("Postgres", ["Postgres", "Primitives", "TestSupport", logging]),
        tests(
            "HTTP2",
            [
                "HTTP2", "HTTP2Server", "Primitives", "TestSupport", logging, nioCore, nioPosix, nioEmbedded, nioSSL,
            ]),
        tests("HTTPSFetch", ["HTTPSFetch", "TestSupport"]),
        tests(
            "TraceExport",
            ["TraceExport", "HTTPSFetch", "Primitives", "PushProtocol", "TestSupport", logging, tracing]),
        tests(
            "Messaging",
            [
                "Messaging", "AMQP", "Primitives", "PushProtocol", "TraceExport", "TestSupport", logging, coreMetrics,
                metricsTestKit, tracing, lifecycle,
            ]),
        tests(
            "PushSending",
            [
                "PushSending", "Providers", "HTTP2", "Messaging", "PushProtocol", "TestSupport", logging, coreMetrics,
                metricsTestKit, jwtKit,
            ]),
        tests("TokenEncryption", ["TokenEncryption", "PushProtocol", "TestSupport"]),
        tests(
            "Providers", ["Providers", "Primitives", "PushProtocol", "TestSupport", crypto],
            data: ["WebPush/make_vectors.py"]),
        tests(
            "ServiceKit",
            [
                "ServiceConnections", "ServiceKit", "SampleService", "Messaging", "AMQP", "Postgres", "PushProtocol",
                "TestSupport", logging,
                metrics, coreMetrics, hummingbird, hummingbirdTesting, lifecycle, httpTypes,
            ]),
        tests(
            "ServiceConnections",
            [
                "ServiceConnections", "ServiceKit", "Messaging", "AMQP", "Postgres", "PushProtocol", "TestSupport",
                logging, metrics, coreMetrics, lifecycle,
            ]),
        tests(
            "HTTPAuth",
            [
                "HTTPAuth", "HTTPSFetch", "ServiceConnections", "ServiceKit", "PushProtocol", "TestSupport", jwtKit,
                logging, nioCore,
                nioEmbedded, nioHTTPTypes, httpTypes, hummingbird, hummingbirdTesting,
            ]),
        tests(
            "TokenRegistry",
            [
                "TokenRegistry", "RegistryStore", "ServiceConnections", "ServiceKit", "HTTPAuth", "TokenEncryption",
                "Contracts", "Messaging", "AMQP", "Postgres", "Providers", "PushProtocol", "TestSupport", hummingbird,
                hummingbirdTesting,
                httpTypes, jwtKit, cryptoExtras, yams,
                logging, lifecycle, nioCore,
            ]),
        tests("DecisionLog", ["DecisionLog", "Postgres", "PushProtocol", "TestSupport", logging]),
        tests(
            "Rules",
            [
                "RuleLanguage", "RuleEngine", "RuleDryRun", "Contracts", "Rules", "ServiceConnections", "ServiceKit",
                "HTTPAuth",
                "DecisionLog", "Messaging", "AMQP", "Postgres",
                "PushProtocol",
                "TestSupport", hummingbird, hummingbirdTesting, httpTypes, nioCore, logging, lifecycle,
                yams, argumentParser,
            ], data: ["Products/Golden"]),
        tests(
            "APNsSender",
            [
                "APNsSender", "ProviderSimulator", "ServiceConnections", "ServiceKit", "PushSending", "Providers",
                "Messaging", "HTTP2", "HTTP2Server",
                "HTTPSFetch",
                "PushProtocol", "TestSupport", jwtKit, logging, coreMetrics, metricsTestKit, lifecycle,
                nioPosix,
            ]),
        tests(
            "WebPushSender",
            [
                "WebPushSender", "ServiceConnections", "ServiceKit", "PushSending", "Providers", "Primitives",
                "Messaging", "HTTP2", "HTTP2Server", "PushProtocol", "TestSupport", crypto, logging, nioPosix,
            ]),
        tests(
            "FCMSender",
            [
                "FCMSender", "ProviderSimulator", "ServiceConnections", "ServiceKit", "PushSending", "Providers",
                "Messaging", "HTTP2", "HTTP2Server",
                "HTTPSFetch",
                "PushProtocol", "TestSupport", jwtKit, cryptoExtras, logging, coreMetrics, metricsTestKit,
                lifecycle, nioPosix,
            ]),
        tests(
            "Feedback",
            [
                "Feedback", "FeedbackStore", "ServiceConnections", "ServiceKit", "Messaging", "AMQP", "Postgres",
                "PushProtocol", "TestSupport", logging,
            ]),
        tests(
            "EventsAPI",
            [
                "EventsAPI", "ServiceConnections", "ServiceKit", "HTTPAuth", "DecisionLog", "Messaging", "AMQP",
                "Postgres", "PushProtocol", "TestSupport", crypto, hummingbird, hummingbirdTesting, httpTypes, nioCore,
                logging, lifecycle, yams,
            ]),
        tests(
            "Console",
            [
                "Console", "ServiceKit", "HTTPAuth", "HTTPSFetch", "PushProtocol", "TestSupport", hummingbird,
                hummingbirdTesting, httpTypes, nioCore, logging,
            ]),
        tests(
            "WebhookSender",
            [
                "WebhookSender", "ServiceConnections", "ServiceKit", "Messaging", "AMQP", "HTTPSFetch", "Primitives",
                "PushProtocol", "TestSupport", crypto, logging, lifecycle,
            ]),
        tests(
            "Pushctl",
            [
                "Pushctl", "Primitives", "RegistryStore", "FeedbackStore", "DecisionLog", "TokenEncryption", "HTTPAuth",
                "PushSending", "ServiceConnections",
                "ServiceKit", "AMQP",
                "Postgres", "PushProtocol", "HTTP2", "HTTP2Server", "HTTPSFetch", "TestSupport", jwtKit, cryptoExtras,
                logging, argumentParser,
            ]),
        tests(
            "ProviderSimulator",
            [
                "ProviderSimulator", "ServiceKit", "HTTP2", "HTTP2Server", "PushProtocol", "TestSupport", hummingbird,
                hummingbirdTesting, httpTypes, jwtKit, crypto, cryptoExtras, logging, lifecycle, nioCore, nioPosix,
            ]),
        tests(
            "Deploy",
            [
                "ServiceConnections", "ServiceKit", "PushProtocol", "TestSupport", "TokenRegistry", "Rules",
                "APNsSender", "FCMSender",
                "Feedback", "EventsAPI", "WebhookSender", "Pushctl", "ProviderSimulator", yams,
            ]),
    ]
)

// MARK: - Builds of a part

/// Removes the targets that `names` do not need, and their products.
@MainActor func keepOnly(_ names: [String]) {
    let targets = Dictionary(uniqueKeysWithValues: package.targets.map { ($0.name, $0) })
    var kept: Set<String> = []
    var open = names
    while let name = open.popLast() {
        guard let target = targets[name], kept.insert(name).inserted else { continue }
        for case .byNameItem(let dependency, _) in target.dependencies { open.append(dependency) }
    }
    package.products.removeAll { !($0 as! Product.Executable).targets.allSatisfy(kept.contains) }
    package.targets.removeAll { !kept.contains($0.name) }
}

// libFuzzer has the main function, so that other builds cannot link this target.
if isFuzzing {
    package.targets.append(
        .executableTarget(
            name: "Fuzz",
            dependencies: [
                "AMQP", "CRabbitMQ", "HTTP2", "HTTPAuth", "Messaging", "Postgres", "Providers", "Pushctl",
                "PushProtocol", "RegistryStore", "RuleEngine", "RuleLanguage", "Rules", "ServiceKit", "TestSupport",
                logging, nioCore, nioEmbedded, nioTLS,
            ], path: "Tests/Fuzz", swiftSettings: swiftSettings))
    // No product is an executable here.
    package.products = []
    keepOnly(["Fuzz"])
}

// Names of targets, separated by spaces. `swift build` has no option for several of them, and one test bundle contains the
// tests of the whole package.
if let names = Context.environment["HELIOGRAPH_TARGETS"] { keepOnly(names.split(separator: " ").map(String.init)) }
