#include "runtime/transport/ucx/memory.h"

#include "runtime/transport/ucx/worker.h"

namespace bitrail::transport::ucx {

UcxMemory::UcxMemory(std::shared_ptr<Worker> worker, ucp_mem_h handle)
    : worker_(std::move(worker)), handle_(handle) {}

// Pins the pages where hardware needs that, so that UCX's registration cache finds them; nothing
// for shared memory and TCP.
Status UcxMemory::create(std::shared_ptr<Worker> worker, void* data, size_t bytes,
                         std::unique_ptr<Memory>* memory) {
  ucp_mem_map_params_t params{};
  params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
  params.address = data;
  params.length = bytes;
  ucp_mem_h handle = nullptr;
  if (bytes > 0) {
    const ucs_status_t status = ucp_mem_map(worker->ucp_context(), &params, &handle);
    if (status != UCS_OK) {
      return failure(BITRAIL_ERR_SYSTEM,
                     "UCX cannot register {} bytes: {}; see `ulimit -l` (locked memory)", bytes,
                     ucs_status_string(status));
    }
  }
  memory->reset(new UcxMemory(std::move(worker), handle));
  return {};
}

UcxMemory::~UcxMemory() {
  // After close() UCX has freed all its registrations.
  if (handle_ != nullptr && worker_->ucp_context() != nullptr) {
    ucp_mem_unmap(worker_->ucp_context(), handle_);
  }
}

}  // namespace bitrail::transport::ucx
