# shellcheck shell=bash
# The linters of ./check, which sources this; it defines `step`, `quick` and `tidy`.

# Ours: what git knows, or every source file where this is no git checkout.
lint_files() {
  if git rev-parse --git-dir >/dev/null 2>&1; then
    git ls-files -- "$@"
  else
    local pattern
    for pattern in "$@"; do
      find . -path './build*' -prune -o -name "$pattern" -print
    done
  fi
}

lint_format() {
  lint_files '*.cc' '*.h' '*.hpp' '*.c' | xargs clang-format --dry-run -Werror
}

lint_shell() {
  { printf '%s\n' check quickstart .ci/run && lint_files '*.sh'; } | xargs shellcheck -x
}

# Source files, those of the latest commits first. Headers are checked through them.
lint_tidy_order() {
  if git rev-parse --git-dir >/dev/null 2>&1; then
    git log --format= --name-only -- '*.cc' | awk '!seen[$0]++' | while read -r file; do
      if [ -f "$file" ]; then printf '%s\n' "$file"; fi
    done
  else
    lint_files '*.cc'
  fi | grep -v '^tests/external/'
}

# clang-tidy takes longer than compiling: it gets some minutes, for what changed last, unless all
# was asked for.
lint_tidy() {
  local budget=$1 order=build/tidy-order done=build/tidy-done
  lint_tidy_order >"$order"
  : >"$done"
  # The inner shell expands these.
  # shellcheck disable=SC2016
  TIDY_END=$(($(date +%s) + budget)) TIDY_DONE=$done xargs -P "$(nproc)" -n 1 bash -c '
    [ "$(date +%s)" -lt "$TIDY_END" ] || exit 0
    clang-tidy -p build --quiet "$1" 2>/dev/null || exit 1
    echo "$1" >>"$TIDY_DONE"' tidy <"$order"
  local status=$?
  printf 'clang-tidy: %d of %d files (./check --tidy does all)\n' "$(wc -l <"$done")" "$(wc -l <"$order")"
  return $status
}

step "lint: clang-format" lint_format
step "lint: shellcheck" lint_shell
# shellcheck disable=SC2154
if [ "$tidy" = all ]; then
  step "lint: clang-tidy" lint_tidy 100000
elif [ "$quick" = 0 ]; then
  step "lint: clang-tidy" lint_tidy 240
fi
