# shellcheck shell=bash
# The linters of ./check, which sources this; it defines `step` and `quick`.

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

# Headers are checked through the files that include them.
lint_tidy() {
  lint_files '*.cc' | grep -v '^tests/external/' |
    xargs -P "$(nproc)" -n 4 clang-tidy -p build --quiet 2>/dev/null
}

step "lint: clang-format" lint_format
step "lint: shellcheck" lint_shell
# shellcheck disable=SC2154
[ "$quick" = 1 ] || step "lint: clang-tidy" lint_tidy
