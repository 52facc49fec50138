# shellcheck shell=bash
# Set-up shared by ./quickstart and ./check: Debian packages, then configure and build.
# Source it from bash with the current directory at the project's root.
#
#   setup_packages build [test]     installs what is missing (packages.txt)
#   setup_build DIR [-D...] -- [ninja targets]
#                                   configures DIR if it is not, and builds

setup_say() { printf '\n== %s\n' "$*"; }

setup_fail() {
  printf '%s\n' "$@" >&2
  exit 1
}

# Names of the packages of the given groups, one a line.
setup_list() {
  local group
  for group in "$@"; do
    awk -v group="$group" '!/^#/ && $2 == group { print $1 }' tools/setup/packages.txt
  done
}

# Those of the given packages that dpkg does not call installed, one a line.
setup_missing() {
  local package
  for package in "$@"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] ||
      printf '%s\n' "$package"
  done
}

# apt's output shortened to one line a package; all of it goes to the log.
setup_progress() {
  awk -v log_file="$1" '
    { print > log_file; fflush(log_file) }
    /^Get:/ { printf "  fetch   %s %s\n", $5, $7 }
    /^Unpacking / { printf "  unpack  %s\n", $2 }
    /^Setting up / { printf "  set up  %s\n", $3 }
    /^(E|W|Err):?/ { print "  " $0 }
    { fflush() }'
}

setup_packages() {
  if ! command -v dpkg-query >/dev/null; then
    printf 'Not a Debian system: make sure that what %s names is installed.\n' \
      tools/setup/packages.txt >&2
    return 0
  fi
  local wanted missing log=build/setup.log
  mapfile -t wanted < <(setup_list "$@")
  mapfile -t missing < <(setup_missing "${wanted[@]}")
  if [ "${#missing[@]}" -eq 0 ]; then
    printf 'All %d Debian packages are there.\n' "${#wanted[@]}"
    return 0
  fi
  local install="apt-get install -y --no-install-recommends ${missing[*]}"
  if [ "$(id -u)" -ne 0 ]; then
    setup_fail "Missing Debian packages: ${missing[*]}" \
      "Not root, so they cannot be installed from here. Run:" \
      "  sudo apt-get update && sudo $install"
  fi
  setup_say "Installing ${#missing[@]} Debian packages: ${missing[*]}"
  mkdir -p build
  # Whether it worked is asked of dpkg below: apt-get update succeeds without a network.
  {
    export DEBIAN_FRONTEND=noninteractive
    apt-get -o Acquire::Retries=2 update
    apt-get -o Acquire::Retries=2 install -y --no-install-recommends "${missing[@]}"
  } </dev/null 2>&1 | setup_progress "$log" || true
  mapfile -t missing < <(setup_missing "${wanted[@]}")
  if [ "${#missing[@]}" -ne 0 ]; then
    setup_fail "Missing Debian packages: ${missing[*]}" \
      "apt-get could not install them (no network? its output is in $log). Run:" \
      "  apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
  fi
  # What was not found when an earlier build was configured is there now.
  setup_reconfigure=1
}

setup_build() {
  local dir=$1 options=()
  shift
  while [ $# -gt 0 ] && [ "$1" != -- ]; do
    options+=("$1")
    shift
  done
  [ $# -gt 0 ] && shift
  if [ ! -f "$dir/build.ninja" ]; then
    setup_say "Configuring $dir"
    meson setup "$dir" "${options[@]}" ||
      setup_fail "meson could not configure $dir; see $dir/meson-logs/meson-log.txt"
  elif [ "${setup_reconfigure:-0}" = 1 ]; then
    setup_say "Configuring $dir again"
    meson setup --reconfigure "$dir" "${options[@]}" || setup_fail "meson could not configure $dir"
  fi
  setup_say "Building $dir"
  ninja -C "$dir" "$@" || setup_fail "The build in $dir failed."
}
