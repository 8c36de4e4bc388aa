# A Python virtual environment for system tests and benches. Sourced.

# python_environment FOLDER REQUIREMENTS: installs the packages of a requirements file and prints the interpreter.
python_environment() {
  local venv=$1 wanted=$2
  if ! cmp -s "$wanted" "$venv/installed.txt"; then
    say "Installing $(grep -c '==' "$wanted") Python packages into a virtual environment"
    { python3 -m venv "$venv" && "$venv/bin/pip" install -q --disable-pip-version-check -r "$wanted"; } >&2 \
      || fail "the Python packages of $wanted could not be installed" "is PyPI reachable?"
    cp "$wanted" "$venv/installed.txt"
  fi
  echo "$venv/bin/python"
}
