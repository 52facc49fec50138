#include "runtime/transport/ucx/endpoint.h"

#include "runtime/transport/ucx/descriptors.h"
#include "runtime/transport/ucx/receiver.h"
#include "runtime/transport/ucx/sender.h"
#include "runtime/transport/ucx/worker.h"

namespace bitrail::transport::ucx {
namespace {

void on_error(void* argument, ucp_ep_h /*ep*/, ucs_status_t status) {
  auto* endpoint = static_cast<Endpoint*>(argument);
  lose_endpoint(endpoint, failure(BITRAIL_ERR_PEER_LOST, "connection to {} is lost: {}",
                                  endpoint->name, ucs_status_string(status)));
}

}  // namespace

Status create_endpoint(Worker* worker, const std::vector<uint8_t>& address, bool local,
                       const std::string& name, std::unique_ptr<Endpoint>* endpoint) {
  BITRAIL_TRY(require_files(kEndpointFiles));
  auto made = std::make_unique<Endpoint>();
  made->worker = worker;
  made->local = local;
  made->address = address;
  made->name = name;
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(made->address.data());
  params.err_mode = local ? UCP_ERR_HANDLING_MODE_NONE : UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler.cb = on_error;
  params.err_handler.arg = made.get();
  const ucs_status_t status = ucp_ep_create(worker->ucp(), &params, &made->ucp);
  if (status != UCS_OK) {
    return failure(BITRAIL_ERR_SYSTEM, "UCX cannot reach {}: {}; see UCX_TLS, UCX_NET_DEVICES",
                   name, ucs_status_string(status));
  }
  *endpoint = std::move(made);
  return {};
}

void lose_endpoint(Endpoint* endpoint, const Status& status) {
  if (!endpoint->failure.ok()) return;
  fail_endpoint(endpoint, status);
  endpoint->worker->failed.push_back(endpoint);
}

void fail_endpoint(Endpoint* endpoint, const Status& status) {
  endpoint->failure = status;
  for (UcxSender* sender : endpoint->senders) sender->fail(status);
  for (UcxReceiver* receiver : endpoint->receivers) receiver->fail(status);
}

}  // namespace bitrail::transport::ucx
