/// The allowed imports, which ARCHITECTURE.md draws. Every module needs a row.
enum ImportRules {
    /// The modules of this package that each module may import.
    static let modules: [String: Set<String>] = [
        "Primitives": [],
        "PushProtocol": [],
        "Contracts": ["PushProtocol"],
        "StrictYAML": [],
        "AMQP": ["CRabbitMQ", "Primitives"],
        "Postgres": ["CPostgres", "Primitives"],
        "HTTP2": ["CNGHTTP2", "Primitives"],
        "HTTP2Server": ["HTTP2"],
        "HTTPSFetch": ["CCurl"],
        "TraceExport": ["HTTPSFetch", "Primitives", "PushProtocol"],
        "Messaging": ["AMQP", "Primitives", "PushProtocol"],
        "DecisionLog": ["Postgres", "Primitives", "PushProtocol"],
        "Providers": ["Primitives", "PushProtocol"],
        "PushSending": ["Providers", "Primitives", "PushProtocol", "Messaging", "HTTP2"],
        "TokenEncryption": ["PushProtocol"],
        "ServiceKit": ["Primitives", "PushProtocol", "StrictYAML"],
        "ServiceConnections": [
            "ServiceKit", "AMQP", "Postgres", "Messaging", "PushProtocol", "HTTPSFetch", "TraceExport",
        ],
        "SenderService": [
            "ServiceConnections", "ServiceKit", "PushSending", "Providers", "Messaging", "HTTP2", "PushProtocol",
        ],
        "HTTPAuth": ["ServiceConnections", "ServiceKit", "Postgres", "PushProtocol", "HTTPSFetch"],

        "RegistryStore": [
            "ServiceConnections", "ServiceKit", "TokenEncryption", "Messaging", "Postgres", "Providers", "PushProtocol",
        ],
        "TokenRegistry": [
            "RegistryStore", "ServiceConnections", "ServiceKit", "HTTPAuth", "TokenEncryption", "Messaging", "AMQP",
            "Postgres", "Providers", "PushProtocol",
        ],
        "RuleLanguage": ["Primitives", "PushProtocol", "StrictYAML"],
        "RuleEngine": ["RuleLanguage", "PushProtocol"],
        "RuleDryRun": [
            "RuleEngine", "RuleLanguage", "Contracts", "Providers", "Primitives", "ServiceKit", "PushProtocol",
        ],
        "Rules": [
            "RuleDryRun", "RuleEngine", "RuleLanguage", "ServiceConnections", "ServiceKit", "HTTPAuth", "DecisionLog",
            "Messaging", "AMQP", "Postgres", "Primitives", "PushProtocol",
        ],
        "APNsSender": [
            "SenderService", "ServiceConnections", "ServiceKit", "PushSending", "Providers", "PushProtocol", "HTTP2",
            "HTTPSFetch", "Messaging",
        ],
        "FCMSender": [
            "SenderService", "ServiceConnections", "ServiceKit", "PushSending", "Providers", "AMQP", "PushProtocol",
            "HTTP2", "HTTPSFetch",
        ],
        "WebPushSender": [
            "SenderService", "ServiceConnections", "ServiceKit", "PushSending", "Providers", "Primitives",
            "PushProtocol", "HTTP2",
        ],
        "FeedbackStore": ["ServiceConnections", "Postgres", "PushProtocol"],
        "Feedback": [
            "FeedbackStore", "ServiceConnections", "ServiceKit", "Messaging", "AMQP", "Postgres", "PushProtocol",
        ],
        "EventsAPI": [
            "ServiceConnections", "ServiceKit", "HTTPAuth", "DecisionLog", "Providers", "Messaging", "AMQP",
            "Postgres", "PushProtocol",
        ],
        "WebhookSender": [
            "ServiceConnections", "ServiceKit", "Messaging", "HTTPSFetch", "Primitives", "PushProtocol",
        ],
        "Console": ["ServiceConnections", "ServiceKit", "HTTPAuth", "HTTPSFetch", "PushProtocol"],
        "Pushctl": [
            "RegistryStore", "FeedbackStore", "RuleDryRun", "RuleEngine", "RuleLanguage", "Contracts", "HTTPAuth",
            "ServiceConnections", "ServiceKit", "DecisionLog", "Providers", "PushSending", "TokenEncryption",
            "Messaging", "AMQP", "Postgres", "Primitives", "PushProtocol", "HTTP2", "HTTPSFetch",
        ],
        "ProviderSimulator": ["ServiceKit", "HTTP2", "HTTP2Server", "PushProtocol"],
    ]

    static let services: Set<String> = [
        "TokenRegistry", "Rules", "APNsSender", "FCMSender", "WebPushSender", "Feedback", "EventsAPI", "WebhookSender",
        "Console", "Pushctl", "ProviderSimulator",
    ]

    /// The folders of a service's modules, if it has several.
    static let folders = [
        "RegistryStore": "Services/TokenRegistry/Store", "TokenRegistry": "Services/TokenRegistry/Service",
        "RuleLanguage": "Services/Rules/Language", "RuleEngine": "Services/Rules/Engine",
        "RuleDryRun": "Services/Rules/DryRun",
        "FeedbackStore": "Services/Feedback/Store", "Feedback": "Services/Feedback/Service",
    ]

    static func folder(of module: String) -> String {
        folders[module] ?? (services.contains(module) ? "Services/\(module)" : "Shared/\(module)")
    }

    /// The source files of a module: those of its folder, without the folders of other modules in it.
    static func files(of module: String) -> [String] {
        let own = folder(of: module)
        let others = modules.keys.map(folder(of:)).filter { $0.hasPrefix("\(own)/") }
        return Sources.files(below: own).filter { file in !others.contains { file.hasPrefix("\($0)/") } }
    }

    /// The only importer of each C library.
    static let cModuleImporters = [
        "CRabbitMQ": "AMQP", "CPostgres": "Postgres", "CCurl": "HTTPSFetch", "CNGHTTP2": "HTTP2",
        "CAllocator": "ServiceKit",
    ]

    /// The external modules and their importers. Foundation and the standard library's modules are allowed everywhere.
    static let externalModules: [String: Set<String>] = [
        "Logging": [
            "AMQP", "Postgres", "HTTP2", "HTTP2Server", "HTTPSFetch", "TraceExport", "Messaging", "PushSending",
            "ServiceConnections", "ServiceKit", "HTTPAuth", "RegistryStore", "TokenRegistry", "Rules", "APNsSender",
            "FCMSender", "WebPushSender", "Feedback", "EventsAPI", "WebhookSender", "Console", "Pushctl",
            "ProviderSimulator",
        ],
        "Metrics": [
            "TraceExport", "Messaging", "PushSending", "ServiceConnections", "ServiceKit", "HTTPAuth", "RegistryStore",
            "TokenRegistry", "Rules", "APNsSender", "FCMSender", "WebPushSender", "Feedback", "EventsAPI",
            "WebhookSender",
        ],
        "CoreMetrics": ["ServiceKit"],
        "Tracing": ["TraceExport", "Messaging"],
        "ServiceLifecycle": [
            "AMQP", "Postgres", "TraceExport", "Messaging", "PushSending", "SenderService", "ServiceConnections",
            "ServiceKit", "HTTPAuth", "TokenRegistry", "Rules", "APNsSender", "FCMSender", "WebPushSender", "Feedback",
            "EventsAPI", "ProviderSimulator",
        ],
        "UnixSignals": ["ServiceKit"],
        "Hummingbird": [
            "ServiceKit", "HTTPAuth", "TokenRegistry", "Rules", "EventsAPI", "Console", "ProviderSimulator",
        ],
        "HTTPTypes": ["ServiceKit", "HTTPAuth", "TokenRegistry", "Rules", "EventsAPI", "Console", "ProviderSimulator"],
        "JWTKit": ["PushSending", "HTTPAuth", "APNsSender", "FCMSender", "Pushctl", "ProviderSimulator"],
        "Crypto": [
            "PushProtocol", "Postgres", "HTTPAuth", "Providers", "TokenEncryption", "EventsAPI", "Console", "Pushctl",
            "ProviderSimulator",
        ],
        "CryptoExtras": ["Pushctl", "ProviderSimulator"],
        "X509": ["APNsSender", "ProviderSimulator"],
        "SwiftASN1": ["APNsSender", "ProviderSimulator"],
        "Yams": ["ServiceKit", "StrictYAML", "RuleLanguage"],
        "ArgumentParser": ["Pushctl", "RuleDryRun"],
        "DequeModule": ["AMQP", "Postgres", "HTTP2", "PushSending", "ProviderSimulator"],
        "Atomics": ["AMQP", "HTTP2"],
        "NIOCore": [
            "HTTP2", "HTTP2Server", "ServiceKit", "HTTPAuth", "APNsSender", "FCMSender", "WebPushSender",
            "TokenRegistry", "Rules",
            "Console", "ProviderSimulator",
        ],
        "NIOHTTPTypes": ["HTTPAuth"],
        "NIOPosix": ["HTTP2", "HTTP2Server"],
        "NIOTLS": ["HTTP2", "HTTP2Server"],
        "NIOSSL": ["HTTP2", "HTTP2Server"],
    ]

    /// Allowed everywhere.
    static let platform: Set<String> = [
        "Foundation", "FoundationEssentials", "FoundationInternationalization", "Synchronization", "Dispatch", "Glibc",
        "Musl", "Darwin",
    ]

    /// Modules without I/O. Their imports are pure too.
    static let pureModules: Set<String> = [
        "Primitives", "PushProtocol", "Contracts", "StrictYAML", "Providers", "TokenEncryption", "RuleLanguage",
        "RuleEngine",
    ]

    /// The external modules without I/O.
    static let pureExternalModules: Set<String> = ["Crypto", "CryptoExtras", "DequeModule", "JWTKit", "Yams"]

    /// The platform's modules that do I/O.
    static let platformIO: Set<String> = ["Dispatch", "Glibc", "Musl", "Darwin"]
}
