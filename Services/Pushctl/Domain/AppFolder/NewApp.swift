import PushProtocol

/// The answers of `pushctl app new`, and the texts of the files that it writes.
struct NewApp: Sendable {
    struct APNs: Sendable {
        /// The iOS app's bundle id.
        var bundle: String
        var keyID: String
        var teamID: String
    }

    var app: AppID
    /// `nil` for an app without an iOS version.
    var apns: APNs?
    /// Whether the app has an Android version.
    var hasFCM: Bool
    /// The Android app's package name, for the README.
    var package: String?
    /// Whether a credential is generated and only the simulator accepts it.
    var isSimulated: Bool

    /// The team id of generated keys. Apple assigns no such id, because the word is not random.
    static let simulatedTeam = "SIMULATED0"
    /// The domain of generated service accounts, reserved by RFC 2606.
    static let simulatedDomain = "simulated.example"

    /// The key id of a generated key. Differs between apps, because the simulator knows a key by its id.
    static func simulatedKeyID(of app: AppID) -> String {
        var hash: UInt64 = 14_695_981_039_346_656_037
        for byte in app.rawValue.utf8 { hash = (hash ^ UInt64(byte)) &* 1_099_511_628_211 }
        let digits = String(hash, radix: 36, uppercase: true)
        return "S" + String((String(repeating: "0", count: 9) + digits).suffix(9))
    }

    var appsFile: String {
        var lines = [
            "# The app of this folder and its credentials. Paths are relative to this file.",
            "# ARCHITECTURE.md calls it the app catalog; Services/Pushctl/README.md explains every key.",
            "apps:", "  \(app):",
        ]
        if let apns {
            lines += [
                "    apns:", "      topic: \(apns.bundle)", "      key-id: \(apns.keyID)",
                "      team-id: \(apns.teamID)", "      key-file: credentials/apns.p8",
                "      environments: [production, development]",
            ]
        }
        if hasFCM { lines += ["    fcm:", "      service-account-file: credentials/service-account.json"] }
        lines += [
            "    # Your backend signs a token for each of its users. In production, prefer ES256 with a public key here.",
            "    bearer:", "      - algorithm: HS256", "        key-file: credentials/bearer.secret",
            "        issuer: \(app)-backend", "        audience: \(app)", "        user-claim: sub",
        ]
        return lines.joined(separator: "\n") + "\n"
    }

    /// The first rule file: one rule that pushes at once, and one that pushes later.
    var ruleFile: String {
        """
        # The notifications of \(app). A rule reads: WHEN this happens, TO these users, SAY this, and this is HOW.
        # Services/Rules/Language/README.md explains every key.

        app: \(app)
        language: en

        types:
          messages: { about: Messages to you }
          reminders: { about: Reminders of your tasks }

        # The events that your backend publishes. Every rule is tried on the examples when this file is loaded.
        events:
          message.sent:
            about: A user sent a message. `recipients` are the ids of the users who get it.
            examples:
              - message: { id: m-1, text: "Dinner is at seven." }
                sender: { id: pat, name: Pat }
                recipients: [sam, alex]
          task.planned:
            about: A task got a due time.
            examples:
              - task: { id: t-1, title: Water the plants, due_at: "2030-01-10T18:00:00Z" }
                owner: { id: sam }
          task.done:
            about: A task is done, so nobody is reminded of it.
            examples:
              - task: { id: t-1 }

        done:
          - { event: task.done, item: "task/{{task.id}}" }

        rules:
          message:
            when: { event: message.sent }
            to: { users: recipients, except: sender.id }
            say:
              title: "{{sender.name}}"
              body: "{{excerpt(message.text)}}"
              data: { message_id: "{{message.id}}" }
            how: { sound: default, expires-after: 24h }
            policy: { type: messages }

          reminder:
            when: { event: task.planned }
            to: { users: owner.id }
            say:
              title: Reminder
              body: "{{task.title}} is due at {{time(task.due_at)}}"
              data: { task_id: "{{task.id}}" }
            how: { sound: default }
            policy: { type: reminders, item: "task/{{task.id}}", schedule: { at: task.due_at, before: 1h } }

        """
    }

    /// One example event for each rule, by file name.
    var exampleEvents: [(file: String, text: String)] {
        [
            (
                "message-sent.json",
                event(
                    "message.sent", "message-1",
                    """
                    {
                        "message": { "id": "m-1", "text": "Dinner is at seven." },
                        "sender": { "id": "pat", "name": "Pat" },
                        "recipients": ["sam", "alex"]
                      }
                    """)
            ),
            (
                "task-planned.json",
                event(
                    "task.planned", "task-1",
                    """
                    {
                        "task": { "id": "t-1", "title": "Water the plants", "due_at": "2030-01-10T18:00:00Z" },
                        "owner": { "id": "sam" }
                      }
                    """)
            ),
        ]
    }

    private func event(_ type: String, _ id: String, _ data: String) -> String {
        """
        {
          "specversion": "1.0",
          "id": "\(id)",
          "source": "/\(app)/backend",
          "type": "\(type)",
          "datacontenttype": "application/json",
          "data": \(data)
        }

        """
    }

    func readme(folder: String) -> String {
        let platforms = [apns.map { "iOS `\($0.bundle)`" }, hasFCM ? "Android `\(package ?? "(any package)")`" : nil]
        let keys =
            isSimulated
            ? """
            The keys are generated. Only the provider simulator accepts them. For real phones, replace the files in
            `credentials/` and the ids in `apps.yaml`; `pushctl app check . --providers real` reports what is left.
            """
            : "The keys are copies of your files. Keep them out of version control."
        return """
            # \(app)

            \(platforms.compactMap { $0 }.joined(separator: ", ")). Written by `pushctl app new`.

            | file | content |
            |---|---|
            | `apps.yaml` | the app and its credentials |
            | `rules/\(app).yaml` | the notifications, by event |
            | `events/` | an example event for each rule |
            | `credentials/` | secret keys, readable by you only |

            \(keys)

            From the checkout of Heliograph, with this folder beside it as `../\(folder)`:

                deploy/local/up --detach --apps ../\(folder)
                . .local/env
                export PATH=$PWD/.build/debug:$PATH
                pushctl app check ../\(folder)
                pushctl token mint --app \(app) --user sam
                pushctl publish --app \(app) ../\(folder)/events/message-sent.json
                pushctl explain message-1 --app \(app)

            `deploy/operations/your-own-app.md` explains each step, and the way to production.

            """
    }

    nonisolated(unsafe) static let bundlePattern = /[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+/

    /// Keeps the secret keys out of version control.
    static let gitignore = "credentials/\n"
}
