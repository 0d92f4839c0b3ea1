// Products with matrices in bf16, or in 8 bits: whole numbers from -127 to 127, and a scale for each output. States are
// fp32.
//
// A panel of 8 bits has the scales of its kPanel outputs (fp32), then a row of kPanel numbers for each input. With few
// rows a product takes the time to read the matrix, so that fewer bytes count for more than widening them.
#pragma once

#include <cmath>

#include "attending.h"

namespace precis {
namespace {

typedef int8_t Bytes __attribute__((vector_size(kLanes)));
constexpr int64_t kScale = sizeof(float);  // bytes of a scale

inline Lanes widened(const int8_t* from) {
#if defined(__AVX512F__)
  return (Lanes)_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
#elif defined(__AVX2__)
  return (Lanes)_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
#else
  return __builtin_convertvector(__builtin_convertvector(load<Bytes>(from), Picks), Lanes);
#endif
}

// Replaces a panel of fp32 by its scales and bytes.
inline void to_bytes(const float* panel, int64_t depth, char* out) {
  float scales[kPanel] = {};
  for (int64_t e = 0; e < depth; ++e)
    for (int64_t o = 0; o < kPanel; ++o) scales[o] = std::max(scales[o], std::fabs(panel[e * kPanel + o]) / 127.0f);
  std::memcpy(out, scales, sizeof(scales));
  auto* cells = reinterpret_cast<int8_t*>(out + sizeof(scales));
  for (int64_t e = 0; e < depth; ++e)
    for (int64_t o = 0; o < kPanel; ++o) {
      const float cell = scales[o] > 0.0f ? std::nearbyint(panel[e * kPanel + o] / scales[o]) : 0.0f;
      cells[e * kPanel + o] = static_cast<int8_t>(std::clamp(cell, -127.0f, 127.0f));
    }
}

// A few rows times a panel of `Number`; `kSums` sums of a row, so that additions do not wait for each other.
template <typename Number, int kRowsHere, int kSums>
inline void product_of_narrow(int64_t depth, const float* x, int64_t row, const char* panel, float* out,
                              int64_t stride) {
  constexpr bool kBytes = sizeof(Number) == 1;
  Lanes sum[kRowsHere][kSums][2] = {};
  const auto* cells = reinterpret_cast<const Number*>(panel + (kBytes ? kPanel * kScale : 0));
  const auto add = [&](int64_t e, int u) __attribute__((always_inline)) {
    __builtin_prefetch(cells + (depth + e) * kPanel, 0, 2);  // of the next panel: see `Ahead`
    for (int v = 0; v < 2; ++v) {
      const Lanes right = widened(cells + e * kPanel + v * kLanes);
#pragma GCC unroll 8
      for (int i = 0; i < kRowsHere; ++i) sum[i][u][v] += x[i * row + e] * right;
    }
  };
  int64_t e = 0;
  for (; e + kSums <= depth; e += kSums)
#pragma GCC unroll 4
    for (int u = 0; u < kSums; ++u) add(e + u, u);
  for (; e < depth; ++e) add(e, 0);
  for (int i = 0; i < kRowsHere; ++i)
    for (int v = 0; v < 2; ++v) {
      Lanes all_of_it = sum[i][0][v];
      for (int u = 1; u < kSums; ++u) all_of_it += sum[i][u][v];
      if constexpr (kBytes) all_of_it *= load<Lanes>(panel + v * kLanes * kScale);
      store(out + i * stride + v * kLanes, all_of_it);
    }
}

template <typename Number, int kRowsHere = kGroup>
inline void product_of_rest_of_narrow(int64_t rows, int64_t depth, const float* x, int64_t row, const char* panel,
                                      float* out, int64_t stride) {
  if (rows >= kRowsHere)
    product_of_narrow<Number, kRowsHere, kRowsHere == 1 ? 4 : 1>(depth, x, row, panel, out, stride);
  else if constexpr (kRowsHere > 1)
    product_of_rest_of_narrow<Number, kRowsHere - 1>(rows, depth, x, row, panel, out, stride);
}

// A packed matrix [outputs / kPanel][depth][kPanel], in fp32, bf16 or 8 bits.
struct Weights {
  const char* data;
  int64_t bits;

  int64_t size(int64_t outputs, int64_t depth) const {
    return outputs * (depth * bits / 8 + (bits == 8 ? kScale : 0));
  }
  Weights from(int64_t offset) const { return {data + offset, bits}; }
};

template <typename Number>
inline void multiply_narrow(int64_t rows, int64_t depth, const float* x, int64_t row, const Weights& weights,
                            int64_t outputs, float* out, int64_t stride) {
  const char* panel = weights.data;
  for (int64_t o = 0; o < outputs; o += kPanel, panel += weights.size(kPanel, depth))
    for (int64_t i = 0; i < rows; i += kGroup)
      product_of_rest_of_narrow<Number>(rows - i, depth, x + i * row, row, panel, out + i * stride + o, stride);
}

// out (rows, outputs) = x (rows, depth) @ the matrix
inline void multiply(int64_t rows, int64_t depth, const float* x, int64_t row, const Weights& weights, int64_t outputs,
                     float* out, int64_t stride) {
  if (weights.bits == 8) return multiply_narrow<int8_t>(rows, depth, x, row, weights, outputs, out, stride);
  if (weights.bits == 16) return multiply_narrow<c10::BFloat16>(rows, depth, x, row, weights, outputs, out, stride);
  multiply(rows, depth, x, row, reinterpret_cast<const float*>(weights.data), outputs, out, stride);
}

}  // namespace
}  // namespace precis
