# A virtual environment for the scripts that publish and look on from outside. Sourced.

# python_environment FOLDER: prints the interpreter, after installing what Tests/System/requirements.txt names.
python_environment() {
  local venv=$1 wanted=$ROOT/Tests/System/requirements.txt
  if ! cmp -s "$wanted" "$venv/installed.txt"; then
    say "Installing $(grep -c '==' "$wanted") Python packages into a virtual environment"
    { python3 -m venv "$venv" && "$venv/bin/pip" install -q --disable-pip-version-check -r "$wanted"; } >&2 \
      || fail "the Python packages of Tests/System/requirements.txt could not be installed" "is PyPI reachable?"
    cp "$wanted" "$venv/installed.txt"
  fi
  echo "$venv/bin/python"
}
