# Installs Debian packages, and checks for Swift. Sourced.

BUILD_PACKAGES=(librabbitmq-dev libcurl4-openssl-dev libssl-dev libpq-dev libnghttp2-dev libjemalloc-dev pkg-config)
RUN_PACKAGES=(rabbitmq-server postgresql amqp-tools curl jq openssl procps)
TEST_PACKAGES=(nghttp2-client nghttp2-server patch python3-venv chromium)
# For the alerts and boards. Nothing starts its service (RUNLEVEL=1 below).
TEST_PACKAGES+=(prometheus)
# For the pooler of deploy/kubernetes/components/pgbouncer.
TEST_PACKAGES+=(pgbouncer)
# For the client code and the publisher examples.
TEST_PACKAGES+=(kotlin libandroid-json-java openjdk-17-jdk-headless nodejs golang-go)
BENCH_PACKAGES=(binutils haproxy nghttp2-client gcc libc6-dev patch postgresql-contrib util-linux valgrind wrk)

# install_packages PACKAGE...: installs missing packages; needs no root if none is missing.
install_packages() {
  command -v dpkg-query >/dev/null || fail "this is not a Debian system" "use the container images in deploy/"
  local missing=() package
  for package in "$@"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
      as_root=(sudo)
    else
      fail "these Debian packages are missing: ${missing[*]}" "as root, run: apt-get install ${missing[*]}"
    fi
  fi
  say "Installing Debian packages: ${missing[*]}"
  # With RUNLEVEL=1, maintainer scripts do not start the system's broker and database. Under systemd they may start
  # anyway, on their default ports, which do not collide with ours.
  local log
  log=$(mktemp)
  if ! { "${as_root[@]}" apt-get update -q \
    && "${as_root[@]}" env RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive \
      apt-get install -q -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    tail -n 15 "$log" >&2
    fail "apt-get could not install ${missing[*]}" "see the output above"
  fi
  rm -f "$log"
}

need_swift() {
  command -v swift >/dev/null || fail "no Swift toolchain on PATH" "install Swift 6.3 from https://www.swift.org/install/linux/"
}
