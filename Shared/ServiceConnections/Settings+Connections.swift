package import AMQP
package import Logging
package import Postgres
package import ServiceKit

extension Settings {
    /// Returns a broker configuration from `AMQP_URL` and `AMQP_CA_FILE`. `AMQP_URL_FILE` is read again before each
    /// connection.
    ///
    /// - Parameter connectionName: the name in the broker's list of connections.
    package func amqp(connectionName: String, logger: Logger) throws(ConfigurationError) -> AMQPConfiguration {
        let url = try string(.amqpURL)
        let caFile = try optionalString(.amqpCAFile)
        do {
            var configuration = try AMQPConfiguration(url: url, connectionName: connectionName, caFile: caFile)
            configuration.currentURL = try rotation(of: .amqpURL, logger: logger)
            return configuration
        } catch let error as AMQPError {
            throw ConfigurationError("\(ConfigurationKey.amqpURL.name): \(error.detail)")
        } catch {
            throw ConfigurationError("\(error)")
        }
    }

    /// Returns a database configuration from `DATABASE_URL` and `DATABASE_STATEMENTS`. `DATABASE_URL_FILE` is read
    /// again before each connection.
    ///
    /// - Parameter applicationName: the name in the server's `pg_stat_activity`.
    package func postgres(
        poolSize: Int, applicationName: String, logger: Logger
    ) throws(ConfigurationError) -> PostgresConfiguration {
        let url = try string(.databaseURL)
        do {
            var configuration = try PostgresConfiguration(
                url: url, poolSize: poolSize, applicationName: applicationName)
            configuration.statementMode = try string(.databaseStatements) == "unnamed" ? .unnamed : .prepared
            configuration.currentURL = try rotation(of: .databaseURL, logger: logger)
            return configuration
        } catch let error as PostgresError {
            throw ConfigurationError("\(ConfigurationKey.databaseURL.name): \(error.detail)")
        } catch {
            throw ConfigurationError("\(error)")
        }
    }
}
