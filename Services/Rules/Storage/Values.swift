import Postgres
import PushProtocol

extension AppID: PostgresValue {}
extension UserID: PostgresValue {}
extension Lane: PostgresValue {}
