// The launchers that can tell rank and size, each by its environment variables.
//
//   bitrail   BITRAIL_RANK, BITRAIL_WORLD_SIZE; also BITRAIL_RENDEZVOUS, BITRAIL_SECRET
//   torchrun  RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT. Torch's own store listens at MASTER_PORT,
//             so rank 0 listens one port higher unless BITRAIL_RENDEZVOUS is set. torchrun gives no
//             secret: BITRAIL_SECRET has to be set. TORCHELASTIC_RUN_ID is the job id.
//   pmix      PMIX_RANK, PMIX_NAMESPACE (Open MPI's mpirun, Slurm's srun --mpi=pmix)
//   hydra     PMI_RANK, PMI_SIZE (MPICH's mpiexec, Intel MPI, MVAPICH); needs BITRAIL_RENDEZVOUS
//   and
//             BITRAIL_SECRET
#pragma once

#include "runtime/bootstrap/bootstrap.h"

namespace bitrail::bootstrap {

// Each sets *found when its variables are there; then rank, size, launcher and what else it knows
// that `world` does not have yet.
Status detect_bitrail(const config::Settings& settings, World* world, bool* found);
Status detect_torchrun(World* world, bool* found);
Status detect_pmix(const config::Settings& settings, World* world, bool* found);
Status detect_hydra(World* world, bool* found);

}  // namespace bitrail::bootstrap
