#if canImport(UIKit) && canImport(UserNotifications) && !os(watchOS)
    import UIKit
    import UserNotifications

    extension HeliographClient {
        /// Asks the user for the permission for alerts, and asks the system for a device token. The token arrives in
        /// `application(_:didRegisterForRemoteNotificationsWithDeviceToken:)`; pass it to ``setToken(_:)`` as
        /// `.apns(token, environment: HeliographClient.environment)`.
        @available(iOSApplicationExtension, unavailable)
        @available(tvOSApplicationExtension, unavailable)
        @MainActor public func requestNotifications() async throws {
            let center = UNUserNotificationCenter.current()
            _ = try await center.requestAuthorization(options: [.alert, .badge, .sound])
            // Also without the permission: silent pushes need none.
            UIApplication.shared.registerForRemoteNotifications()
        }

        /// The APNs environment of this build: `development` for debug builds, `production` for TestFlight and the store.
        public static var environment: String {
            #if DEBUG
                "development"
            #else
                "production"
            #endif
        }

        #if !os(tvOS)
            /// Removes the shown notifications that a clear command names. Call it in
            /// `application(_:didReceiveRemoteNotification:fetchCompletionHandler:)`; the app needs the background mode
            /// `remote-notification`.
            ///
            /// - Returns: Whether the push was a clear command.
            @discardableResult public static func clearShownNotifications(_ userInfo: [AnyHashable: Any]) -> Bool {
                let identifiers = clearedNotifications(in: userInfo)
                guard !identifiers.isEmpty else { return false }
                UNUserNotificationCenter.current().removeDeliveredNotifications(withIdentifiers: identifiers)
                return true
            }

            /// Reports a response to a notification. Call it in
            /// `userNotificationCenter(_:didReceive:withCompletionHandler:)`, and complete after the returned task. The
            /// system reports dismissals only of categories with the option `customDismissAction`.
            @discardableResult public func handle(_ response: UNNotificationResponse) -> Task<Void, Never> {
                let id = UUID(uuidString: response.notification.request.identifier)
                let isDismissed = response.actionIdentifier == UNNotificationDismissActionIdentifier
                return Task {
                    // The identifier of a push with a collapse key is that key.
                    guard let id else { return }
                    if isDismissed { await self.dismissed(id) } else { await self.opened(id) }
                }
            }
        #endif
    }
#endif
