#include "tests/train/reference.h"

#include <algorithm>
#include <cmath>

namespace bitrail::train::reference {
namespace {

size_t Index(int64_t i) { return static_cast<size_t>(i); }

void Add(Values* x, const Values& y) {
  for (size_t i = 0; i < x->size(); i++) (*x)[i] += y[i];
}

Values Layer(const Shape& shape, const double* w, const LayerOffsets& o, Values x) {
  const int64_t t = shape.tokens();
  const int64_t d = shape.width;
  const Values qkv = Linear(LayerNorm(x, w + o.norm1, d), w + o.qkv, w + o.qkv_bias, t, d, 3 * d);
  Add(&x, Linear(Attention(shape, qkv), w + o.proj, w + o.proj_bias, t, d, d));
  const Values up =
      Linear(LayerNorm(x, w + o.norm2, d), w + o.up, w + o.up_bias, t, d, shape.hidden());
  Add(&x, Linear(Gelu(up), w + o.down, w + o.down_bias, t, shape.hidden(), d));
  return x;
}

}  // namespace

Values Widen(const std::vector<float>& x) { return {x.begin(), x.end()}; }

Values Linear(const Values& x, const double* w, const double* bias, int64_t rows, int64_t in,
              int64_t out) {
  Values y(Index(rows * out));
  for (int64_t r = 0; r < rows; r++) {
    for (int64_t o = 0; o < out; o++) {
      double sum = bias[o];
      for (int64_t i = 0; i < in; i++) sum += x[Index(r * in + i)] * w[i * out + o];
      y[Index(r * out + o)] = sum;
    }
  }
  return y;
}

Values LayerNorm(const Values& x, const double* scale_shift, int64_t width) {
  Values y(x.size());
  const auto n = static_cast<double>(width);
  for (size_t row = 0; row < x.size(); row += Index(width)) {
    double mean = 0;
    for (int64_t i = 0; i < width; i++) mean += x[row + Index(i)] / n;
    double variance = 0;
    for (int64_t i = 0; i < width; i++) {
      const double c = x[row + Index(i)] - mean;
      variance += c * c / n;
    }
    for (int64_t i = 0; i < width; i++)
      y[row + Index(i)] = (x[row + Index(i)] - mean) / std::sqrt(variance + 1e-5) * scale_shift[i] +
                          scale_shift[width + i];
  }
  return y;
}

Values Softmax(const Values& x, int64_t width) {
  Values p(x.size());
  for (size_t row = 0; row < x.size(); row += Index(width)) {
    const double top = *std::max_element(&x[row], &x[row] + width);
    double sum = 0;
    for (size_t i = row; i < row + Index(width); i++) sum += p[i] = std::exp(x[i] - top);
    for (size_t i = row; i < row + Index(width); i++) p[i] /= sum;
  }
  return p;
}

Values Gelu(const Values& x) {
  Values y(x.size());
  const double root = std::sqrt(2 / 3.141592653589793);
  for (size_t i = 0; i < x.size(); i++)
    y[i] = x[i] / 2 * (1 + std::tanh(root * (x[i] + 0.044715 * x[i] * x[i] * x[i])));
  return y;
}

Values Attention(const Shape& shape, const Values& qkv) {
  const int64_t s = shape.sequence;
  const int64_t dh = shape.head_width();
  const auto at = [&](int64_t b, int64_t t, int64_t third, int64_t h, int64_t i) {
    return qkv[Index((b * s + t) * 3 * shape.width + third * shape.width + h * dh + i)];
  };
  Values out(Index(shape.tokens() * shape.width));
  for (int64_t b = 0; b < shape.batch; b++) {
    for (int64_t h = 0; h < shape.heads; h++) {
      for (int64_t t = 0; t < s; t++) {
        Values score(Index(s));
        for (int64_t u = 0; u < s; u++)
          for (int64_t i = 0; i < dh; i++)
            score[Index(u)] +=
                at(b, t, 0, h, i) * at(b, u, 1, h, i) / std::sqrt(static_cast<double>(dh));
        const Values p = Softmax(score, s);
        for (int64_t u = 0; u < s; u++)
          for (int64_t i = 0; i < dh; i++)
            out[Index((b * s + t) * shape.width + h * dh + i)] += p[Index(u)] * at(b, u, 2, h, i);
      }
    }
  }
  return out;
}

double CrossEntropy(const Shape& shape, const Batch& batch, const Values& logits) {
  const Values p = Softmax(logits, shape.vocabulary);
  double loss = 0;
  for (size_t i = 0; i < batch.target.size(); i++)
    loss -= std::log(p[i * Index(shape.vocabulary) + batch.target[i]]);
  return loss / static_cast<double>(batch.target.size());
}

double Loss(const Shape& shape, const Layout& layout, const Values& parameters,
            const Batch& batch) {
  const double* w = parameters.data();
  const int64_t d = shape.width;
  const int64_t v = shape.vocabulary;
  Values x(Index(shape.tokens() * d));
  for (int64_t t = 0; t < shape.tokens(); t++)
    for (int64_t i = 0; i < d; i++)
      x[Index(t * d + i)] = w[layout.token + Index(batch.input[Index(t)] * d + i)] +
                            w[layout.position + Index(t % shape.sequence * d + i)];
  for (const LayerOffsets& o : layout.layers) x = Layer(shape, w, o, std::move(x));

  Values picked;
  for (const int32_t p : batch.position)
    picked.insert(picked.end(), &x[Index(p * d)], &x[Index(p * d)] + d);
  const Values head = LayerNorm(picked, w + layout.norm, d);
  Values token_transposed(Index(d * v));
  for (int64_t k = 0; k < v; k++)
    for (int64_t i = 0; i < d; i++)
      token_transposed[Index(i * v + k)] = w[layout.token + Index(k * d + i)];
  return CrossEntropy(shape, batch,
                      Linear(head, token_transposed.data(), w + layout.head_bias,
                             static_cast<int64_t>(batch.position.size()), d, v));
}

Values Difference(const std::function<double(const Values&)>& f, Values x,
                  const std::vector<size_t>& at) {
  constexpr double kStep = 1e-5;  // truncation and rounding errors are both near 1e-10 here
  Values result;
  for (const size_t i : at) {
    const double keep = x[i];
    x[i] = keep + kStep;
    const double up = f(x);
    x[i] = keep - kStep;
    result.push_back((up - f(x)) / (2 * kStep));
    x[i] = keep;
  }
  return result;
}

}  // namespace bitrail::train::reference
