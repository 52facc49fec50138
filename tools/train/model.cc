#include "tools/train/model.h"

#include <algorithm>
#include <new>

#include "tools/train/embedding.h"
#include "tools/train/gemm.h"

namespace bitrail::train {
namespace {

std::vector<float> Floats(int64_t count) { return std::vector<float>(static_cast<size_t>(count)); }

LayerState MakeLayerState(const Shape& shape) {
  const int64_t t = shape.tokens();
  const int64_t d = shape.width;
  LayerState s;
  for (auto* x : {&s.input, &s.norm1, &s.mixed, &s.middle, &s.norm2}) *x = Floats(t * d);
  for (auto* x : {&s.mean1, &s.variance1, &s.mean2, &s.variance2}) *x = Floats(t);
  s.qkv = Floats(t * 3 * d);
  s.p = Floats(shape.batch * shape.heads * shape.sequence * shape.sequence);
  s.up = Floats(t * shape.hidden());
  s.gelu = Floats(t * shape.hidden());
  return s;
}

// sum = a + b
void Add(const std::vector<float>& a, const float* b, float* sum) {
  for (size_t i = 0; i < a.size(); i++) sum[i] = a[i] + b[i];
}

// Runs oneDNN code, which throws, and turns its exceptions into a status.
template <typename Function>
Status Guard(Function&& function) {
  try {
    function();
  } catch (const dnnl::error& error) {
    return failure(BITRAIL_ERR_SYSTEM, "oneDNN: {} (status {})", error.what(),
                   static_cast<int>(error.status));
  } catch (const std::bad_alloc&) {
    return failure(BITRAIL_ERR_NO_MEMORY, "no memory for the model; take a smaller one");
  }
  return {};
}

}  // namespace

Status Model::Create(const Shape& shape, std::unique_ptr<Model>* model) {
  return Guard([&] { model->reset(new Model(shape)); });
}

Model::Model(const Shape& shape)
    : shape_(shape),
      layout_(MakeLayout(shape)),
      norm_(&device_, shape.tokens(), shape.width),
      head_norm_(&device_, shape.predictions(), shape.width),
      gelu_(&device_, shape.tokens() * shape.hidden()),
      attention_(&device_, shape) {
  const int64_t t = shape.tokens();
  for (int64_t l = 0; l < shape.layers; l++) layers_.push_back(MakeLayerState(shape));
  for (auto* x : {&output_, &dx_, &dbranch_}) *x = Floats(t * shape.width);
  dhidden_ = Floats(t * shape.hidden());
  for (auto* x : {&picked_, &head_, &dhead_}) *x = Floats(shape.predictions() * shape.width);
  head_mean_ = Floats(shape.predictions());
  head_variance_ = Floats(shape.predictions());
  logits_ = Floats(shape.predictions() * shape.vocabulary);
}

Status Model::Loss(const float* parameters, const Batch& batch, double* loss) {
  return Guard([&] { *loss = Forward(parameters, batch); });
}

Status Model::LossAndGradient(const float* parameters, const Batch& batch, double* loss,
                              float* gradient) {
  return Guard([&] {
    *loss = Forward(parameters, batch);
    Backward(parameters, batch, gradient);
  });
}

double Model::Forward(const float* w, const Batch& batch) {
  float* x = layers_.empty() ? output_.data() : layers_[0].input.data();
  EmbeddingForward(shape_, batch, w + layout_.token, w + layout_.position, x);
  for (size_t l = 0; l < layers_.size(); l++) {
    float* out = l + 1 < layers_.size() ? layers_[l + 1].input.data() : output_.data();
    LayerForward(w, layout_.layers[l], &layers_[l], out);
  }
  HeadForward(w, batch);
  return CrossEntropy(shape_, batch, logits_.data());
}

void Model::Backward(const float* w, const Batch& batch, float* g) {
  HeadBackward(w, batch, g);
  for (size_t l = layers_.size(); l-- > 0;) LayerBackward(w, layout_.layers[l], &layers_[l], g);
  EmbeddingBackward(shape_, batch, dx_.data(), g + layout_.token, g + layout_.position);
}

void Model::LayerForward(const float* w, const LayerOffsets& o, LayerState* s, float* out) {
  const int64_t t = shape_.tokens();
  const int64_t d = shape_.width;
  const int64_t hidden = shape_.hidden();
  norm_.Forward(s->input.data(), w + o.norm1, s->norm1.data(), s->mean1.data(),
                s->variance1.data());
  LinearForward({t, d, 3 * d}, s->norm1.data(), w + o.qkv, w + o.qkv_bias, s->qkv.data());
  attention_.Forward(s->qkv.data(), s->p.data(), s->mixed.data());
  LinearForward({t, d, d}, s->mixed.data(), w + o.proj, w + o.proj_bias, s->middle.data());
  Add(s->input, s->middle.data(), s->middle.data());

  norm_.Forward(s->middle.data(), w + o.norm2, s->norm2.data(), s->mean2.data(),
                s->variance2.data());
  LinearForward({t, d, hidden}, s->norm2.data(), w + o.up, w + o.up_bias, s->up.data());
  gelu_.Forward(s->up.data(), s->gelu.data());
  LinearForward({t, hidden, d}, s->gelu.data(), w + o.down, w + o.down_bias, out);
  Add(s->middle, out, out);
}

// dx_ comes in as the gradient of the layer's output and leaves as that of its input.
void Model::LayerBackward(const float* w, const LayerOffsets& o, LayerState* s, float* g) {
  const int64_t t = shape_.tokens();
  const int64_t d = shape_.width;
  const int64_t hidden = shape_.hidden();
  float* branch = dbranch_.data();
  float* wide = dhidden_.data();
  LinearBackward({t, hidden, d}, s->gelu.data(), w + o.down, dx_.data(), wide, g + o.down,
                 g + o.down_bias);
  gelu_.Backward(s->up.data(), wide, wide);
  LinearBackward({t, d, hidden}, s->norm2.data(), w + o.up, wide, branch, g + o.up, g + o.up_bias);
  norm_.Backward(s->middle.data(), w + o.norm2, s->mean2.data(), s->variance2.data(), branch,
                 branch, g + o.norm2);
  Add(dx_, branch, dx_.data());

  LinearBackward({t, d, d}, s->mixed.data(), w + o.proj, dx_.data(), branch, g + o.proj,
                 g + o.proj_bias);
  attention_.Backward(s->qkv.data(), s->p.data(), branch, wide);
  LinearBackward({t, d, 3 * d}, s->norm1.data(), w + o.qkv, wide, branch, g + o.qkv,
                 g + o.qkv_bias);
  // A bias of the keys shifts all scores of a query alike: it has no effect, and what the sum left
  // is rounding noise that Adam would blow up to whole steps.
  std::fill_n(g + o.qkv_bias + d, d, 0.0F);
  norm_.Backward(s->input.data(), w + o.norm1, s->mean1.data(), s->variance1.data(), branch, branch,
                 g + o.norm1);
  Add(dx_, branch, dx_.data());
}

void Model::HeadForward(const float* w, const Batch& batch) {
  const int64_t n = shape_.predictions();
  const int64_t v = shape_.vocabulary;
  const int64_t d = shape_.width;
  Gather(shape_, batch, output_.data(), picked_.data());
  head_norm_.Forward(picked_.data(), w + layout_.norm, head_.data(), head_mean_.data(),
                     head_variance_.data());
  for (int64_t row = 0; row < n; row++)
    std::copy_n(w + layout_.head_bias, v, logits_.data() + row * v);
  Gemm(n, v, d, 1, {head_.data(), d}, {w + layout_.token, d, true}, 1, logits_.data(), v);
}

void Model::HeadBackward(const float* w, const Batch& batch, float* g) {
  const int64_t n = shape_.predictions();
  const int64_t v = shape_.vocabulary;
  const int64_t d = shape_.width;
  const float* dlogits = logits_.data();
  SumRows(dlogits, n, v, g + layout_.head_bias);
  // Writes the token embedding's gradient; EmbeddingBackward adds its part later.
  Gemm(v, d, n, 1, {dlogits, v, true}, {head_.data(), d}, 0, g + layout_.token, d);
  Gemm(n, d, v, 1, {dlogits, v}, {w + layout_.token, d}, 0, dhead_.data(), d);
  head_norm_.Backward(picked_.data(), w + layout_.norm, head_mean_.data(), head_variance_.data(),
                      dhead_.data(), dhead_.data(), g + layout_.norm);
  Scatter(shape_, batch, dhead_.data(), dx_.data());
}

}  // namespace bitrail::train
