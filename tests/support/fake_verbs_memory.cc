// Protection domains, registrations and the checks of keys.
#include <cerrno>

#include "tests/support/fake_verbs_state.h"

namespace bitrail::test::fake {
namespace {

ibv_pd* alloc_pd(ibv_context* context) {
  const Lock lock(state().spin);
  errno = enter(Call::alloc_pd, context);
  if (errno != 0) return nullptr;
  auto* pd = new Pd;
  pd->context = context;
  state().pds.push_back(pd);
  state().counters.pds++;
  return pd;
}

int dealloc_pd(ibv_pd* pd) {
  const Lock lock(state().spin);
  if (static_cast<Pd*>(pd)->users > 0) {
    state().counters.stuck++;
    return EBUSY;
  }
  std::erase(state().pds, static_cast<Pd*>(pd));
  state().counters.pds--;
  delete static_cast<Pd*>(pd);
  return 0;
}

// Keys that neither repeat nor may be mixed up.
ibv_mr* make_mr(ibv_pd* pd, uint64_t address, size_t bytes, unsigned access, bool with_iova) {
  State& s = state();
  if (bytes == 0 || address + bytes < address ||
      ((access & IBV_ACCESS_REMOTE_WRITE) != 0 && (access & IBV_ACCESS_LOCAL_WRITE) == 0)) {
    errno = EINVAL;
    return nullptr;
  }
  if (s.counters.locked_bytes + bytes > device_of(pd->context)->facts.max_locked) {
    errno = ENOMEM;
    return nullptr;
  }
  auto* mr = new Mr;
  mr->context = pd->context;
  mr->pd = pd;
  mr->addr = reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
  mr->length = bytes;
  mr->lkey = s.next_key << 8 | 0x11;
  mr->rkey = s.next_key << 8 | 0x22;
  mr->access = static_cast<int>(access);
  mr->with_iova = with_iova;
  mr->order = s.registered++;
  s.next_key++;
  s.by_lkey[mr->lkey] = mr;
  s.by_rkey[mr->rkey] = mr;
  static_cast<Pd*>(pd)->users++;
  s.registered_any = true;
  s.counters.mrs++;
  s.counters.locked_bytes += bytes;
  s.counters.peak_mrs = std::max(s.counters.peak_mrs, static_cast<uint64_t>(s.counters.mrs));
  return mr;
}

ibv_mr* reg_mr(ibv_pd* pd, void* address, size_t bytes, int access) {
  const Lock lock(state().spin);
  errno = enter(Call::reg_mr, pd->context);
  if (errno != 0) return nullptr;
  return make_mr(pd, reinterpret_cast<uint64_t>(address), bytes, static_cast<unsigned>(access),
                 false);
}

ibv_mr* reg_mr_iova2(ibv_pd* pd, void* address, size_t bytes, uint64_t iova, unsigned access) {
  const Lock lock(state().spin);
  errno = enter(Call::reg_mr, pd->context);
  if (errno == 0 && iova != reinterpret_cast<uint64_t>(address)) errno = EINVAL;
  if (errno != 0) return nullptr;
  return make_mr(pd, iova, bytes, access, true);
}

ibv_mr* reg_dmabuf_mr(ibv_pd* pd, uint64_t /*offset*/, size_t bytes, uint64_t iova, int fd,
                      int access) {
  const Lock lock(state().spin);
  errno = enter(Call::reg_dmabuf_mr, pd->context);
  if (errno == 0 && !device_of(pd->context)->facts.dmabuf) errno = EOPNOTSUPP;
  if (errno == 0 && fd < 0) errno = EBADF;  // how support is probed
  if (errno != 0) return nullptr;
  return make_mr(pd, iova, bytes, static_cast<unsigned>(access), false);
}

int dereg_mr(ibv_mr* mr) {
  const Lock lock(state().spin);
  State& s = state();
  s.by_lkey.erase(mr->lkey);
  s.by_rkey.erase(mr->rkey);
  static_cast<Pd*>(mr->pd)->users--;
  s.counters.mrs--;
  s.counters.locked_bytes -= mr->length;
  delete static_cast<Mr*>(mr);
  return 0;
}

// As libibverbs: too late once memory was registered.
int fork_init() {
  const Lock lock(state().spin);
  const int error = enter(Call::fork_init, nullptr);
  return error == 0 && state().registered_any ? EINVAL : error;
}

const Mr* find(const std::unordered_map<uint32_t, Mr*>& keys, const ibv_pd* pd, uint32_t key,
               uint64_t address, size_t bytes, int access) {
  const auto found = keys.find(key);
  if (found == keys.end()) return nullptr;
  const Mr* mr = found->second;
  const auto start = reinterpret_cast<uint64_t>(mr->addr);
  const bool inside =
      address >= start && bytes <= mr->length && address - start <= mr->length - bytes;
  return inside && mr->pd == pd && (mr->access & access) == access ? mr : nullptr;
}

}  // namespace

const Mr* find_local(const ibv_pd* pd, uint32_t lkey, uint64_t address, size_t bytes, int access) {
  return find(state().by_lkey, pd, lkey, address, bytes, access);
}

const Mr* find_remote(const ibv_pd* pd, uint32_t rkey, uint64_t address, size_t bytes, int access) {
  return find(state().by_rkey, pd, rkey, address, bytes, access);
}

void fill_memory(transport::verbs::Table* table) {
  table->alloc_pd = alloc_pd;
  table->dealloc_pd = dealloc_pd;
  table->reg_mr = reg_mr;
  table->reg_mr_iova2 = reg_mr_iova2;
  table->reg_dmabuf_mr = reg_dmabuf_mr;
  table->dereg_mr = dereg_mr;
  table->fork_init = fork_init;
}

}  // namespace bitrail::test::fake
