# shellcheck shell=bash
# The fuzzing of ./check, which sources this; it defines `step`. Each parser of bytes from the network, and of
# topologies that others made, gets 20 seconds of libFuzzer under the address and undefined sanitizers; `fuzz_seconds` changes that:
#   CI=true fuzz_seconds=600 ./check
fuzz_seconds=${fuzz_seconds:-20}
fuzz_targets=(frame proof ucx_header verbs_message verbs_names plugin_handle topology_xml
  topology_description topology_bytes)

# One target, from its seeds, with bounded memory and time. A finding stays in build-fuzz/NAME-crash-*.
fuzz_one() {
  local program=build-fuzz/tests/fuzz/$1_fuzz log=build-fuzz/$1.log
  [ -x "$program" ] || return 0 # its transport is not built
  if "$program" -max_total_time="$fuzz_seconds" -rss_limit_mb=2048 -timeout=10 \
    -artifact_prefix="build-fuzz/$1-" >"$log" 2>&1; then
    printf '  %-16s %s\n' "$1" "$(tail -1 "$log")"
  else
    printf '  %-16s FINDING, see %s\n' "$1" "$log"
    tail -40 "$log"
    return 1
  fi
}

fuzz_all() {
  export -f fuzz_one
  export fuzz_seconds
  # The inner shell expands this.
  # shellcheck disable=SC2016
  printf '%s\n' "${fuzz_targets[@]}" | xargs -P "$(nproc)" -n 1 bash -c 'fuzz_one "$1"' fuzz
}

fuzz_build() {
  if [ ! -f build-fuzz/build.ninja ]; then
    CC=clang CXX=clang++ meson setup build-fuzz -Dfuzz=true -Db_sanitize=address,undefined \
      -Db_lundef=false -Dwerror=false -Doptimization=1 -Dtools=disabled || return 1
  fi
  local target targets=()
  for target in "${fuzz_targets[@]}"; do
    if grep -q "build tests/fuzz/${target}_fuzz:" build-fuzz/build.ninja; then
      targets+=("tests/fuzz/${target}_fuzz")
    fi
  done
  ninja -C build-fuzz "${targets[@]}"
}

if fuzz_build; then
  step "fuzz: network parsers, $fuzz_seconds s each" fuzz_all
else
  step "fuzz: build" false
fi
