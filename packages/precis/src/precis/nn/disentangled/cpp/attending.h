// Attention of one query to cached keys, and RMS norms: the parts of a decoding step that are not matrix products.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "products.h"

namespace precis {
namespace {

constexpr float kHidden = -std::numeric_limits<float>::infinity();

inline float dot(const float* x, const float* y, int64_t count) {
  Lanes even{}, odd{};
  int64_t e = 0;
  for (; e + 2 * kLanes <= count; e += 2 * kLanes) {
    even += load<Lanes>(x + e) * load<Lanes>(y + e);
    odd += load<Lanes>(x + e + kLanes) * load<Lanes>(y + e + kLanes);
  }
  float rest = 0;
  for (; e < count; ++e) rest += x[e] * y[e];
  return sum_of(even + odd) + rest;
}

// out = sum of weight[j] * values[j]; `kVectors` registers of the columns from `e` on hold sums.
template <int kVectors>
inline void mix_columns(const float* weights, const float* values, int64_t count, int64_t width, float* out) {
  Lanes sum[kVectors] = {};
  for (int64_t j = 0; j < count; ++j) {
    if (weights[j] == 0.0f) continue;
    const Lanes weight = all(weights[j]);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sum[v] += weight * load<Lanes>(values + j * width + v * kLanes);
  }
  for (int v = 0; v < kVectors; ++v) store(out + v * kLanes, sum[v]);
}

inline void mix_values(const float* weights, const float* values, int64_t count, int64_t width, float* out) {
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

// out = softmax(q.k + score) v, with the scores in `scores` at first: hidden keys are not read.
inline void mix(const float* query, const float* keys, const float* values, int64_t count, int64_t width,
                float* scores, float* out) {
  for (int64_t j = 0; j < count; ++j)
    if (scores[j] != kHidden) scores[j] += dot(query, keys + j * width, width);
  softmax(scores, count);
  mix_values(scores, values, count, width, out);
}

// out = x / sqrt(mean(x^2) + eps) * weight
inline void rms_norm(const float* x, const float* weight, int64_t width, float eps, float* out) {
  const float scale = 1.0f / std::sqrt(dot(x, x, width) / static_cast<float>(width) + eps);
  for (int64_t e = 0; e < width; ++e) out[e] = x[e] * scale * weight[e];
}

inline void relu(float* x, int64_t count) {
  for (int64_t i = 0; i < count; ++i) x[i] = x[i] > 0.0f ? x[i] : 0.0f;
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
      product<Begin::zero>(rows, depth, {x, row, 1}, panels, out + o, stride);
  }
}

}  // namespace
}  // namespace precis
