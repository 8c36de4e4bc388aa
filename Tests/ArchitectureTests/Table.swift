/// Who may import what: design.md §4 as a table. A room that is not here may not exist.
enum Table {
    /// The rooms of the house that each room may import.
    static let rooms: [String: Set<String>] = [
        "PushProtocol": [],
        "AMQP": ["CRabbitMQ"],
        "Postgres": ["CPostgres"],
        "HTTP2": ["CNGHTTP2"],
        "HTTPSFetch": ["CCurl"],
        "Messaging": ["AMQP", "PushProtocol"],
        "DecisionLog": ["Postgres", "PushProtocol"],
        "PushSending": ["PushProtocol", "Messaging", "HTTP2"],
        "PushWires": ["PushProtocol", "PushSending"],
        "TokenEncryption": ["PushProtocol"],
        "ServiceKit": ["PushProtocol", "AMQP", "Postgres", "Messaging"],
        "HTTPGate": ["ServiceKit", "Postgres", "PushProtocol", "HTTPSFetch"],

        "TokenRegistry": [
            "ServiceKit", "HTTPGate", "TokenEncryption", "Messaging", "AMQP", "Postgres", "PushProtocol",
        ],
        "Rules": [
            "ServiceKit", "HTTPGate", "DecisionLog", "PushWires", "Messaging", "AMQP", "Postgres", "PushProtocol",
        ],
        "APNsSender": ["ServiceKit", "PushSending", "PushWires", "Messaging", "AMQP", "PushProtocol", "HTTP2"],
        "FCMSender": [
            "ServiceKit", "PushSending", "PushWires", "Messaging", "AMQP", "PushProtocol", "HTTP2", "HTTPSFetch",
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

    /// Each C library has one importer.
    static let importerOfC = [
        "CRabbitMQ": "AMQP", "CPostgres": "Postgres", "CCurl": "HTTPSFetch", "CNGHTTP2": "HTTP2",
        "CAllocator": "ServiceKit",
    ]

    /// What may be imported from outside the house, and by which rooms. Foundation and the standard library's modules
    /// are everyone's.
    static let outside: [String: Set<String>] = [
        "Logging": [
            "AMQP", "Postgres", "HTTP2", "HTTPSFetch", "Messaging", "PushSending", "ServiceKit", "HTTPGate",
            "TokenRegistry", "Rules", "APNsSender", "FCMSender", "Feedback", "Pushctl", "ProviderSimulator",
        ],
        "Metrics": [
            "Messaging", "PushSending", "ServiceKit", "HTTPGate", "TokenRegistry", "Rules", "APNsSender", "FCMSender",
            "Feedback",
        ],
        "CoreMetrics": ["ServiceKit"],
        "ServiceLifecycle": [
            "AMQP", "Postgres", "Messaging", "PushSending", "ServiceKit", "HTTPGate", "TokenRegistry", "Rules",
            "APNsSender", "FCMSender", "Feedback", "ProviderSimulator",
        ],
        "UnixSignals": ["ServiceKit"],
        "Configuration": ["ServiceKit"],
        "Hummingbird": ["ServiceKit", "HTTPGate", "TokenRegistry", "Rules", "ProviderSimulator"],
        "HTTPTypes": ["ServiceKit", "HTTPGate", "TokenRegistry", "Rules", "ProviderSimulator"],
        "JWTKit": ["PushSending", "HTTPGate", "APNsSender", "FCMSender", "Pushctl", "ProviderSimulator"],
        "Crypto": ["PushProtocol", "Postgres", "HTTPGate", "TokenEncryption", "Pushctl", "ProviderSimulator"],
        "CryptoExtras": ["ProviderSimulator"],
        "X509": ["APNsSender", "ProviderSimulator"],
        "SwiftASN1": ["APNsSender", "ProviderSimulator"],
        "Yams": ["ServiceKit", "Rules"],
        "Mustache": ["Rules"],
        "ArgumentParser": ["Pushctl"],
        "DequeModule": ["AMQP", "Postgres", "HTTP2", "PushSending"],
        "Atomics": ["AMQP", "HTTP2"],
        "NIOCore": [
            "HTTP2", "ServiceKit", "HTTPGate", "APNsSender", "FCMSender", "TokenRegistry", "Rules", "ProviderSimulator",
        ],
        "NIOHTTPTypes": ["HTTPGate"],
        "NIOPosix": ["HTTP2"],
        "NIOTLS": ["HTTP2"],
        "NIOSSL": ["HTTP2"],
    ]

    /// Everyone's.
    static let platform: Set<String> = [
        "Foundation", "FoundationEssentials", "FoundationInternationalization", "Synchronization", "Dispatch", "Glibc",
        "Musl", "Darwin",
    ]

    /// What a folder named `Domain` may import besides the platform: it is pure, so nothing that does I/O. Of PushSending
    /// a sender's domain uses the vocabulary: requests and responses as values, and their consequences.
    static let pure: Set<String> = [
        "PushProtocol", "PushSending", "PushWires", "TokenEncryption", "Crypto", "CryptoExtras", "JWTKit", "Mustache",
        "Yams",
    ]
}
