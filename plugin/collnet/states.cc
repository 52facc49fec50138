#include "plugin/collnet/states.h"

#include "plugin/log/log.h"

namespace bitrail::plugin::collnet {

bitrail_onebit_layout_t onebit_layout(const size_t* count) {
  bitrail_onebit_layout_t layout{};
  layout.struct_size = sizeof(layout);
  layout.segments = 1;
  layout.counts = count;
  layout.scale = BITRAIL_SCALE_BLOCK;
  layout.norm = BITRAIL_NORM_L1;
  layout.block = 4096;
  layout.padding = BITRAIL_PADDING_TIGHT;
  return layout;
}

States::Entries::iterator States::first_touching(const std::byte* begin) {
  auto place = entries_.upper_bound(begin);
  if (place == entries_.begin()) return place;
  const auto before = std::prev(place);
  return before->first + before->second.bytes > begin ? before : place;
}

size_t States::drop(const void* data, size_t bytes) {
  const auto* begin = static_cast<const std::byte*>(data);
  size_t dropped = 0;
  auto place = first_touching(begin);
  while (place != entries_.end() && place->first < begin + bytes) {
    (void)bitrail_error_state_destroy(place->second.state);
    place = entries_.erase(place);
    dropped++;
  }
  return dropped;
}

void States::clear() {
  for (const auto& [data, entry] : entries_) (void)bitrail_error_state_destroy(entry.state);
  entries_.clear();
}

Status States::find(bitrail_comm_t comm, const void* data, size_t count, bitrail_type_t type,
                    bitrail_error_state_t* state) {
  const auto* begin = static_cast<const std::byte*>(data);
  const size_t bytes = count * bitrail_type_size(type);
  const auto known = entries_.find(begin);
  if (known != entries_.end() && known->second.bytes == bytes && known->second.type == type) {
    *state = known->second.state;
    return {};
  }
  const size_t dropped = drop(data, bytes);
  if (dropped > 0) {
    warn("iallreduce",
         "{} bytes at {} were reduced in other pieces or as another type before: the errors of {} "
         "range(s) are dropped",
         bytes, data, dropped);
  }
  const bitrail_onebit_layout_t layout = onebit_layout(&count);
  bitrail_error_state_t made = nullptr;
  const bitrail_status_t code = bitrail_error_state_create(&made, comm, &layout);
  if (code != BITRAIL_OK) return Status(code, bitrail_last_error());
  entries_.emplace(begin, Entry{bytes, type, made});
  *state = made;
  return {};
}

}  // namespace bitrail::plugin::collnet
