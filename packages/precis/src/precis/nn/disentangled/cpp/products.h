// Matrix products on small tiles: a few rows of the left matrix times a panel of the right one, sums in registers.
//
// A panel has kPanel columns of a matrix, one row after the other, for sequential reads. Matrices
// are packed into panels once per head of a document; products then reach nine tenths of a core's peak,
// even for a matrix of 32 rows.
//
// A cell of a matrix is a number of fp32 or a pair of bf16: a pair holds neighbours along the sum, so that
// the processor's product of pairs reads them directly. Sums are fp32.
#pragma once

#include <c10/util/BFloat16.h>

#include <algorithm>

#include "vectors.h"

namespace precis {
namespace {

constexpr int64_t kPanel = 2 * kLanes;
#if defined(__AVX512F__)
constexpr int kGroup = 8;  // rows of the left matrix with sums in registers at a time
#else
constexpr int kGroup = 6;
#endif

// AVX512-BF16 is detected at run time: one library serves processors with and without it.
#if defined(__AVX512F__)
#define PRECIS_PAIRS __attribute__((target("avx512bf16")))
inline bool multiplies_pairs() { return __builtin_cpu_supports("avx512bf16"); }
#else
#define PRECIS_PAIRS
inline bool multiplies_pairs() { return false; }
#endif

inline int64_t up(int64_t count, int64_t to) { return (count + to - 1) / to * to; }

struct Matrix {
  float* data;
  int64_t rows, columns, stride;
  float* row(int64_t index) const { return data + index * stride; }
  Matrix some(int64_t start, int64_t count) const { return {data + start * stride, count, columns, stride}; }
};

// The left matrix: cell (i, e) is data[i * row + e * step].
struct Left {
  const float* data;
  int64_t row, step;
  Left from(int64_t i) const { return {data + i * row, row, step}; }
};

// Initial value of sums: zero, the output, or a number per row; `rows` also tracks each row's highest sums.
enum class Begin { zero, there, rows };

struct Ends {
  const float* first = nullptr;  // a number per row
  Lanes* top = nullptr;
};

enum class Cell { number, pair };

// What a product loads while it computes: nothing, or the panel that follows. That panel may come from memory, which
// rests while a second group of rows reads the present one from the cache.
enum class Ahead { nothing, panel };

template <Cell kCell>
PRECIS_PAIRS __attribute__((always_inline)) inline Lanes multiplied(const Lanes& sum, float x, const Lanes& y) {
#if defined(__AVX512F__)
  if constexpr (kCell == Cell::pair) return (Lanes)_mm512_dpbf16_ps((__m512)sum, (__m512bh)all(x), (__m512bh)y);
#endif
  return sum + x * y;
}

template <int kRowsHere, int kVectors, Begin kBegin, Cell kCell, Ahead kAhead>
PRECIS_PAIRS __attribute__((always_inline)) inline void product_of_group(int64_t depth, Left a, const float* panel,
                                                                         float* out, int64_t stride, Ends ends) {
  static_assert(kVectors == 2 || kBegin != Begin::rows);
  Lanes sum[kRowsHere][kVectors];
#pragma GCC unroll 8
  for (int i = 0; i < kRowsHere; ++i)
    for (int v = 0; v < kVectors; ++v) {
      if constexpr (kBegin == Begin::zero) sum[i][v] = Lanes{};
      if constexpr (kBegin == Begin::there) sum[i][v] = load<Lanes>(out + i * stride + v * kLanes);
      if constexpr (kBegin == Begin::rows) sum[i][v] = all(ends.first[i]);
    }
  for (int64_t e = 0; e < depth; ++e, panel += kPanel) {
    Lanes right[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      right[v] = load<Lanes>(panel + v * kLanes);
      if constexpr (kAhead == Ahead::panel) __builtin_prefetch(panel + depth * kPanel + v * kLanes, 0, 2);
    }
#pragma GCC unroll 8
    for (int i = 0; i < kRowsHere; ++i) {
      const float x = a.data[i * a.row + e * a.step];
      for (int v = 0; v < kVectors; ++v) sum[i][v] = multiplied<kCell>(sum[i][v], x, right[v]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRowsHere; ++i) {
    for (int v = 0; v < kVectors; ++v) store(out + i * stride + v * kLanes, sum[i][v]);
    if constexpr (kBegin == Begin::rows) ends.top[i] = larger(ends.top[i], larger(sum[i][0], sum[i][kVectors - 1]));
  }
}

template <int kRowsHere, int kVectors, Begin kBegin, Cell kCell, Ahead kAhead>
PRECIS_PAIRS __attribute__((noinline)) void product_of_rest(int64_t rows, int64_t depth, Left a, const float* panel,
                                                            float* out, int64_t stride, Ends ends) {
  if (rows == kRowsHere)
    product_of_group<kRowsHere, kVectors, kBegin, kCell, kAhead>(depth, a, panel, out, stride, ends);
  else if constexpr (kRowsHere > 1)
    product_of_rest<kRowsHere - 1, kVectors, kBegin, kCell, kAhead>(rows, depth, a, panel, out, stride, ends);
}

// out (rows, kPanel) = begin + a (rows, depth) @ panel (depth, kPanel); with one vector, half of the panel's columns
template <Begin kBegin, Cell kCell = Cell::number, int kVectors = 2, Ahead kAhead = Ahead::nothing>
PRECIS_PAIRS __attribute__((noinline)) void product(int64_t rows, int64_t depth, Left a, const float* panel, float* out,
                                       int64_t stride, Ends ends = {}) {
  int64_t i = 0;
  for (; i + kGroup <= rows; i += kGroup) {
    product_of_group<kGroup, kVectors, kBegin, kCell, kAhead>(depth, a.from(i), panel, out + i * stride, stride, ends);
    if constexpr (kBegin == Begin::rows) ends.first += kGroup, ends.top += kGroup;
  }
  if (i < rows)
    product_of_rest<kGroup - 1, kVectors, kBegin, kCell, kAhead>(rows - i, depth, a.from(i), panel, out + i * stride,
                                                                 stride, ends);
}

// Packs rows `start` to `start + count` of x (n, width) as columns of panels [n / kPanel][width][kPanel], the last one
// padded with zeros; `start` is a multiple of kPanel.
inline void pack_columns(const Matrix& x, int64_t start, int64_t count, float* panels) {
  for (int64_t row = start; row < start + count; row += kLanes) {
    const int64_t here = std::min(kLanes, start + count - row);
    float* to = panels + row / kPanel * kPanel * x.columns + row % kPanel;
    int64_t e = 0;
    for (; here == kLanes && e + kLanes <= x.columns; e += kLanes) {
      Lanes square[kLanes];
      for (int64_t i = 0; i < kLanes; ++i) square[i] = load<Lanes>(x.row(row + i) + e);
      transpose(square);
      for (int64_t i = 0; i < kLanes; ++i) store(to + (e + i) * kPanel, square[i]);
    }
    for (; e < x.columns; ++e)
      for (int64_t i = 0; i < kLanes; ++i) to[e * kPanel + i] = i < here ? x.row(row + i)[e] : 0.0f;
  }
  const int64_t done = up(start + count, kLanes);
  if (done % kPanel == 0) return;
  for (int64_t e = 0; e < x.columns; ++e)
    store(panels + done / kPanel * kPanel * x.columns + e * kPanel + done % kPanel, Lanes{});
}

// Packs rows `start` to `start + count` of x (n, width) as rows of panels [width / kPanel][room][kPanel] of fp32,
// padded with zeros to the next multiple of kPanel in both dimensions.
template <typename Number>
inline void pack_rows(const Number* x, int64_t stride, int64_t width, int64_t start, int64_t count, int64_t room,
                      float* panels) {
  for (int64_t row = start; row < up(start + count, kPanel); ++row)
    for (int64_t e = 0; e < width; e += kPanel) {
      float* to = panels + (e / kPanel * room + row) * kPanel;
      const Number* from = x + row * stride + e;
      const int64_t here = row < start + count ? std::min(kPanel, width - e) : 0;
      if (here == kPanel) {
        for (int64_t i = 0; i < kPanel; ++i) to[i] = static_cast<float>(from[i]);
        continue;
      }
      for (int64_t i = 0; i < kPanel; ++i) to[i] = i < here ? static_cast<float>(from[i]) : 0.0f;
    }
}

// The same with a pair of neighbouring rows as a cell: panels [width / kPanel][room / 2][kPanel]; `start` is even.
inline void pack_row_pairs(const c10::BFloat16* x, int64_t stride, int64_t width, int64_t start, int64_t count,
                           int64_t room, float* panels) {
  const uint16_t none[kPanel] = {};
  for (int64_t row = start; row < up(start + count, kPanel); row += 2)
    for (int64_t e = 0; e < width; e += kPanel) {
      uint16_t ends[2][kPanel] = {};
      const uint16_t* pair[2];
      for (int64_t i = 0; i < 2; ++i) {
        const auto* numbers = reinterpret_cast<const uint16_t*>(x) + (row + i) * stride + e;
        const bool there = row + i < start + count, whole = e + kPanel <= width;
        if (there && !whole) std::copy_n(numbers, width - e, ends[i]);
        pair[i] = !there ? none : whole ? numbers : ends[i];
      }
      uint32_t cells[kPanel];
      for (int64_t i = 0; i < kPanel; ++i) cells[i] = pair[0][i] | static_cast<uint32_t>(pair[1][i]) << 16;
      std::memcpy(panels + (e / kPanel * (room / 2) + row / 2) * kPanel, cells, sizeof(cells));
    }
}

// Converts `count` numbers, a multiple of kPanel, to bf16.
PRECIS_PAIRS inline void to_pairs([[maybe_unused]] const float* from, int64_t count, [[maybe_unused]] float* to) {
  for (int64_t i = 0; i < count; i += kPanel) {
#if defined(__AVX512F__)
    store(to + i / 2, _mm512_cvtne2ps_pbh(_mm512_loadu_ps(from + i + kLanes), _mm512_loadu_ps(from + i)));
#endif
  }
}

// Converts two rows of kPanel numbers to a row of kPanel cells of bf16.
PRECIS_PAIRS inline void pair_rows([[maybe_unused]] const float* low, [[maybe_unused]] const float* high,
                                   [[maybe_unused]] float* to) {
#if defined(__AVX512F__)
  const __m512i mixed = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21,
                                         5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  for (int64_t i = 0; i < kPanel; i += kLanes) {
    const auto both = (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(high + i), _mm512_loadu_ps(low + i));
    _mm512_storeu_si512(to + i, _mm512_permutexvar_epi16(mixed, both));
  }
#endif
}

}  // namespace
}  // namespace precis
