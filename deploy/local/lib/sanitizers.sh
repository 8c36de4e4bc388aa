# Builds with a sanitizer, and reads its reports. Sourced.

# The test targets with threads, unsafe memory or C libraries of their own.
SANITIZED_TESTS='AMQPTests|HTTP2Tests|MessagingTests|PostgresTests'

# test_targets FILTER: prints the test targets that FILTER names; all of them if it names none.
test_targets() {
  local all named name
  all=$(cd "$ROOT/Tests" && printf '%s\n' *Tests)
  named=$(for name in $all; do case $1 in *"$name"*) echo "$name" ;; esac; done)
  echo ${named:-$all}
}

# use_sanitizer NAME FILTER: sets the build and the runtime options of the sanitizer.
use_sanitizer() {
  local suppressions=$ROOT/Tests/Sanitizers/$1.suppressions
  export HELIOGRAPH_SANITIZER=$1
  HELIOGRAPH_TARGETS=$(test_targets "$2")
  # Sanitizers slow the code down, so that tests wait longer for a condition.
  : "${HELIOGRAPH_TEST_TIME_FACTOR:=5}"
  # The sanitizer prints the stack of a crash.
  SWIFT_BACKTRACE=enable=no
  export HELIOGRAPH_TARGETS HELIOGRAPH_TEST_TIME_FACTOR SWIFT_BACKTRACE
  case $1 in
    thread) export TSAN_OPTIONS="suppressions=$suppressions:exitcode=66:history_size=4:${TSAN_OPTIONS:-}" ;;
    address)
      export ASAN_OPTIONS="detect_leaks=1:detect_stack_use_after_return=0:${ASAN_OPTIONS:-}"
      export LSAN_OPTIONS="suppressions=$suppressions:${LSAN_OPTIONS:-}" ;;
    *) fail "unknown sanitizer $1" "choose one of: thread address" ;;
  esac
  SWIFT_OPTIONS=(--sanitize "$1" --scratch-path "$ROOT/.build-$1")
  if [ "$1" = thread ]; then
    mkdir -p "$ROOT/.build-$1"
    clang -O1 -c "$ROOT/Tests/Sanitizers/mutex.c" -o "$ROOT/.build-$1/mutex.o"
    SWIFT_OPTIONS+=(-Xlinker "$ROOT/.build-$1/mutex.o")
  fi
}

# sanitizer_reports LOG: prints each report's summary, with the tests that ran at that moment.
sanitizer_reports() {
  awk '
    function running(  name, list) { for (name in started) list = list (list ? ", " : "") name; return list }
    /^◇ Test .* started\.$/ { sub(/^◇ Test (case .* to )?/, ""); sub(/ started\.$/, ""); started[$0] = 1; next }
    /^[✔✘] Test .* (passed|failed) after / { sub(/^. Test (case .* to )?/, ""); sub(/ (passed|failed) after .*/, "")
      sub(/ with [0-9]+ test cases?$/, ""); delete started[$0]; next }
    /^(WARNING: ThreadSanitizer|==[0-9]+==ERROR: |WARNING: MemorySanitizer)/ { at = running() }
    /^SUMMARY: (Thread|Address|Leak)Sanitizer/ { sub(/^SUMMARY: /, ""); print $0 "\n      while running: " (at ? at : "no test") }
  ' "$1"
}
