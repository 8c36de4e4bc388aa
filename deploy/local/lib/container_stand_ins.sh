# Creates stand-ins for base images from Debian packages, for machines without a container registry. Sourced after
# containers.sh. A stand-in has the name of the image that it replaces, and the label heliograph.stand-in.

# The packages of the official image of Swift.
SWIFT_IMAGE_PACKAGES=(binutils ca-certificates git gnupg2 libc6-dev libcurl4-openssl-dev libedit2 libgcc-12-dev
  libncurses-dev libpython3-dev libsqlite3-0 libstdc++-12-dev libxml2-dev libz3-dev pkg-config tzdata unzip zlib1g-dev)

CONTAINER_PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

# Raise it with a change of a stand-in: stand-ins of another version are created again.
STAND_IN_VERSION=1

# stand_in_version IMAGE: prints `outdated` for a stand-in of another version.
stand_in_version() {
  local version
  version=$(podman image inspect -f '{{index .Labels "heliograph.stand-in"}}' "$1" 2>/dev/null)
  [ -z "$version" ] || [ "$version" = "$STAND_IN_VERSION" ] || echo outdated
}

# create_stand_in IMAGE FULL-NAME
create_stand_in() {
  local started=$SECONDS log=$CONTAINERS/stand-in.log
  say "Creating a stand-in for $1, which no registry serves here (log: $log)"
  # In a process of its own: a failed command ends it.
  (
    set -e
    case $1 in
      debian:bookworm-slim) debian_stand_in "$2" bookworm ca-certificates ;;
      rabbitmq:4*) debian_stand_in "$2" trixie rabbitmq-server,gosu finish_rabbitmq ;;
      swift:*-bookworm) package_stand_in "$2" finish_swift "${SWIFT_IMAGE_PACKAGES[@]}" ;;
      postgres:15-bookworm) package_stand_in "$2" finish_postgres postgresql-15 gosu ;;
      prom/prometheus:*) package_stand_in "$2" finish_prometheus prometheus ;;
      caddy:2*) package_stand_in "$2" finish_caddy caddy libcap2-bin ;;
      *) fail "there is no stand-in for $1" ;;
    esac
  ) >"$log" 2>&1 || { tail -n 8 "$log" >&2; fail "the stand-in for $1 could not be created" "see $log"; }
  note "$1: $(image_size "$2") MB, $((SECONDS - started)) s"
}

# debian_stand_in FULL-NAME SUITE PACKAGES [FINISH]: creates a minimal Debian system, changes it with FINISH, and
# commits it.
debian_stand_in() {
  local full=$1 suite=$2 packages=$3 container system
  system=$CONTAINERS/systems/$(basename "$full" | tr : -)
  if [ "$(cat "$system.complete" 2>/dev/null)" != "$packages" ]; then
    rm -rf --one-file-system "$system" "$system.complete"
    mkdir -p "$CONTAINERS/systems"
    # debootstrap mounts file systems in the new system. They end with its mount namespace.
    unshare --mount debootstrap --variant=minbase --include="$packages" "$suite" "$system" "$DEBIAN_MIRROR"
    echo "$packages" >"$system.complete"
  fi
  slim "$system" "$suite"
  container=$(buildah from scratch)
  buildah copy -q "$container" "$system" /
  buildah config --cmd /bin/bash --env "PATH=$CONTAINER_PATH" "$container"
  [ -z "${4:-}" ] || "$4" "$container"
  commit_stand_in "$container" "$full"
}

# package_stand_in FULL-NAME FINISH PACKAGE...: the stand-in for Debian with packages, changed with FINISH.
package_stand_in() {
  local full=$1 finish=$2 container
  shift 2
  container=$(buildah from --pull-never docker.io/library/debian:bookworm-slim)
  buildah run "$container" -- sh -c 'apt-get update -q && DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install \
    -q -y --no-install-recommends "$@" && rm -rf /var/lib/apt/lists/*' install "$@"
  "$finish" "$container"
  commit_stand_in "$container" "$full"
}

commit_stand_in() {
  buildah config --label "heliograph.stand-in=$STAND_IN_VERSION" "$1"
  buildah commit -q --rm "$1" "$2"
}

# slim SYSTEM SUITE: updates from the mirror, and none of the files that slim images of Debian leave out.
slim() {
  local system=$1 suite=$2
  cat >"$system/etc/apt/sources.list" <<EOF
deb $DEBIAN_MIRROR $suite main
deb $DEBIAN_MIRROR $suite-updates main
deb ${DEBIAN_MIRROR%/debian}/debian-security $suite-security main
EOF
  cat >"$system/etc/dpkg/dpkg.cfg.d/docker" <<EOF
path-exclude /usr/share/doc/*
path-include /usr/share/doc/*/copyright
path-exclude /usr/share/locale/*
path-exclude /usr/share/man/*
EOF
  # Neither archives nor caches of apt stay in a layer.
  cat >"$system/etc/apt/apt.conf.d/docker-clean" <<'EOF'
APT::Update::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb /var/cache/apt/*.bin || true"; };
DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb /var/cache/apt/*.bin || true"; };
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
EOF
  find "$system/usr/share/doc" -type f ! -name copyright -delete
  rm -rf "$system"/usr/share/{locale,man,info}/* "$system"/var/lib/apt/lists/* "$system"/var/cache/apt/*.bin \
    "$system"/var/cache/apt/archives/*.deb "$system"/var/log/*.log
}

# The toolchain of this machine at its place in the official image, and the packages to which git is redirected here.
finish_swift() {
  local container=$1 toolchain folder
  toolchain=$(dirname "$(dirname "$(readlink -f "$(command -v swift)")")")
  buildah copy -q "$container" "$toolchain" /usr
  if [ -f /etc/gitconfig ]; then buildah copy -q "$container" /etc/gitconfig /etc/gitconfig; fi
  for folder in $(git config --system --get-regexp '^url\..*\.insteadof$' 2>/dev/null \
    | sed -n 's|^url\.\(/.*\)\.insteadof .*|\1|p' | sort -u); do
    buildah copy -q "$container" "$folder" "$folder"
  done
}

finish_rabbitmq() {
  local container=$1
  # The user id of the official image, on which the Kubernetes manifests rely.
  buildah run "$container" -- sh -c 'usermod -u 999 rabbitmq && groupmod -g 999 rabbitmq \
    && mkdir -p /etc/rabbitmq/conf.d && chown -R rabbitmq:rabbitmq /var/lib/rabbitmq /etc/rabbitmq /var/log/rabbitmq && chmod 1777 /var/lib/rabbitmq \
    && echo "[rabbitmq_prometheus]." >/etc/rabbitmq/enabled_plugins'
  # The commands of the package change to the user rabbitmq with runuser, which needs a capability.
  buildah run "$container" -- sh -c 'for tool in /usr/lib/rabbitmq/bin/*; do
    ln -sf "$tool" "/usr/local/bin/${tool##*/}"
  done'
  buildah copy -q --chmod 755 "$container" "$STAND_INS/rabbitmq-entrypoint" /usr/local/bin/docker-entrypoint.sh
  buildah config --entrypoint '["docker-entrypoint.sh"]' --cmd rabbitmq-server --env HOME=/var/lib/rabbitmq \
    --env LANG=C.UTF-8 --volume /var/lib/rabbitmq --port 5672 --port 15692 "$container"
}

finish_postgres() {
  local container=$1
  buildah run "$container" -- sh -c 'rm -rf /var/lib/postgresql/15 /etc/postgresql/15 \
    && usermod -u 999 postgres && groupmod -g 999 postgres && mkdir -p /var/lib/postgresql/data /var/run/postgresql \
    && chown -R postgres:postgres /var/lib/postgresql /var/run/postgresql && chmod 1777 /var/lib/postgresql/data \
    && chmod 3777 /var/run/postgresql'
  buildah copy -q --chmod 755 "$container" "$STAND_INS/postgres-entrypoint" /usr/local/bin/docker-entrypoint.sh
  buildah config --entrypoint '["docker-entrypoint.sh"]' --cmd postgres --stop-signal SIGINT \
    --env "PATH=$CONTAINER_PATH:/usr/lib/postgresql/15/bin" \
    --env PGDATA=/var/lib/postgresql/data --volume /var/lib/postgresql/data --port 5432 "$container"
}

# Debian's Prometheus is older than the image: 2.42.
finish_prometheus() {
  local container=$1
  buildah run "$container" -- sh -c 'rm -rf /etc/prometheus/* && mkdir -p /prometheus && chown nobody:nogroup /prometheus'
  buildah config --entrypoint '["/bin/prometheus"]' \
    --cmd '--config.file=/etc/prometheus/prometheus.yml --storage.tsdb.path=/prometheus' --user nobody \
    --workingdir /prometheus --volume /prometheus --port 9090 "$container"
}

finish_caddy() {
  local container=$1
  # As the official image: the capability of the file, the folders of certificates and settings.
  buildah run "$container" -- sh -c 'setcap cap_net_bind_service=+ep /usr/bin/caddy \
    && mkdir -p /config/caddy /data/caddy'
  buildah config --env XDG_CONFIG_HOME=/config --env XDG_DATA_HOME=/data --workingdir /srv --port 443 \
    --cmd 'caddy run --config /etc/caddy/Caddyfile --adapter caddyfile' "$container"
}
