import Postgres
import PushProtocol

extension AppID: PostgresValue {}
extension UserID: PostgresValue {}
extension Lane: PostgresValue {}
extension ChannelID: PostgresValue {}
extension ProviderEnvironment: PostgresValue {}
