#include "tools/train/primitives.h"

#include <cstdlib>

// From OpenMP's runtime, which oneDNN brings along; <omp.h> is in the compiler's own folder, where
// other compilers and checkers do not find it.
extern "C" void omp_set_num_threads(int threads);

namespace bitrail::train {
namespace {

using dnnl::memory;
using dnnl::prop_kind;

constexpr float kEpsilon = 1e-5F;
constexpr auto kNormFlags = dnnl::normalization_flags::use_scale_shift;

memory::desc Plain(int64_t rows, int64_t width) {
  return {{rows, width}, memory::data_type::f32, memory::format_tag::ab};
}
memory::desc Vector(int64_t count) {
  return {{count}, memory::data_type::f32, memory::format_tag::a};
}

// oneDNN takes inputs as non-const too; it does not write them.
memory Wrap(const Device& device, const memory::desc& desc, const float* data) {
  return {desc, device.engine, const_cast<float*>(data)};
}

}  // namespace

Device::Device() : engine(dnnl::engine::kind::cpu, 0), stream(engine) {
  if (std::getenv("OMP_NUM_THREADS") == nullptr) omp_set_num_threads(1);
}

LayerNorm::LayerNorm(Device* device, int64_t rows, int64_t width)
    : device_(device),
      data_(Plain(rows, width)),
      factors_(Plain(2, width)),
      statistics_(Vector(rows)) {
  const dnnl::layer_normalization_forward::primitive_desc forward(
      {prop_kind::forward_training, data_, statistics_, kEpsilon, kNormFlags}, device->engine);
  forward_ = dnnl::layer_normalization_forward(forward);
  backward_ = dnnl::layer_normalization_backward(
      {{prop_kind::backward, data_, data_, statistics_, kEpsilon, kNormFlags},
       device->engine,
       forward});
}

void LayerNorm::Forward(const float* x, const float* scale_shift, float* y, float* mean,
                        float* variance) {
  forward_.execute(device_->stream, {{DNNL_ARG_SRC, Wrap(*device_, data_, x)},
                                     {DNNL_ARG_SCALE_SHIFT, Wrap(*device_, factors_, scale_shift)},
                                     {DNNL_ARG_MEAN, Wrap(*device_, statistics_, mean)},
                                     {DNNL_ARG_VARIANCE, Wrap(*device_, statistics_, variance)},
                                     {DNNL_ARG_DST, Wrap(*device_, data_, y)}});
}

void LayerNorm::Backward(const float* x, const float* scale_shift, const float* mean,
                         const float* variance, const float* dy, float* dx, float* dscale_shift) {
  backward_.execute(device_->stream,
                    {{DNNL_ARG_SRC, Wrap(*device_, data_, x)},
                     {DNNL_ARG_SCALE_SHIFT, Wrap(*device_, factors_, scale_shift)},
                     {DNNL_ARG_MEAN, Wrap(*device_, statistics_, mean)},
                     {DNNL_ARG_VARIANCE, Wrap(*device_, statistics_, variance)},
                     {DNNL_ARG_DIFF_DST, Wrap(*device_, data_, dy)},
                     {DNNL_ARG_DIFF_SRC, Wrap(*device_, data_, dx)},
                     {DNNL_ARG_DIFF_SCALE_SHIFT, Wrap(*device_, factors_, dscale_shift)}});
}

Softmax::Softmax(Device* device, int64_t rows, int64_t width)
    : device_(device), data_(Plain(rows, width)) {
  const dnnl::softmax_forward::primitive_desc forward({prop_kind::forward_training, data_, 1},
                                                      device->engine);
  forward_ = dnnl::softmax_forward(forward);
  backward_ = dnnl::softmax_backward({{data_, data_, 1}, device->engine, forward});
}

void Softmax::Forward(float* x) {
  const memory data = Wrap(*device_, data_, x);
  forward_.execute(device_->stream, {{DNNL_ARG_SRC, data}, {DNNL_ARG_DST, data}});
}

void Softmax::Backward(const float* p, float* dp) {
  const memory diff = Wrap(*device_, data_, dp);
  backward_.execute(device_->stream, {{DNNL_ARG_DST, Wrap(*device_, data_, p)},
                                      {DNNL_ARG_DIFF_DST, diff},
                                      {DNNL_ARG_DIFF_SRC, diff}});
}

Gelu::Gelu(Device* device, int64_t count) : device_(device), data_(Vector(count)) {
  const auto kind = dnnl::algorithm::eltwise_gelu_tanh;
  const dnnl::eltwise_forward::primitive_desc forward(
      {prop_kind::forward_training, kind, data_, 0.0F, 0.0F}, device->engine);
  forward_ = dnnl::eltwise_forward(forward);
  backward_ = dnnl::eltwise_backward({{kind, data_, data_, 0.0F, 0.0F}, device->engine, forward});
}

void Gelu::Forward(const float* x, float* y) {
  forward_.execute(device_->stream, {{DNNL_ARG_SRC, Wrap(*device_, data_, x)},
                                     {DNNL_ARG_DST, Wrap(*device_, data_, y)}});
}

void Gelu::Backward(const float* x, const float* dy, float* dx) {
  backward_.execute(device_->stream, {{DNNL_ARG_SRC, Wrap(*device_, data_, x)},
                                      {DNNL_ARG_DIFF_DST, Wrap(*device_, data_, dy)},
                                      {DNNL_ARG_DIFF_SRC, Wrap(*device_, data_, dx)}});
}

}  // namespace bitrail::train
