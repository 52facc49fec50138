// A UCP endpoint: the way to one peer's worker, shared by all connections with it in both
// directions.
//
// Inside a host it is made without UCX's error handling, which would cost shared memory; a dead
// peer then shows as nothing at all and the layers above time out. Between hosts error handling is
// on: a broken connection fails what is pending with BITRAIL_ERR_PEER_LOST.
#pragma once

#include <ucp/api/ucp.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/common/status.h"

namespace bitrail::transport::ucx {

class UcxReceiver;
class UcxSender;
class Worker;

struct Endpoint {
  Worker* worker = nullptr;
  ucp_ep_h ucp = nullptr;  // null once closed
  bool local = false;
  std::vector<uint8_t> address;  // UCX's
  std::string name;              // "rank 3 at 10.0.0.1:4711"
  Status failure;                // OK while it works
  size_t pending = 0;            // messages that UCX has not sent yet
  std::vector<UcxSender*> senders;
  std::vector<UcxReceiver*> receivers;
};

Status create_endpoint(Worker* worker, const std::vector<uint8_t>& address, bool local,
                       const std::string& name, std::unique_ptr<Endpoint>* endpoint);

// Fails everything that uses the endpoint.
void fail_endpoint(Endpoint* endpoint, const Status& status);
// The same, for the first reason alone, and the worker closes it.
void lose_endpoint(Endpoint* endpoint, const Status& status);

}  // namespace bitrail::transport::ucx
