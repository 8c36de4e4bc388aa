/// The allowed imports, which ARCHITECTURE.md draws. Every module needs a row.
enum ImportRules {
    /// The modules of this package that each module may import.
    static let modules: [String: Set<String>] = [
        "PushProtocol": [],
        "AMQP": ["CRabbitMQ"],
        "Postgres": ["CPostgres"],
        "HTTP2": ["CNGHTTP2"],
        "HTTPSFetch": ["CCurl"],
        "Messaging": ["AMQP", "PushProtocol"],
        "DecisionLog": ["Postgres", "PushProtocol"],
        "PushSending": ["PushProtocol", "Messaging", "HTTP2"],
        "Providers": ["PushProtocol", "PushSending"],
        "TokenEncryption": ["PushProtocol"],
        "ServiceKit": ["PushProtocol", "AMQP", "Postgres", "Messaging"],
        "HTTPAuth": ["ServiceKit", "Postgres", "PushProtocol", "HTTPSFetch"],

        "TokenRegistry": [
            "ServiceKit", "HTTPAuth", "TokenEncryption", "Messaging", "AMQP", "Postgres", "PushProtocol",
        ],
        "Rules": [
            "ServiceKit", "HTTPAuth", "DecisionLog", "Providers", "Messaging", "AMQP", "Postgres", "PushProtocol",
        ],
        "APNsSender": ["ServiceKit", "PushSending", "Providers", "Messaging", "AMQP", "PushProtocol", "HTTP2"],
        "FCMSender": [
            "ServiceKit", "PushSending", "Providers", "Messaging", "AMQP", "PushProtocol", "HTTP2", "HTTPSFetch",
        ],
        "Feedback": ["ServiceKit", "Messaging", "AMQP", "Postgres", "PushProtocol"],
        "Pushctl": [
            "ServiceKit", "DecisionLog", "PushSending", "TokenEncryption", "Messaging", "AMQP", "Postgres",
            "PushProtocol", "HTTPSFetch",
        ],
        "ProviderSimulator": ["ServiceKit", "HTTP2", "PushProtocol"],
    ]

    static let services: Set<String> = [
        "TokenRegistry", "Rules", "APNsSender", "FCMSender", "Feedback", "Pushctl", "ProviderSimulator",
    ]

    /// The only importer of each C library.
    static let cModuleImporters = [
        "CRabbitMQ": "AMQP", "CPostgres": "Postgres", "CCurl": "HTTPSFetch", "CNGHTTP2": "HTTP2",
        "CAllocator": "ServiceKit",
    ]

    /// The external modules and their importers. Foundation and the standard library's modules are allowed everywhere.
    static let externalModules: [String: Set<String>] = [
        "Logging": [
            "AMQP", "Postgres", "HTTP2", "HTTPSFetch", "Messaging", "PushSending", "ServiceKit", "HTTPAuth",
            "TokenRegistry", "Rules", "APNsSender", "FCMSender", "Feedback", "Pushctl", "ProviderSimulator",
        ],
        "Metrics": [
            "Messaging", "PushSending", "ServiceKit", "HTTPAuth", "TokenRegistry", "Rules", "APNsSender", "FCMSender",
            "Feedback",
        ],
        "CoreMetrics": ["ServiceKit"],
        "ServiceLifecycle": [
            "AMQP", "Postgres", "Messaging", "PushSending", "ServiceKit", "HTTPAuth", "TokenRegistry", "Rules",
            "APNsSender", "FCMSender", "Feedback", "ProviderSimulator",
        ],
        "UnixSignals": ["ServiceKit"],
        "Configuration": ["ServiceKit"],
        "Hummingbird": ["ServiceKit", "HTTPAuth", "TokenRegistry", "Rules", "ProviderSimulator"],
        "HTTPTypes": ["ServiceKit", "HTTPAuth", "TokenRegistry", "Rules", "ProviderSimulator"],
        "JWTKit": ["PushSending", "HTTPAuth", "APNsSender", "FCMSender", "Pushctl", "ProviderSimulator"],
        "Crypto": ["PushProtocol", "Postgres", "HTTPAuth", "TokenEncryption", "Pushctl", "ProviderSimulator"],
        "CryptoExtras": ["ProviderSimulator"],
        "X509": ["APNsSender", "ProviderSimulator"],
        "SwiftASN1": ["APNsSender", "ProviderSimulator"],
        "Yams": ["ServiceKit", "Rules"],
        "Mustache": ["Rules"],
        "ArgumentParser": ["Pushctl"],
        "DequeModule": ["AMQP", "Postgres", "HTTP2", "PushSending"],
        "Atomics": ["AMQP", "HTTP2"],
        "NIOCore": [
            "HTTP2", "ServiceKit", "HTTPAuth", "APNsSender", "FCMSender", "TokenRegistry", "Rules", "ProviderSimulator",
        ],
        "NIOHTTPTypes": ["HTTPAuth"],
        "NIOPosix": ["HTTP2"],
        "NIOTLS": ["HTTP2"],
        "NIOSSL": ["HTTP2"],
    ]

    /// Allowed everywhere.
    static let platform: Set<String> = [
        "Foundation", "FoundationEssentials", "FoundationInternationalization", "Synchronization", "Dispatch", "Glibc",
        "Musl", "Darwin",
    ]

    /// The modules that a folder named `Domain` may import besides the platform. `Domain` is pure, so none of them does
    /// I/O there. From PushSending a sender's domain uses value types only: requests, responses and their consequences.
    static let allowedInDomain: Set<String> = [
        "PushProtocol", "PushSending", "Providers", "TokenEncryption", "Crypto", "CryptoExtras", "JWTKit", "Mustache",
        "Yams",
    ]
}
