// Sums over the ranks of a machine by MPI, fp32: a peer of benchmarks/all_reduce, timed as that is.
// Prints one line of JSON with the median of each size.
//
//   mpicc -O2 all_reduce_mpi.c -o all_reduce_mpi
//   mpirun -n 2 ./all_reduce_mpi [SECONDS [LARGEST_KILOBYTES]]      about 1 s a size, 262144
//
// A call begins after a barrier and takes as long as on the slowest rank.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { kMostCalls = 500, kFewestCalls = 5 };

static const long kKilobytes[] = {4, 64, 1024, 16384, 65536, 262144};

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double timed_call(float* values, int count) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  MPI_Allreduce(MPI_IN_PLACE, values, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  double took = MPI_Wtime() - start;
  MPI_Allreduce(MPI_IN_PLACE, &took, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return took;
}

// The median in seconds, alike on all ranks.
static double measure(float* values, long bytes, double seconds) {
  static double took[kMostCalls];
  const int count = (int)(bytes / (long)sizeof(float));
  double first = 0;
  for (int i = 0; i < 3; ++i) {
    const double call = timed_call(values, count);
    if (call > first) first = call;
  }
  double calls = seconds / first;
  if (calls > kMostCalls) calls = kMostCalls;
  if (calls < kFewestCalls) calls = kFewestCalls;
  const int n = (int)calls;
  for (int i = 0; i < n; ++i) took[i] = timed_call(values, count);
  qsort(took, (size_t)n, sizeof took[0], compare);
  return took[n / 2];
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const double seconds = argc > 1 ? atof(argv[1]) : 1;
  const long largest = argc > 2 ? atol(argv[2]) : 262144;
  float* values = calloc((size_t)largest << 10, 1);
  if (values == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  if (rank == 0) {
    printf(
        "{\"workload\": \"all-reduce\", \"peer\": \"mpi\", \"precision\": \"fp32\", "
        "\"world\": %d, \"sizes\": [",
        ranks);
  }
  const char* comma = "";
  for (size_t i = 0; i < sizeof kKilobytes / sizeof kKilobytes[0]; ++i) {
    if (kKilobytes[i] > largest) break;
    const long bytes = kKilobytes[i] << 10;
    const double median = measure(values, bytes, seconds);
    if (rank == 0) {
      printf("%s{\"bytes\": %ld, \"median_us\": %.2f, \"gb_per_s\": %.3f}", comma, bytes,
             1e6 * median, (double)bytes / median / 1e9);
    }
    comma = ", ";
  }
  if (rank == 0) printf("]}\n");
  free(values);
  MPI_Finalize();
  return 0;
}
