# Builds the images and their base images with buildah, and starts them with podman. Sourced after common.sh and
# packages.sh. Needs root.
#
# Images, containers and networks of these scripts are in a storage of their own, apart from those of this machine's
# podman.

CONTAINERS=${LOCAL_CACHE:-${HOME:-/root}/.cache/heliograph}/containers
# The files of the stand-ins for base images.
STAND_INS=$ROOT/deploy/local/containers
CONTAINER_PACKAGES=(buildah podman runc netavark aardvark-dns catatonit iptables debootstrap jq)
DEBIAN_MIRROR=http://deb.debian.org/debian
IMAGE_VERSION=dev
# The last complete run that passed. `.ci/run` prints it.
LAST_PASSED=$STAND_INS/last-passed.txt

# container_storage: writes the settings of podman and buildah, and exports the variables that name them.
container_storage() {
  [ "$(id -u)" -eq 0 ] || fail "the tests of containers need root" "run this as root"
  install_packages "${CONTAINER_PACKAGES[@]}"
  mkdir -p "$CONTAINERS/storage" "$CONTAINERS/networks" \
    || fail "the folder $CONTAINERS cannot be created" "set LOCAL_CACHE=<folder>"
  cat >"$CONTAINERS/storage.conf" <<EOF
[storage]
driver = "overlay"
graphroot = "$CONTAINERS/storage"
runroot = "/run/heliograph-containers"
EOF
  # cgroupfs and files work without systemd. Some hosts do not allow the default limits.
  cat >"$CONTAINERS/containers.conf" <<EOF
[containers]
default_ulimits = ["nofile=20000:20000", "nproc=1000:1000"]
log_driver = "k8s-file"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[network]
network_backend = "netavark"
network_config_dir = "$CONTAINERS/networks"
EOF
  cat >"$CONTAINERS/registries.conf" <<EOF
unqualified-search-registries = ["docker.io"]
short-name-mode = "permissive"
EOF
  export CONTAINERS_STORAGE_CONF=$CONTAINERS/storage.conf CONTAINERS_CONF=$CONTAINERS/containers.conf
  export CONTAINERS_REGISTRIES_CONF=$CONTAINERS/registries.conf
  # The format of Docker: that of OCI has no health checks. Another format empties the cache of layers.
  export BUILDAH_FORMAT=docker BUILDAH_ISOLATION=chroot
}

# The full name of an image in Dockerfile and manifests.
full_name() {
  case $1 in
    *.*/*) echo "$1" ;;
    */*) echo "docker.io/$1" ;;
    *) echo "docker.io/library/$1" ;;
  esac
}

image_exists() { podman image exists "$1" 2>/dev/null; }

# base_images: the images that Dockerfile and docker-compose.yml name and that are not ours.
base_images() {
  sed -n 's/^FROM \([^ ]*:[^ ]*\).*/\1/p' "$ROOT/deploy/Dockerfile"
  sed -n 's/^ *image: \([^ ]*\)$/\1/p' "$ROOT/docker-compose.yml" | grep -v '^heliograph/'
}

# need_base_images: pulls each base image; creates a stand-in if the registry does not serve it. Grafana has no Debian
# package: without its image, its test is skipped.
need_base_images() {
  local image full
  # Debian first, because other stand-ins contain it.
  for image in debian:bookworm-slim $(base_images | sort -u | grep -v '^debian:'); do
    full=$(full_name "$image")
    image_exists "$full" && [ "$(stand_in_version "$full")" != outdated ] && continue
    if [ "${CONTAINERS_PULL:-yes}" = yes ] && ! image_exists "$full" \
      && timeout 600 podman pull --quiet "$full" >"$CONTAINERS/pull.log" 2>&1; then
      continue
    fi
    case $image in
      grafana/*) note "$image: no registry serves it, and there is no stand-in; the boards are not tested in containers" ;;
      *) create_stand_in "$image" "$full" ;;
    esac
  done
}

# build_image NAME OPTION...: builds heliograph/NAME.
build_image() {
  local name=$1 started=$SECONDS log=$CONTAINERS/build-$1.log
  shift
  buildah bud --layers -f "$ROOT/deploy/Dockerfile" --ulimit nofile=20000:20000 --ulimit nproc=1000:1000 \
    -t "heliograph/$name:$IMAGE_VERSION" "$@" "$ROOT" >"$log" 2>&1 \
    || { tail -n 30 "$log" >&2; fail "the image of $name does not build" "see $log"; }
  printf '%-28s %6s MB %6s s\n' "heliograph/$name" "$(image_size "localhost/heliograph/$name:$IMAGE_VERSION")" \
    $((SECONDS - started)) | tee -a "$CONTAINERS/images.txt"
}

image_size() { podman image inspect -f '{{.Size}}' "$1" | awk '{printf "%.0f", $1 / 1000000}'; }

build_images() {
  local service
  : >"$CONTAINERS/images.txt"
  say "Building the images (the first takes about 12 minutes on two cores; log: $CONTAINERS/build-rules.log)"
  for service in rules "${SERVICES[@]}" console; do
    if [ "$service" != rules ] || ! grep -q '/rules ' "$CONTAINERS/images.txt"; then
      build_image "$service" --build-arg "SERVICE=$service"
    fi
  done
  build_image pushctl --target pushctl
  build_image tools --target tools
  build_image pgbouncer --target pgbouncer
}

# containers_tests ARGUMENT...: builds the images, then runs Tests/Containers.
containers_tests() {
  local python
  container_storage
  need_base_images
  build_images
  python=$(python_environment "$STATE/venv-containers" "$ROOT/Tests/Containers/requirements.txt") || exit 1
  say "Running the tests of the containers"
  CONTAINERS=$CONTAINERS "$python" -m pytest "$ROOT/Tests/Containers" -o cache_dir="$STATE/pytest-containers" "$@" || return
  # Arguments select some of the tests.
  [ $# -gt 0 ] || record_passed
}

# record_passed: writes the date, the commit and the sizes of the images, to be committed.
record_passed() {
  local changes=
  git -C "$ROOT" diff --quiet HEAD || changes=' with changes'
  {
    echo "date: $(date -u +%F)"
    echo "commit: $(git -C "$ROOT" rev-parse --short=12 HEAD)$changes"
    awk '{print $1 ": " $2 " MB"}' "$CONTAINERS/images.txt"
  } >"$LAST_PASSED"
  note "commit ${LAST_PASSED#"$ROOT/"}"
}

# print_last_passed: says how long ago the tests of the containers last passed.
print_last_passed() {
  local passed
  passed=$(sed -n 's/^date: //p' "$LAST_PASSED" 2>/dev/null || true)
  if [ -z "$passed" ]; then
    echo "no complete run has passed yet: deploy/local/test --containers, as root"
    return
  fi
  echo "last passed $((($(date +%s) - $(date -d "$passed" +%s)) / 86400)) days ago, at $(sed -n 's/^commit: //p' "$LAST_PASSED")"
}
