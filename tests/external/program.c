/* A C11 program outside the tree: joins a job of one rank and adds a vector to nothing. */
#include <bitrail/bitrail.h>
#include <stdio.h>

int main(void) {
  float data[4] = {1, 2, 3, 4};
  bitrail_comm_t comm = NULL;
  bitrail_status_t status = bitrail_comm_create(&comm, NULL);
  if (status == BITRAIL_OK)
    status = bitrail_allreduce(comm, data, data, 4, BITRAIL_FLOAT32, BITRAIL_SUM, NULL);
  if (status != BITRAIL_OK) {
    fprintf(stderr, "%s: %s\n", bitrail_status_string(status), bitrail_last_error());
    return 1;
  }
  printf("C, version %s: rank %d of %d, sum of element 3 is %g\n", bitrail_version(),
         bitrail_comm_rank(comm), bitrail_comm_world_size(comm), (double)data[3]);
  bitrail_comm_destroy(comm);
  return data[3] == 4.0F ? 0 : 1;
}
