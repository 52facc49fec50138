# shellcheck shell=bash
# The sanitizer runs of ./check, which sources this; it defines `run_tests`.
#
# The `bitrail` tool, the tests that start it or measure it, and programs outside the tree (built
# without the sanitizer) are left out: these runs are for the
# unit tests. UCX is not instrumented: what it keeps until the end is suppressed, and its memory hooks,
# which crash under the thread sanitizer, are off. The kernels are compiled for three of the x86
# instruction sets instead of six: the same code, half the time. Without debug information compiling is
# quicker and is cached across folders; reports still name the functions (-Ddebug=true adds lines).

# Values of the C API's enums come from C, where any number fits: the API checks them itself.
sanitize_options=(-Doptimization=1 -Db_lundef=false -Dtools=disabled
  '-Dcpp_args=-DHWY_DISABLED_TARGETS=(HWY_SSSE3|HWY_SSE4|HWY_AVX3_DL) -fno-omit-frame-pointer -fno-sanitize=enum')
sanitize_skip=(--no-suite slow --no-suite tools --no-suite lab --no-suite external
  --no-suite faults --no-suite rdma)
supp=$PWD/tests/sanitizers

setup_build build-asan -Db_sanitize=address,undefined "${sanitize_options[@]}"
ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1 \
  UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 \
  LSAN_OPTIONS=suppressions=$supp/lsan.supp:print_suppressions=0 \
  run_tests build-asan "${sanitize_skip[@]}" --timeout-multiplier 5

setup_build build-tsan -Db_sanitize=thread "${sanitize_options[@]}"
UCX_MEM_EVENTS=no TSAN_OPTIONS=halt_on_error=0:second_deadlock_stack=1 \
  run_tests build-tsan "${sanitize_skip[@]}" --timeout-multiplier 10
