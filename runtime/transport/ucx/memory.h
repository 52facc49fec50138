// Memory registration with UCX.
#pragma once

#include <ucp/api/ucp.h>

#include <memory>

#include "runtime/transport/transport.h"

namespace bitrail::transport::ucx {

class Worker;

class UcxMemory : public Memory {
 public:
  static Status create(std::shared_ptr<Worker> worker, void* data, size_t bytes,
                       std::unique_ptr<Memory>* memory);
  ~UcxMemory() override;

 private:
  UcxMemory(std::shared_ptr<Worker> worker, ucp_mem_h handle);

  std::shared_ptr<Worker> worker_;
  ucp_mem_h handle_;
};

}  // namespace bitrail::transport::ucx
