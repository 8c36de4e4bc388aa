# Builds a planted bug of the chaos bench in a copy of the checkout. Sourced.

# run_mutant ARGUMENT...: copies the checkout with its build, applies the patch, builds, and runs the bench there with the
# same arguments. As root the copy appears under the checkout's own path, so that the build stays
# incremental.
run_mutant() {
  local name='' tree=$STATE/mutant arguments=()
  while [ $# -gt 0 ]; do
    if [ "$1" = --mutant ]; then name=${2:-}; shift; else arguments+=("$1"); fi
    shift
  done
  local folder=$ROOT/deploy/local/benches/chaos/mutants
  [ -f "$folder/$name.patch" ] || fail "unknown mutant '$name'" "deploy/local/bench chaos --mutants lists them"
  say "Planting $name in a copy of the checkout"
  mkdir -p "$tree"
  # The sources of an earlier mutant are replaced, and its build is kept.
  find "$tree" -mindepth 1 -maxdepth 1 ! -name .build -exec rm -rf {} +
  tar -C "$ROOT" --exclude=./.git --exclude=./.build --exclude='./.local*' -cf - . | tar -C "$tree" -xf -
  if [ ! -d "$tree/.build" ] && [ -d "$ROOT/.build" ]; then cp -a --reflink=auto "$ROOT/.build" "$tree/.build"; fi
  patch -d "$tree" -p1 -s <"$folder/$name.patch" || fail "$name.patch does not apply" "write it again for these sources"
  local command=(env -u LOCAL_SKIP_BUILD LOCAL_BENCH_STATE="$STATE" LOCAL_BENCH_MUTANT=yes
    deploy/local/bench chaos --mutant "$name" "${arguments[@]}")
  if [ "$(id -u)" -eq 0 ]; then
    exec unshare --mount sh -c 'mount --make-rprivate / && mount --bind "$0" "$1" && cd "$1" && shift && exec "$@"' \
      "$tree" "$ROOT" "${command[@]}"
  fi
  cd "$tree" || exit 1
  exec "${command[@]}"
}
