#include "runtime/bootstrap/proof.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "runtime/bootstrap/bytes.h"

namespace bitrail::bootstrap {
namespace {

// A frame: magic (4), version (1), kind (1), payload bytes (2), payload.
constexpr std::array<uint8_t, 5> kMagicAndVersion = {'B', 'R', 'P', 'F', 1};
constexpr size_t kHeader = 8;
constexpr uint8_t kHello = 1, kAnswer = 2, kAlert = 3;
constexpr size_t kNonce = 32, kHash = 32;
constexpr size_t kHelloBytes = 1 + 1 + 4 + kHash + kNonce, kAnswerBytes = kHash, kAlertBytes = 4;
static_assert(kHeader + kHelloBytes <= kProofMaxBuffered);

size_t payload_bytes(uint8_t kind) {
  switch (kind) {
    case kHello:
      return kHelloBytes;
    case kAnswer:
      return kAnswerBytes;
    case kAlert:
      return kAlertBytes;
    default:
      return 0;
  }
}

Side other(Side side) { return side == Side::connector ? Side::acceptor : Side::connector; }

std::array<uint8_t, kHash> hash(const std::string& text) {
  std::array<uint8_t, kHash> result;
  SHA256(reinterpret_cast<const uint8_t*>(text.data()), text.size(), result.data());
  return result;
}

Status not_bitrail(const char* what) {
  return failure(
      BITRAIL_ERR_PROTOCOL,
      "the peer does not speak this version of BitRail's handshake ({}): another version "
      "or another program (BITRAIL_RENDEZVOUS names the address)",
      what);
}

}  // namespace

Proof::Proof(Side side, std::string secret, std::string job_id, int rank)
    : side_(side), secret_(std::move(secret)), job_id_(std::move(job_id)), rank_(rank) {
  std::array<uint8_t, kNonce> nonce;
  if (getrandom(nonce.data(), nonce.size(), 0) != static_cast<ssize_t>(nonce.size())) {
    failure_ = failure(BITRAIL_ERR_SYSTEM, "getrandom: {}", std::strerror(errno));
    phase_ = Phase::failed;
    return;
  }
  put(&my_hello_, static_cast<uint8_t>(side_));
  put(&my_hello_, static_cast<uint8_t>(secret_.empty() ? 0 : 1));
  put(&my_hello_, static_cast<uint32_t>(rank_));
  const auto job = hash(job_id_);
  my_hello_.insert(my_hello_.end(), job.begin(), job.end());
  my_hello_.insert(my_hello_.end(), nonce.begin(), nonce.end());
  send(kHello, my_hello_);
}

int Proof::peer_rank() const { return done() ? peer_rank_ : -1; }

std::vector<uint8_t> Proof::take_output() { return std::exchange(output_, {}); }

void Proof::send(uint8_t kind, std::span<const uint8_t> payload) {
  output_.insert(output_.end(), kMagicAndVersion.begin(), kMagicAndVersion.end());
  put(&output_, kind);
  put(&output_, static_cast<uint16_t>(payload.size()));
  output_.insert(output_.end(), payload.begin(), payload.end());
}

Status Proof::fail(Status status, bool tell_peer) {
  failure_ = std::move(status);
  phase_ = Phase::failed;
  if (tell_peer) {
    std::vector<uint8_t> reason;
    put(&reason, static_cast<uint32_t>(failure_.code()));
    send(kAlert, reason);
  }
  return failure_;
}

// HMAC-SHA256(secret, label || side || connector's hello || acceptor's hello).
std::vector<uint8_t> Proof::mac(const char* label, Side side) const {
  std::vector<uint8_t> message(label, label + std::strlen(label));
  message.push_back(static_cast<uint8_t>(side));
  const bool connector = side_ == Side::connector;
  const std::vector<uint8_t>& first = connector ? my_hello_ : peer_hello_;
  const std::vector<uint8_t>& second = connector ? peer_hello_ : my_hello_;
  message.insert(message.end(), first.begin(), first.end());
  message.insert(message.end(), second.begin(), second.end());
  std::vector<uint8_t> result(kHash);
  unsigned int bytes = 0;
  if (HMAC(EVP_sha256(), secret_.data(), static_cast<int>(secret_.size()), message.data(),
           message.size(), result.data(), &bytes) == nullptr ||
      bytes != kHash) {
    result.clear();  // matches nothing
  }
  return result;
}

Status Proof::on_hello(std::span<const uint8_t> payload) {
  peer_hello_.assign(payload.begin(), payload.end());
  Reader reader(payload);
  const auto side = static_cast<Side>(reader.get<uint8_t>());
  const bool has_secret = reader.get<uint8_t>() != 0;
  peer_rank_ = reader.get<int32_t>();
  const auto peer_job = reader.take(kHash);
  if (side != other(side_)) return fail(not_bitrail("it plays the same part as this side"), true);
  if (secret_.empty()) {
    return fail(failure(BITRAIL_ERR_SECRET_MISSING,
                        "no job secret here (rank {}): set BITRAIL_SECRET to the same value at "
                        "every rank, or start by `bitrail launch`",
                        rank_),
                true);
  }
  if (!has_secret) {
    return fail(failure(BITRAIL_ERR_SECRET_MISSING,
                        "the peer (rank {} as it says) has no job secret: set BITRAIL_SECRET there",
                        peer_rank_),
                true);
  }
  const auto job = hash(job_id_);
  if (!std::equal(job.begin(), job.end(), peer_job.begin(), peer_job.end())) {
    return fail(failure(BITRAIL_ERR_JOB_ID,
                        "the peer (rank {} as it says) belongs to another job than '{}' "
                        "(BITRAIL_JOB_ID)",
                        peer_rank_, job_id_),
                true);
  }
  phase_ = Phase::answer;
  if (side_ == Side::connector) send(kAnswer, mac("bitrail proof", side_));
  return {};
}

Status Proof::on_answer(std::span<const uint8_t> payload) {
  const std::vector<uint8_t> expected = mac("bitrail proof", other(side_));
  if (expected.size() != payload.size() ||
      CRYPTO_memcmp(expected.data(), payload.data(), payload.size()) != 0) {
    return fail(failure(BITRAIL_ERR_SECRET_WRONG,
                        "the peer (rank {} as it says) does not know this job's secret "
                        "(BITRAIL_SECRET)",
                        peer_rank_),
                true);
  }
  if (side_ == Side::acceptor) send(kAnswer, mac("bitrail proof", side_));
  session_ = mac("bitrail session", Side::connector);
  phase_ = Phase::done;
  return {};
}

Status Proof::on_alert(std::span<const uint8_t> payload) {
  switch (Reader(payload).get<uint32_t>()) {
    case BITRAIL_ERR_SECRET_MISSING:
      return fail(
          failure(BITRAIL_ERR_SECRET_MISSING,
                  "the peer refused rank {}: a job secret is missing (BITRAIL_SECRET)", rank_),
          false);
    case BITRAIL_ERR_SECRET_WRONG:
      return fail(
          failure(BITRAIL_ERR_SECRET_WRONG,
                  "the peer refused rank {}: the job secrets differ (BITRAIL_SECRET)", rank_),
          false);
    case BITRAIL_ERR_JOB_ID:
      return fail(failure(BITRAIL_ERR_JOB_ID,
                          "the peer refused rank {}: it belongs to another job than '{}' "
                          "(BITRAIL_JOB_ID)",
                          rank_, job_id_),
                  false);
    default:
      return fail(not_bitrail("it refused our handshake"), false);
  }
}

Status Proof::feed(std::span<const uint8_t> bytes, size_t* used) {
  *used = 0;
  if (phase_ == Phase::failed) return failure_;
  while (phase_ != Phase::done) {
    // Exactly the frame's bytes: what follows the proof belongs to the caller.
    const size_t want =
        input_.size() < kHeader ? kHeader : kHeader + payload_bytes(input_[kHeader - 3]);
    const size_t count = std::min(want - input_.size(), bytes.size() - *used);
    const auto from = bytes.subspan(*used, count);
    input_.insert(input_.end(), from.begin(), from.end());
    *used += count;
    const size_t known = std::min(input_.size(), kMagicAndVersion.size());
    if (!std::equal(input_.begin(), input_.begin() + static_cast<ptrdiff_t>(known),
                    kMagicAndVersion.begin())) {
      return fail(not_bitrail("other magic or version"), true);
    }
    if (input_.size() < kHeader) return {};
    const uint8_t kind = input_[kHeader - 3];
    const size_t size = input_[kHeader - 2] | size_t{input_[kHeader - 1]} << 8;
    const bool expected = kind == kAlert || kind == (phase_ == Phase::hello ? kHello : kAnswer);
    if (!expected || size != payload_bytes(kind)) return fail(not_bitrail("bad frame"), true);
    if (input_.size() < kHeader + size) {
      if (*used == bytes.size()) return {};
      continue;
    }
    const std::vector<uint8_t> frame = std::exchange(input_, {});
    const auto payload = std::span(frame).subspan(kHeader);
    BITRAIL_TRY(kind == kHello    ? on_hello(payload)
                : kind == kAnswer ? on_answer(payload)
                                  : on_alert(payload));
    if (*used == bytes.size()) return {};
  }
  return {};
}

}  // namespace bitrail::bootstrap
