/* The peer of tools/bench/collectives: times MPI_Allreduce of float32 as `bitrail perf` times its
 * own.
 *
 * usage: mpi_allreduce MIN_BYTES MAX_BYTES FACTOR ITERATIONS WARMUP
 * Prints "bytes microseconds" a line: the median over iterations of the slowest rank's time of one
 * call, in an iteration of as many calls back to back as fit into 0.2 ms (at most 100), with a
 * barrier before each iteration.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static const double kIterationSeconds = 200e-6;

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double time_calls(const float* send, float* recv, int count, int calls) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int call = 0; call < calls; call++)
    MPI_Allreduce(send, recv, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  return (MPI_Wtime() - start) / calls;
}

static double median_seconds(const float* send, float* recv, int count, int iterations,
                             int warmup) {
  for (int call = 0; call < warmup; call++) time_calls(send, recv, count, 1);
  double slowest = time_calls(send, recv, count, 1);
  MPI_Allreduce(MPI_IN_PLACE, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  int calls = (int)(kIterationSeconds / slowest);
  if (calls < 1) calls = 1;
  if (calls > 100) calls = 100;
  double* times = malloc((size_t)iterations * sizeof *times);
  if (times == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  int i = 0;
  if (calls == 1) times[i++] = slowest; /* a call of seconds is not repeated to learn its length */
  for (; i < iterations; i++) times[i] = time_calls(send, recv, count, calls);
  MPI_Allreduce(MPI_IN_PLACE, times, iterations, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  qsort(times, (size_t)iterations, sizeof *times, compare);
  const int middle = iterations / 2;
  const double median =
      iterations % 2 == 1 ? times[middle] : 0.5 * (times[middle - 1] + times[middle]);
  free(times);
  return median;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc != 6) {
    if (rank == 0)
      fprintf(stderr, "usage: mpi_allreduce MIN_BYTES MAX_BYTES FACTOR ITERATIONS WARMUP\n");
    MPI_Finalize();
    return 2;
  }
  const long min_bytes = atol(argv[1]), max_bytes = atol(argv[2]), factor = atol(argv[3]);
  const int iterations = atoi(argv[4]), warmup = atoi(argv[5]);
  float* send = malloc((size_t)max_bytes);
  float* recv = malloc((size_t)max_bytes);
  if (send == NULL || recv == NULL || factor < 2 || iterations < 1 || min_bytes < 4)
    MPI_Abort(MPI_COMM_WORLD, 2);
  for (long i = 0; i < max_bytes / 4; i++) {
    send[i] = (float)(1 + (i + 3 * rank) % 7);
    recv[i] = 0;
  }
  for (long bytes = min_bytes; bytes <= max_bytes; bytes *= factor) {
    const double seconds = median_seconds(send, recv, (int)(bytes / 4), iterations, warmup);
    if (rank == 0) {
      printf("%ld %.3f\n", bytes, seconds * 1e6);
      fflush(stdout);
    }
  }
  free(send);
  free(recv);
  MPI_Finalize();
  return 0;
}
