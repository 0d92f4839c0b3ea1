// Attention of one query to cached keys in fp32 or bf16, and norms: the parts of a decoding step that are not matrix
// products.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "products.h"

namespace precis {
namespace {

constexpr float kHidden = -std::numeric_limits<float>::infinity();

// kLanes numbers as fp32.
inline Lanes widened(const float* from) { return load<Lanes>(from); }

inline Lanes widened(const c10::BFloat16* from) {
  typedef uint16_t Halves __attribute__((vector_size(2 * kLanes)));
  return (Lanes)(__builtin_convertvector(load<Halves>(from), Picks) << 16);
}

template <typename Number>
inline float dot(const float* x, const Number* y, int64_t count) {
  Lanes even{}, odd{};
  int64_t e = 0;
  for (; e + 2 * kLanes <= count; e += 2 * kLanes) {
    even += load<Lanes>(x + e) * widened(y + e);
    odd += load<Lanes>(x + e + kLanes) * widened(y + e + kLanes);
  }
  float rest = 0;
  for (; e < count; ++e) rest += x[e] * y[e];
  return sum_of(even + odd) + rest;
}

// out = sum of weight[j] * values[j]; `kVectors` registers of the columns from `e` on hold sums.
template <int kVectors, typename Number>
inline void mix_columns(const float* weights, const Number* values, int64_t count, int64_t width, float* out) {
  Lanes sum[kVectors] = {};
  for (int64_t j = 0; j < count; ++j) {
    if (weights[j] == 0.0f) continue;
    const Lanes weight = all(weights[j]);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sum[v] += weight * widened(values + j * width + v * kLanes);
  }
  for (int v = 0; v < kVectors; ++v) store(out + v * kLanes, sum[v]);
}

template <typename Number>
inline void mix_values(const float* weights, const Number* values, int64_t count, int64_t width, float* out) {
  int64_t e = 0;
  for (; e + 8 * kLanes <= width; e += 8 * kLanes) mix_columns<8>(weights, values + e, count, width, out + e);
  for (; e + 4 * kLanes <= width; e += 4 * kLanes) mix_columns<4>(weights, values + e, count, width, out + e);
  for (; e + kLanes <= width; e += kLanes) mix_columns<1>(weights, values + e, count, width, out + e);
  for (; e < width; ++e) {
    out[e] = 0;
    for (int64_t j = 0; j < count; ++j) out[e] += weights[j] == 0.0f ? 0.0f : weights[j] * values[j * width + e];
  }
}

// Replaces scores by their softmax; the room after them, up to a whole vector, is overwritten.
inline void softmax(float* scores, int64_t count) {
  const int64_t whole = up(count, kLanes);
  std::fill(scores + count, scores + whole, kHidden);
  Lanes top = all(kHidden), sum{};
  for (int64_t j = 0; j < whole; j += kLanes) top = larger(top, load<Lanes>(scores + j));
  const float highest = largest(top);
  for (int64_t j = 0; j < whole; j += kLanes) {
    const Lanes weight = exponential(load<Lanes>(scores + j) - highest);
    store(scores + j, weight);
    sum += weight;
  }
  const float scale = 1.0f / sum_of(sum);
  for (int64_t j = 0; j < whole; j += kLanes) store(scores + j, load<Lanes>(scores + j) * scale);
}

// A key and a value that only one query sees; none by default.
struct Own {
  const float *key = nullptr, *value = nullptr;
};

// out = softmax(scale q.k + score) v, with the scores in `scores` at first, that of the own key last: hidden keys are not
// read.
template <typename Number>
inline void mix(const float* query, const Number* keys, const Number* values, int64_t count, int64_t width, Own own,
                float scale, float* scores, float* out) {
  for (int64_t j = 0; j < count; ++j)
    if (scores[j] != kHidden) scores[j] += scale * dot(query, keys + j * width, width);
  if (own.key) scores[count] += scale * dot(query, own.key, width);
  softmax(scores, count + (own.key ? 1 : 0));
  mix_values(scores, values, count, width, out);
  for (int64_t e = 0; own.value && e < width; ++e) out[e] += scores[count] * own.value[e];
}

inline void add(const float* x, int64_t count, float* out) {
  for (int64_t e = 0; e < count; ++e) out[e] += x[e];
}

// out = x / sqrt(mean(x^2) + eps) * weight
inline void rms_norm(const float* x, const float* weight, int64_t width, float eps, float* out) {
  const float scale = 1.0f / std::sqrt(dot(x, x, width) / static_cast<float>(width) + eps);
  for (int64_t e = 0; e < width; ++e) out[e] = x[e] * scale * weight[e];
}

// out = (x - mean) / sqrt(variance + eps) * weight + bias
inline void layer_norm(const float* x, const float* weight, const float* bias, int64_t width, float eps, float* out) {
  float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
  for (int64_t e = 0; e < width; ++e) sum += x[e];
  const float mean = sum / static_cast<float>(width);
  for (int64_t e = 0; e < width; ++e) out[e] = x[e] - mean;
  const float scale = 1.0f / std::sqrt(dot(out, out, width) / static_cast<float>(width) + eps);
  for (int64_t e = 0; e < width; ++e) out[e] = out[e] * scale * weight[e] + bias[e];
}

inline void relu(float* x, int64_t count) {
  for (int64_t i = 0; i < count; ++i) x[i] = x[i] > 0.0f ? x[i] : 0.0f;
}

// x = x * P(N(0, 1) < x), by Abramowitz and Stegun's 7.1.26, with an error of 1e-7; `count` is a multiple of kLanes.
inline void gelu(float* x, int64_t count) {
  for (int64_t i = 0; i < count; i += kLanes) {
    const Lanes given = load<Lanes>(x + i), size = larger(given, -given) * 0.70710678f;
    const Lanes t = 1.0f / (1.0f + 0.3275911f * size);
    Lanes p = 1.061405429f * t - 1.453152027f;
    p = p * t + 1.421413741f;
    p = p * t - 0.284496736f;
    p = p * t + 0.254829592f;
    const Lanes tail = 0.5f * p * t * exponential(-size * size);  // P(N(0, 1) > |x|)
    store(x + i, larger(given, Lanes{}) - larger(given, -given) * tail);
  }
}

// x = gelu(gate) * x, GELU in its tanh form: g / (1 + e^-2z); `count` is a multiple of kLanes.
inline void gate_by_gelu(const float* gates, float* x, int64_t count) {
  for (int64_t i = 0; i < count; i += kLanes) {
    const Lanes g = load<Lanes>(gates + i);
    const Lanes power = -1.5957691216f * (g + 0.044715f * g * g * g);
    const Lanes bounded = -larger(-power, all(-87.0f));
    store(x + i, g / (1.0f + exponential(bounded)) * load<Lanes>(x + i));
  }
}

// One row times a panel: eight sums, so that additions do not wait for each other.
inline void product_of_row(int64_t depth, const float* x, const float* panel, float* out) {
  Lanes sum[4][2] = {};
  int64_t e = 0;
  for (; e + 4 <= depth; e += 4, panel += 4 * kPanel)
#pragma GCC unroll 4
    for (int u = 0; u < 4; ++u)
      for (int v = 0; v < 2; ++v) sum[u][v] += x[e + u] * load<Lanes>(panel + u * kPanel + v * kLanes);
  for (; e < depth; ++e, panel += kPanel)
    for (int v = 0; v < 2; ++v) sum[0][v] += x[e] * load<Lanes>(panel + v * kLanes);
  for (int v = 0; v < 2; ++v) store(out + v * kLanes, (sum[0][v] + sum[1][v]) + (sum[2][v] + sum[3][v]));
}

// out (rows, outputs) = x (rows, depth) @ panels [outputs / kPanel][depth][kPanel]
inline void multiply(int64_t rows, int64_t depth, const float* x, int64_t row, const float* panels, int64_t outputs,
                     float* out, int64_t stride) {
  for (int64_t o = 0; o < outputs; o += kPanel, panels += depth * kPanel) {
    if (rows == 1)
      product_of_row(depth, x, panels, out + o);
    else
      product<Begin::zero, Cell::number, 2, Ahead::panel>(rows, depth, {x, row, 1}, panels, out + o, stride);
  }
}

}  // namespace
}  // namespace precis
